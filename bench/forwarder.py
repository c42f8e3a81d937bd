"""The forwarder end to end: database to receiver beside a bare client, its memory, and how soon it is ready."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp

from bench.http_sink import ENTRIES, ENTRY_LIST, bare_sender
from bench.measure import Result
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


def forward(url: str, port: int) -> tuple[int, float, float]:
    """Everything that waits, through relay and HTTP sink: events, seconds, and this process's CPU seconds."""
    with Outbox.connect(url) as outbox:
        channel = outbox.channel("cloud", mode="ordered", one_tenant=True)

        async def main() -> int:
            sink = HttpSink(CloudSettings(url=f"http://127.0.0.1:{port}/batch"), edge_id="bench")
            relay = Relay(outbox.store, sink, channel, RelaySettings(owner="bench", in_flight=IN_FLIGHT))
            try:
                return (await relay.once()).delivered
            finally:
                await sink.close()

        started, used = time.perf_counter(), time.process_time()
        delivered = asyncio.run(main())
        return delivered, time.perf_counter() - started, time.process_time() - used


def bare(port: int, count: int) -> tuple[int, float, float]:
    """As many events of the same bytes, ready as JSON, compressed as the sink does, from a bare client."""

    async def main() -> int:
        async with aiohttp.ClientSession() as session:
            body = body_of(ENTRY_LIST, edge_id="bench", sent_at=datetime.now(UTC))
            headers = {"content-type": "application/json", "content-encoding": "gzip"}
            pack = partial(gzip.compress, compresslevel=GZIP_LEVEL)
            send = bare_sender(session, f"http://127.0.0.1:{port}/batch", body, pack, headers)
            left = count // ENTRIES

            async def work() -> None:
                nonlocal left
                while left > 0:
                    left -= 1
                    await send()

            await asyncio.gather(*[work() for _ in range(IN_FLIGHT)])
        return count

    started, used = time.perf_counter(), time.process_time()
    sent = asyncio.run(main())
    return sent, time.perf_counter() - started, time.process_time() - used


def forward_cases(quick: bool) -> Iterator[Result]:
    """Events per second, database and receiver included, and CPU time per event."""
    count = 20_000 if quick else 100_000
    with receiver() as port, database() as url:
        with Outbox.connect(url) as outbox:
            outbox.channel("cloud", mode="ordered", one_tenant=True)
            entry = NewEntry(channel="cloud", tenant_id="t", event_type="bench.event", payload=PAYLOAD)
            for _ in range(0, count, 10_000):
                outbox.store.put_many([entry] * 10_000)
        bare(port, count)
        sent, seconds, used = bare(port, count)
        delivered, ours, ours_used = forward(url, port)
    if delivered != count:
        raise RuntimeError(f"{delivered} of {count} arrived")
    yield Result("forwarder, PostgreSQL to receiver, gzip", delivered / ours, sent / seconds, 0.5, "bare client")
    yield Result("forwarder, CPU per event", ours_used / delivered * 1e6, used / sent * 1e6, None, "bare client", " µs")


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
    waiting = 100_000 if quick else 1_000_000
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
