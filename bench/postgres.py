"""The engine on PostgreSQL beside raw SQL."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from tests import postgres_server
from tests.postgres_server import drop_database, fresh_database

from bench import raw_postgres as raw
from bench.measure import Result, compare, rate
from carrick import Outbox
from carrick.entry import NewEntry

postgres_server.SETTINGS = (
    postgres_server.SETTINGS.replace("off", "on") + "\nmax_wal_size = '4GB'\n"
)  # durable, as in earnest
PAYLOAD = json.dumps({"reading": "x" * 180}).encode()

Drain = Callable[[str, int], int]


@contextmanager
def database() -> Iterator[str]:
    """A fresh database with the schema, a `bench` channel per mode and the raw table beside it."""
    url = fresh_database(18)
    try:
        with Outbox.connect(url) as outbox, psycopg.connect(url, autocommit=True) as connection:
            for mode in ("stream", "ordered", "coalesce"):
                outbox.channel("bench" if mode == "stream" else mode, mode=mode)
            raw.create(connection)
        yield url
    finally:
        drop_database(18, url)


def fill(url: str, count: int, channel: str = "bench", groups: int | None = None) -> None:
    """Put that many entries, in bulk."""
    with Outbox.connect(url) as outbox:
        for start in range(0, count, 10_000):
            outbox.store.put_many(
                [
                    NewEntry(
                        channel=channel,
                        event_type="bench.event",
                        payload=PAYLOAD,
                        group_key=None if groups is None else f"g{n % groups}",
                    )
                    for n in range(start, min(start + 10_000, count))
                ]
            )


def fill_raw(url: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        raw.put_in_bulk(connection, PAYLOAD.decode(), count, count)


def settle(url: str) -> None:
    """What autovacuum would have done, so that both sides start alike."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def drain(url: str, batch: int, channel: str = "bench") -> int:
    """Claim and finish until nothing is due; how many."""
    with Outbox.connect(url) as outbox:
        handled = 0
        while claimed := outbox.store.claim(channel, "bench", max_rows=batch):
            handled += len(outbox.store.finish_all(claimed.token))
        return handled


def drain_raw(url: str, batch: int) -> int:
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        return raw.drain(connection, batch)


def in_processes(count: int, work: Drain, url: str, batch: int) -> tuple[int, float]:
    """The work in that many processes at once: entries handled and seconds from the common start to the last end."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(count + 1)
    answers: Any = context.SimpleQueue()

    def run() -> None:
        barrier.wait()
        answers.put(work(url, batch))

    processes = [context.Process(target=run) for _ in range(count)]
    for process in processes:
        process.start()
    barrier.wait()
    started = time.perf_counter()
    handled = sum(answers.get() for _ in processes)
    seconds = time.perf_counter() - started
    for process in processes:
        process.join()
    return handled, seconds


def put_cases(quick: bool) -> Iterator[Result]:
    """Single puts in the caller's transaction, and bulk."""
    count, rounds = (500, 3) if quick else (2000, 5)
    with database() as url, Outbox.connect(url) as outbox, psycopg.connect(url, autocommit=True) as connection:
        payload = PAYLOAD.decode()

        def put_single() -> int:
            for _ in range(count):
                with connection.transaction():
                    outbox.put(connection, channel="bench", event_type="bench.event", payload=PAYLOAD)
            return count

        def raw_single() -> int:
            for _ in range(count):
                with connection.transaction():
                    raw.put_one_by_one(connection, payload, 1)
            return count

        yield compare("put, one per transaction", put_single, raw_single, rounds=rounds, reach=0.85)

        bulk = 10 * count
        entries = [{"channel": "bench", "event_type": "bench.event", "payload": PAYLOAD}] * 1000

        def put_bulk() -> int:
            for _ in range(bulk // 1000):
                with connection.transaction():
                    outbox.put_many(connection, entries)
            return bulk

        yield compare(
            "put_many, 1000 per transaction",
            put_bulk,
            lambda: raw.put_in_bulk(connection, payload, bulk, 1000),
            rounds=rounds,
            reach=0.6,
            against="raw COPY",
        )


def drain_cases(quick: bool) -> Iterator[Result]:
    """Claim and fenced finish at several batch sizes, one and two processes."""
    for processes in (1, 2):
        for batch, most in ((1, 2_000), (10, 10_000), (100, 40_000), (1000, 60_000)):
            if quick and batch < 100:
                continue  # nothing is asked of these
            count = most // 5 if quick else most
            yield _drain_case(processes, batch, count, rounds=2 if quick else 3)


def _drain_case(processes: int, batch: int, count: int, rounds: int) -> Result:
    rates: dict[str, list[float]] = {"ours": [], "raw": []}
    for _ in range(rounds):
        with database() as url:
            for side, filler, work in (("ours", fill, drain), ("raw", fill_raw, drain_raw)):
                filler(url, count)
                settle(url)
                handled, seconds = in_processes(processes, work, url, batch)
                if handled != count:
                    raise RuntimeError(f"{side} handled {handled} of {count}")
                rates[side].append(handled / seconds)
    name = f"claim + finish, batch {batch}, {processes} process{'es' if processes > 1 else ''}"
    return Result(name, _median(rates["ours"]), _median(rates["raw"]), 0.8 if batch >= 100 else None)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def mode_cases(quick: bool) -> Iterator[Result]:
    """Ordered and coalesced channels beside a plain stream."""
    count = 10_000 if quick else 40_000
    for mode, groups, batch in (("ordered", count // 20, 100), ("ordered", 500, 1000), ("coalesce", count // 10, 100)):
        rates: dict[str, list[float]] = {mode: [], "bench": []}
        for _ in range(2 if quick else 3):
            with database() as url:
                for channel in (mode, "bench"):
                    fill(url, count, channel, groups)
                    settle(url)
                    rates[channel].append(rate(partial(drain, url, batch, channel)))
        name = f"{mode}, {groups} groups, batch {batch}"
        yield Result(name, _median(rates[mode]), _median(rates["bench"]), 0.5, "stream")


def growth_case(quick: bool) -> Iterator[Result]:
    """Many retained and many waiting entries beside few."""
    retained, waiting, measured = (200_000, 40_000, 20_000) if quick else (10_000_000, 1_000_000, 50_000)
    with database() as small:
        fill(small, 10_000 + measured)
        retain(small, 10_000)
        settle(small)
        base = rate(lambda: drain_some(small, measured))
    with database() as large:
        retain(large, retained)
        fill(large, waiting)
        settle(large)
        grown = rate(lambda: drain_some(large, measured))
    yield Result(f"growth: {retained:,} retained, {waiting:,} waiting", grown, base, 0.85, "10,000 retained")


def retain(url: str, count: int) -> None:
    """That many delivered entries, made inside the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        for start in range(0, count, 500_000):
            connection.execute(
                """
                with r as (
                  insert into carrick.record (channel, event_type, payload, payload_size_bytes)
                  select 'bench', 'bench.event', %s::json, 200 from generate_series(%s::int, %s::int) returning seq, id)
                insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count)
                select seq, id, 'bench', 'delivered', now(), 1 from r
                """,
                (PAYLOAD.decode(), start + 1, min(start + 500_000, count)),
            )


def drain_some(url: str, count: int, batch: int = 100) -> int:
    """Claim and finish until at least that many entries are done."""
    with Outbox.connect(url) as outbox:
        handled = 0
        while handled < count and (claimed := outbox.store.claim("bench", "bench", max_rows=batch)):
            handled += len(outbox.store.finish_all(claimed.token))
        return handled


def held_case(quick: bool) -> Iterator[Result]:
    """A transaction held open elsewhere during the whole run, beside the same run without."""
    count = 20_000 if quick else 200_000

    def run(held: bool) -> float:
        with database() as url, psycopg.connect(url) as holder:
            if held:
                holder.execute("create table held_open (); select pg_current_xact_id()")
            fill(url, count)
            return rate(lambda: drain(url, 100))

    without, with_held = run(False), run(True)
    yield Result(f"transaction held open, {count:,} entries", with_held, without, 0.8, "without it")


def idle_case(quick: bool) -> Iterator[Result]:
    """An empty claim: how often it can be asked, and that it writes nothing."""
    asks = 300 if quick else 2000
    with database() as url, Outbox.connect(url) as outbox, psycopg.connect(url, autocommit=True) as connection:
        settle(url)
        written = "select pg_current_wal_insert_lsn()"

        def ask() -> int:
            for _ in range(asks):
                outbox.store.claim("bench", "bench")
            return asks

        def nothing() -> int:
            for _ in range(asks):
                connection.execute("select 1")
            return asks

        result = compare("idle: claims of an empty channel", ask, nothing, rounds=3, against="select 1")
        before = connection.execute(written).fetchone()
        ask()
        after = connection.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)", before).fetchone()
        yield result._replace(name=f"{result.name} ({int(after[0]) if after else -1} bytes of WAL)")


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {
    "put": put_cases,
    "drain": drain_cases,
    "modes": mode_cases,
    "growth": growth_case,
    "held": held_case,
    "idle": idle_case,
}
