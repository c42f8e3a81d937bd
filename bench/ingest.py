"""The ingest over loopback, beside routes that only parse the same bodies or store them plainly; and its cost as memory grows.

`python -m bench --only ingest`. One client process sends the same bodies to all of them, compressed as the forwarder
does; sixteen are in flight, as many as four forwarders have, or 64. Payloads of 200 bytes. The same server on all sides.
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec
import psycopg

from bench.http_sink import entry
from bench.load import rate, request
from bench.measure import Result
from bench.plain_ingest import PORT as PLAIN_PORT
from bench.postgres import database
from carrick import wiring
from carrick.ingest.batch import read_batch
from carrick.ingest.body import MAX_BODY_BYTES
from carrick.ingest.store import Inbox, Offer
from carrick.outbox.ids import new_ids
from carrick.sinks.envelope import body_of
from carrick.sinks.http import GZIP_LEVEL


class Load(NamedTuple):
    """Events in a batch, and batches in flight."""

    events: int
    in_flight: int


class Pace(NamedTuple):
    """How many events a turn has, and how many turns count. With fewer events, the beginning and the end of a turn count,
    when not as many are in flight; a quick run lives with that."""

    events: int
    rounds: int


LOADS = (Load(100, 16), Load(100, 64), Load(1000, 16))
SATURATING = LOADS[1:]
"""Those that keep both cores busy: what is asked for is asked of these. With sixteen of 100 a quarter is idle, and what
is measured is how long a batch takes."""
KEPT = (("", "stored"), ("events", "stored and relayed"))
"""Where new events are put for others to deliver, and what that is called. What is asked for is asked of storing."""
THOROUGH, QUICK = Pace(60_000, 9), Pace(16_000, 2)
PORT = 18081
PATH = "/api/v1/edge/batch"
HEADERS = {"content-type": "application/json", "x-tenant-id": "acme"}


def bodies(batches: int, events: int) -> list[bytes]:
    """Batches of events that nobody has seen, with ids as the forwarder makes them."""
    made: list[bytes] = []
    for _ in range(batches):
        ids = new_ids(datetime.now(UTC), events)
        entries = [msgspec.structs.replace(entry(n), id=UUID(ids[n])) for n in range(events)]
        made.append(body_of(entries, edge_id="bench", sent_at=datetime.now(UTC)))
    return made


@contextmanager
def serving(arguments: Sequence[str], port: int, **environment: str) -> Iterator[None]:
    """A process that listens on that port."""
    folder = tempfile.mkdtemp()
    path = f"{Path(__file__).parents[1]}"
    env = {"PYTHONPATH": path, "PATH": os.environ["PATH"], "PORT": str(port), "METRICS_PORT": "0", **environment}
    with subprocess.Popen([sys.executable, *arguments], cwd=folder, env=env, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            yield
        finally:
            process.kill()


def wait_for(port: int) -> None:
    """Return when somebody answers on that port."""
    end = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health"):
                return
        except urllib.request.HTTPError:  # the bare server has no such page
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def packed(made: Sequence[bytes]) -> list[bytes]:
    """Compressed as the forwarder does it, before the clock runs."""
    return [gzip.compress(body, GZIP_LEVEL, mtime=0) for body in made]


def send(port: int, path: str, made: Sequence[bytes], in_flight: int) -> float:
    """Batches per second of these, which are compressed."""
    headers = {**HEADERS, "content-encoding": "gzip"}
    requests = [request(path, headers, body) for body in made]
    return rate(port, requests, in_flight, lambda answer: b'"rejected":0' in answer)


def loopback_cases(quick: bool) -> Iterator[Result]:
    """Events per second that are accepted, relayed on or only stored, on PostgreSQL and SQLite."""
    pace = QUICK if quick else THOROUGH
    for backend in ("PostgreSQL", "SQLite"):
        with (
            database() as url,
            database() as plain,
            tempfile.TemporaryDirectory() as folder,
            serving(["-m", "bench.plain_ingest"], PLAIN_PORT, PLAIN_POSTGRES=plain, PLAIN_SQLITE=f"{folder}/plain.db"),
        ):
            at = url if backend == "PostgreSQL" else f"sqlite:///{folder}/ingest.db"
            for channel, said in KEPT[:1] if quick else KEPT:
                with serving(["-m", "carrick", "ingest"], PORT, DATABASE_URL=at, INGEST_RELAY_CHANNEL=channel):
                    for load in SATURATING if quick else LOADS:
                        name = f"ingest, {backend}, {said}, {load.in_flight} batches of {load.events}"
                        if quick:
                            yield _parsing(name, load, pace)
                        else:
                            yield from _beside(name, backend.lower(), load, pace, bool(channel))


def _parsing(name: str, load: Load, pace: Pace) -> Result:
    """What is asked for alone: beside the route that makes Python values of everything."""
    ours, parsed = _in_turns(["parsed"], load, pace)
    return Result(name, ours, parsed, 0.5, "bare route, json.loads")


def _beside(name: str, plainly: str, load: Load, pace: Pace, is_relayed: bool) -> Iterator[Result]:
    """In turns with routes that get the very same bodies and store nothing; then with one that stores, which would leave
    the disk busy for whoever comes after it. What was written before is on disk when it begins."""
    os.sync()
    is_marked = not is_relayed and load in SATURATING
    short = pace._replace(rounds=min(3, pace.rounds))
    ours, parsed, typed = _in_turns(["parsed", "typed"], load, short if is_relayed else pace)
    yield Result(name, ours, parsed, 0.5 if is_marked else None, "bare route, json.loads")
    yield Result(name, ours, typed, None, "bare route, typed decoder")
    ours, stored = _in_turns([plainly], load, short)
    yield Result(name, ours, stored, None if is_relayed else 1.0, "a plain route that stores them")


def _in_turns(routes: Sequence[str], load: Load, pace: Pace) -> list[float]:
    """Events per second of the ingest and of each route; medians."""
    sides = [(PORT, PATH), *((PLAIN_PORT, f"/{route}") for route in routes)]
    rates: list[list[float]] = [[] for _ in sides]
    for turn in range(pace.rounds + 1):
        made = packed(bodies(pace.events // load.events, load.events))
        for (port, path), measured in zip(sides, rates, strict=True):
            sent = send(port, path, made, load.in_flight) * load.events
            if turn:
                measured.append(sent)
    return [statistics.median(measured) for measured in rates]


FILL = """
insert into carrick.inbox (tenant_id, event_id, event_type, edge_id, occurred_at, received_at, payload)
select 'acme', gen_random_uuid()::text, 'reading.taken', 'bench', now(), now() - interval '30 days' * random(), %(payload)s::json
  from generate_series(1, %(count)s)
"""
"""Ids without any order: the worst case for an index."""


def growth_cases(quick: bool) -> Iterator[Result]:
    """What a batch of 1000 costs with much in memory, beside little: two databases, in turns."""
    many = 200_000 if quick else 10_000_000
    with database() as small, database() as large:
        inboxes = [_remembering(small, 10_000), _remembering(large, many)]
        rates: tuple[list[float], list[float]] = ([], [])
        for turn in range(5 if quick else 15):
            for inbox, measured in zip(inboxes, rates, strict=True):
                rate = _takes(inbox, 20)
                if turn:
                    measured.append(rate)
        for inbox in inboxes:
            inbox.close()
    little, much = map(statistics.median, rates)
    yield Result(f"ingest, {many:,} remembered", much, little, 0.85, "10,000 remembered")


def _remembering(url: str, count: int) -> Inbox:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL, {"count": count, "payload": entry(1).payload.decode()})
        connection.execute("vacuum analyze carrick.inbox")
        connection.execute("checkpoint")
    return wiring.open_inbox(url)


def _takes(inbox: Inbox, batches: int) -> float:
    """Events per second."""
    offers = [Offer(read_batch(body, max_payload_bytes=MAX_BODY_BYTES)) for body in bodies(batches, 1000)]
    started = time.perf_counter()
    for offer in offers:
        inbox.take_all([offer])
    return 1000 * batches / (time.perf_counter() - started)


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {"ingest": loopback_cases, "ingest-growth": growth_cases}
