"""The whole relay: how fast it drains beside raw SQL, how soon a put reaches its handler, and what it costs at rest."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench import raw_postgres
from bench.measure import Result
from bench.postgres import PAYLOAD, database, drain_raw, fill, fill_raw, in_processes, settle
from carrick import Outbox
from carrick.entry import Outcome
from carrick.ops.collector import spare_the_collector
from carrick.outbox.sqlite.migrate import migrate
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.wake import Bells
from carrick.sinks.sink import Delivery, Report, Results, Sink

PEER_OF_RAW = {1: 36_031 / 59_107, 2: 43_189 / 111_182}
"""The fastest peer beside raw SQL at batch 1000 on one machine, with one and two processes (measured by its figures)."""

RAW_MS = {50: 0.8, 99: 8.0}
"""Put → handler by a raw listener on the machine that the limits were set for, p50 and p99."""


class NoOp(Sink):
    """A sink that does nothing."""

    async def deliver(self, delivery: Delivery) -> Report:
        delivered = Outcome.delivered()
        return Results(outcomes=dict.fromkeys((entry.id for entry in delivery.entries), delivered))

    async def reachable(self) -> bool:
        return True

    async def close(self) -> None: ...


def relay_once(url: str, batch: int) -> int:
    """Drain the channel with a relay and a no-op sink; how many."""
    with Outbox.connect(url) as outbox:
        channel = outbox.channel("bench", batch_rows=batch, batch_bytes=2**30)

        async def main() -> int:
            relay = Relay(outbox.store, NoOp(), channel, RelaySettings(owner="bench", in_flight=2))
            return (await relay.once()).delivered

        return asyncio.run(main())


def relay_cases(quick: bool) -> Iterator[Result]:
    """The whole relay beside raw claim and finish at the same batch."""
    count, rounds = (20_000, 2) if quick else (100_000, 3)
    for processes in (1, 2):
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds):
            with database() as url:
                for rates, filler, work in ((ours, fill, relay_once), (theirs, fill_raw, drain_raw)):
                    filler(url, count)
                    settle(url)
                    handled, seconds = in_processes(processes, work, url, 1000)
                    if handled != count:
                        raise RuntimeError(f"{work.__name__} handled {handled} of {count}")
                    rates.append(handled / seconds)
        name = f"relay, no-op sink, batch 1000, {processes} process{'es' if processes > 1 else ''}"
        yield Result(name, statistics.median(ours), statistics.median(theirs), 1.5 * PEER_OF_RAW[processes])


class Stopwatch(NoOp):
    """Tells when each entry's delivery starts."""

    def __init__(self, arrived: Any) -> None:
        self._arrived = arrived

    async def deliver(self, delivery: Delivery) -> Report:
        now = time.monotonic()
        for _ in delivery.entries:
            self._arrived.put(now)
        return await super().deliver(delivery)


def _relay_process(url: str, sink: NoOp, ready: Any, stop: Any) -> None:
    """A relay in a process of its own as a service runs it, woken by bells alone, until told to stop."""
    spare_the_collector()
    with Outbox.connect(url) as outbox:
        channel = outbox.channel("bench")

        async def main() -> None:
            bells = Bells(outbox.store)
            relay = Relay(
                outbox.store, sink, channel, RelaySettings(owner="bench"), bell=bells.of("bench"), at_once=bells.claim
            )
            listening = asyncio.create_task(bells.listen())
            work = asyncio.create_task(relay.run())
            ready.set()
            await asyncio.to_thread(stop.wait)
            relay.stop()
            await work
            listening.cancel()

        asyncio.run(main())


@contextmanager
def beside(url: str, sink: NoOp) -> Iterator[None]:
    """A relay process while the block runs."""
    context = multiprocessing.get_context("fork")
    ready, stop = context.Event(), context.Event()
    process = context.Process(target=_relay_process, args=(url, sink, ready, stop))
    process.start()
    ready.wait()
    try:
        yield
    finally:
        stop.set()
        process.join()


def _raw_listener(url: str, arrived: Any, ready: Any) -> None:
    """Plain SQL in a process of its own: listens, claims, tells when it has what it claimed, finishes. Until killed."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("listen raw_bench")
        ready.set()
        while True:
            for _ in connection.notifies(timeout=1.0, stop_after=1):  # one that comes during a statement is missed
                break
            rows = raw_postgres.claim(connection, 100)
            now = time.monotonic()
            for _ in rows:
                arrived.put(now)
            if rows:
                raw_postgres.finish(connection, rows)


@contextmanager
def raw_beside(url: str, arrived: Any) -> Iterator[None]:
    """A raw listener's process while the block runs."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_raw_listener, args=(url, arrived, ready))
    process.start()
    ready.wait()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def latencies(puts: Sequence[tuple[Callable[[], object], Any]], count: int) -> list[list[float]]:
    """Milliseconds from the end of a put in one process to the start of its delivery in another, one at a time.

    Each of `puts` comes with the queue on which its other side tells when; they take turns.
    """
    waits: list[list[float]] = [[] for _ in puts]
    for number in range(count + 5):
        for (put, arrived), measured in zip(puts, waits, strict=True):
            time.sleep(0.05)  # all have come to rest
            put()
            put_at = time.monotonic()
            wait = (arrived.get() - put_at) * 1000
            if number >= 5:
                measured.append(max(wait, 0.0))
    return waits


def latency_cases(quick: bool) -> Iterator[Result]:
    """At rest, another process: median and 99th percentile, beside a listener in plain SQL on PostgreSQL.

    That listener says how fast the machine is, so SQLite is measured by it, too.
    """
    count = 50 if quick else 300
    queue = multiprocessing.get_context("fork").SimpleQueue
    with database() as url, psycopg.connect(url, autocommit=True) as connection, Outbox.connect(url) as outbox:
        raw_postgres.create(connection)
        ours, raws = queue(), queue()

        def put_raw() -> None:
            with connection.transaction():
                raw_postgres.put_one_by_one(connection, PAYLOAD.decode(), 1)
                connection.execute("notify raw_bench")

        with beside(url, Stopwatch(ours)), raw_beside(url, raws):
            carrick, raw = latencies([(partial(_put, outbox), ours), (put_raw, raws)], count)
        yield from _latencies("PostgreSQL", carrick, raw, {50: 2.0, 99: 10.0})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outbox.db"
        migrate(path)
        url = f"sqlite:///{path}"
        with Outbox.connect(url) as outbox:
            outbox.channel("bench")
            arrived = queue()
            with beside(url, Stopwatch(arrived)):
                (carrick,) = latencies([(partial(_put, outbox), arrived)], count)
        yield from _latencies("SQLite", carrick, raw, {50: 5.0, 99: 10.0})


def _put(outbox: Outbox) -> None:
    outbox.put(channel="bench", event_type="bench.event", payload=PAYLOAD)


def _latencies(
    name: str, waits: Sequence[float], raw: Sequence[float], limits: Mapping[int, float]
) -> Iterator[Result]:
    """On a slower machine than the one of the limits, they are as often the raw side's time as they were there.

    `limits` are milliseconds by percentile.
    """
    cuts, raw_cuts = (statistics.quantiles(measured, n=100) for measured in (waits, raw))
    for percent, limit in limits.items():
        ours, theirs = cuts[percent - 1], raw_cuts[percent - 1]
        allowed = max(limit, limit / RAW_MS[percent] * theirs)
        against = f"ours; raw on PostgreSQL: {theirs:.1f}"
        yield Result(f"{name}: put → delivery starts, limit beside p{percent}", allowed, ours, 1.0, against, " ms")


def rest_case(quick: bool) -> Iterator[Result]:
    """Transactions of a relay at rest, by the database's own count."""
    seconds = 10 if quick else 180
    with database() as url, psycopg.connect(url, autocommit=True) as connection, beside(url, NoOp()):
        time.sleep(10)  # it has come to rest
        before = _transactions(connection)
        time.sleep(seconds)
        made = _transactions(connection) - before - 1  # this question itself
    yield Result("relay at rest, transactions a minute", made * 60 / seconds, 6.0, None, "6 asked", "")


def _transactions(connection: psycopg.Connection[Any]) -> int:
    time.sleep(1.1)  # statistics are written once a second
    row = connection.execute(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
    ).fetchone()
    assert row is not None
    return int(row[0])


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {
    "relay": relay_cases,
    "latency": latency_cases,
    "rest": rest_case,
}
