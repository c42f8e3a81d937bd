"""The forwarder end to end: database to receiver beside a bare client, its memory, and how soon it is ready.

There are two receivers: the ingest as `carrick ingest` starts it, which stores every event and relays it on, and one that
only counts them. To the second a bare client sends as fast as it can compress: nothing beside a database comes near.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from operator import mul
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import msgspec
import psycopg

from bench import raw_postgres as raw
from bench.http_sink import ENTRIES, ENTRY_LIST
from bench.ingest import PATH, PORT, bodies, serving
from bench.measure import Result, as_a_service
from bench.postgres import PAYLOAD, database
from carrick import Outbox
from carrick.entry import NewEntry
from carrick.outbox.sqlite.migrate import migrate
from carrick.relay.relay import Relay, RelaySettings
from carrick.settings import CloudSettings
from carrick.sinks.envelope import body_of
from carrick.sinks.http import GZIP_LEVEL, HttpSink

IN_FLIGHT = 4


@contextmanager
def receiver() -> Iterator[int]:
    """The receiver of `bench.http_sink` as a process of its own; its port."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.http_sink", "serve"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


Measured = tuple[int, float, float]
"""Events, seconds, and this process's CPU seconds."""

Send = Callable[[bytes], Awaitable[None]]
Make = Callable[[], Sequence[bytes]]
"""Bodies that the receiver has not seen."""


def measured(work: Callable[[], Coroutine[Any, Any, int]]) -> Measured:
    started, used = time.perf_counter(), time.process_time()
    count = asyncio.run(work())
    return count, time.perf_counter() - started, time.process_time() - used


def forward(url: str, receiver: str) -> Measured:
    """Everything that waits, through relay and HTTP sink."""
    with Outbox.connect(url) as outbox:
        channel = outbox.store.channels()["cloud"]

        async def work() -> int:
            sink = HttpSink(CloudSettings(url=receiver), edge_id="bench")
            relay = Relay(outbox.store, sink, channel, RelaySettings(owner="bench", in_flight=IN_FLIGHT))
            try:
                return (await relay.once()).delivered
            finally:
                await sink.close()

        return measured(work)


@asynccontextmanager
async def posting(receiver: str) -> AsyncIterator[Send]:
    """Posts a body, compressed as the sink does, from a bare client."""
    async with aiohttp.ClientSession() as session:
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        pack = partial(gzip.compress, compresslevel=GZIP_LEVEL)

        async def send(body: bytes) -> None:
            async with session.post(receiver, data=pack(body), headers=headers) as response:
                response.raise_for_status()
                await response.read()

        yield send


def bare(receiver: str, made: Sequence[bytes], batch: int) -> Measured:
    """As many events of the same bytes, ready as JSON: no database, no outcomes."""

    async def work() -> int:
        waiting = list(made)

        async def sending(send: Send) -> None:
            while waiting:
                await send(waiting.pop())

        async with posting(receiver) as send:
            await asyncio.gather(*[sending(send) for _ in range(IN_FLIGHT)])
        return len(made) * batch

    return measured(work)


def plain(url: str, receiver: str, batch: int) -> Measured:
    """A forwarder in plain SQL: claim, post, finish. It knows no order, tenants, gates, retries or crashes."""

    async def work() -> int:
        async def draining(send: Send) -> int:
            handled = 0
            with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
                while rows := await asyncio.to_thread(raw.claim, connection, batch):
                    events = [
                        msgspec.structs.replace(ENTRY_LIST[0], id=row.id, payload=row.payload.encode()) for row in rows
                    ]
                    await send(body_of(events, edge_id="bench", sent_at=datetime.now(UTC)))
                    await asyncio.to_thread(raw.finish, connection, rows)
                    handled += len(rows)
            return handled

        async with posting(receiver) as send:
            return sum(await asyncio.gather(*[draining(send) for _ in range(IN_FLIGHT)]))

    return measured(work)


def forward_cases(quick: bool) -> Iterator[Result]:
    """Events per second, database and receiver included, and CPU time per event."""
    count, rounds = (10_000, 1) if quick else (60_000, 3)
    for batch in (100, 1000):
        batches = count // batch
        with as_a_service(), database() as stored, serving(["-m", "carrick", "ingest"], PORT, DATABASE_URL=stored):
            ingest = f"http://127.0.0.1:{PORT}{PATH}"
            bare(ingest, bodies(10_000 // batch, batch), batch)
            yield from _beside("to ingest", ingest, batch, rounds, partial(bodies, batches, batch), asked=0.5)
        with as_a_service(), receiver() as port:
            counting = f"http://127.0.0.1:{port}/batch"
            same = [
                body_of([ENTRY_LIST[n % ENTRIES] for n in range(batch)], edge_id="bench", sent_at=datetime.now(UTC))
            ]
            bare(counting, same * 100, batch)
            yield from _beside(
                "to a receiver that counts", counting, batch, rounds, partial(mul, same, batches), asked=None
            )


def _beside(name: str, receiver: str, batch: int, rounds: int, make: Make, asked: float | None) -> Iterator[Result]:
    """All three send as many events to one receiver, in turns; medians. What differs from turn to turn is not theirs."""
    sides: dict[str, list[Measured]] = {"bare": [], "sql": [], "ours": []}
    for _ in range(rounds):
        made = make()
        count = len(made) * batch
        with database() as url:
            fill_cloud(url, count, batch)
            sides["bare"].append(bare(receiver, made, batch))
            sides["sql"].append(plain(url, receiver, batch))
            sides["ours"].append(forward(url, receiver))
        for who, turns in sides.items():
            if turns[-1][0] != count:
                raise RuntimeError(f"{who}: {turns[-1][0]} of {count} arrived")
    rates = {who: median(handled / seconds for handled, seconds, _ in turns) for who, turns in sides.items()}
    used = {who: median(cpu / handled * 1e6 for handled, _, cpu in turns) for who, turns in sides.items()}
    title = f"forwarder, PostgreSQL {name}, batch {batch}"
    yield Result(title, rates["ours"], rates["bare"], asked, "bare client")
    yield Result(title, rates["ours"], rates["sql"], None, "forwarder in plain SQL")
    yield Result(f"{title}, CPU per event", used["ours"], used["bare"], None, "bare client", " µs")


def fill_cloud(url: str, count: int, batch: int) -> None:
    """Events for the forwarder, and the same for the one in plain SQL."""
    payloads = [entry.payload for entry in ENTRY_LIST]
    with Outbox.connect(url) as outbox, psycopg.connect(url, autocommit=True) as connection:
        outbox.channel("cloud", mode="ordered", one_tenant=True, batch_rows=batch)
        for start in range(0, count, 10_000):
            chosen = [payloads[number % ENTRIES] for number in range(start, start + 10_000)]
            outbox.store.put_many(
                [
                    NewEntry(channel="cloud", tenant_id="t", event_type="bench.event", payload=payload)
                    for payload in chosen
                ]
            )
            raw.put_all(connection, [payload.decode() for payload in chosen])
        connection.execute("vacuum analyze")


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """`carrick forward` with nobody to talk to; how many seconds it took until it was ready."""
    environment = {
        "PATH": os.environ["PATH"],
        "CLOUD_INGESTION_URL": "http://127.0.0.1:9/batch",
        "PORT": "18080",
        "METRICS_PORT": "0",
    }
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "carrick", "forward"], cwd=folder, env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while True:
                try:
                    with urllib.request.urlopen("http://127.0.0.1:18080/api/ready") as answer:
                        assert answer.status == 200
                    break
                except OSError:
                    time.sleep(0.01)
            yield process, time.perf_counter() - started
        finally:
            process.terminate()
            process.wait()


def rss(process: subprocess.Popen[bytes]) -> float:
    """Megabytes that the process holds."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def memory_cases(quick: bool) -> Iterator[Result]:
    """Start until ready, memory at rest, and memory with many entries waiting behind a closed gate."""
    waiting = 50_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder) as (process, ready):
            yield Result("forwarder, start until ready", ready, 1.5, None, "1.5 s asked", " s")
            time.sleep(5)
            at_rest = rss(process)
            yield Result("forwarder, memory at rest", at_rest, 80, None, "80 MB asked", " MB")
        path = folder / "carrick.db"
        migrate(path)
        with Outbox.connect(f"sqlite:///{path}") as outbox:
            entry = NewEntry(channel="cloud", tenant_id="t", event_type="bench.event", payload=PAYLOAD)
            for _ in range(0, waiting, 10_000):
                outbox.store.put_many([entry] * 10_000)
        with running(folder) as (process, _):
            time.sleep(10)
            grown = rss(process) - at_rest
            yield Result(f"forwarder, more with {waiting:,} waiting", grown, 40, None, "40 MB asked", " MB")


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {"forward": forward_cases, "memory": memory_cases}
