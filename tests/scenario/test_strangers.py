"""What strangers send before anybody knows them, to every service as it is wired, beside somebody who works there."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp
import pytest

from carrick import wiring
from carrick.settings import read_settings
from tests.batches import PATH, batch, event
from tests.service import service

NOWHERE = Path("no .env file")
EVENTS = "/api/v1/events"
SIZE = 1_000_000
JSON = {"Content-Type": "application/json"}


class Running(NamedTuple):
    """A service in this process."""

    port: int
    metrics_port: int


@asynccontextmanager
async def running(name: str, folder: Path, **changed: str) -> AsyncIterator[Running]:
    if name == "scoreboard":
        async with service(f"sqlite:///{folder}/a.db", **changed) as board:  # type: ignore[arg-type]
            yield Running(int(board.url.rpartition(":")[2]), int(board.metrics_url.split(":")[2].split("/")[0]))
        return
    environment = {
        "DATABASE_URL": f"sqlite:///{folder}/a.db",
        "CLOUD_INGESTION_URL": "http://127.0.0.1:9/",
        "SYNC_FORWARDER_MODE": "noop",
        "PORT": "0",
        "METRICS_PORT": "0",
        **changed,
    }
    settings = read_settings(environment, NOWHERE)
    built: Any = wiring.forwarder(settings) if name == "forward" else wiring.ingest(settings)
    stopping, ports = asyncio.Event(), asyncio.Queue[tuple[int, int]]()
    working = asyncio.create_task(built.run(stopping, lambda *both: ports.put_nowait(both)))
    yield Running(*await ports.get())
    stopping.set()
    await working


def forwarded(payload: bytes, further: bytes = b"") -> bytes:
    return b'{"tenant_id":"t","event_type":"e","payload":%b%b}' % (payload, further)


def batched(payload: bytes, further: bytes = b"") -> bytes:
    return b'{"tenant_id":"t","events":[{"event_id":"e","event_type":"e","payload":%b%b}]}' % (payload, further)


def hostile(one: Callable[..., bytes], good: bytes) -> Mapping[str, bytes]:
    """Bodies of one megabyte that are made to cost."""
    return {
        "levels": b"[" * SIZE,
        "levels of objects": b'{"a":' * (SIZE // 5),
        "levels in a payload": one(b"[" * (SIZE // 2) + b"]" * (SIZE // 2)),
        "many times 900 levels": one(b"[" + b",".join([b"[" * 450 + b"]" * 450] * (SIZE // 900)) + b"]"),
        "many times 9,000 levels": one(b"[" + b",".join([b"[" * 4500 + b"]" * 4500] * (SIZE // 9000)) + b"]"),
        "empty lists": one(b"[" + b"[]," * (SIZE // 3 - 20_000) + b"[]]"),
        "many keys": one(b"{" + b",".join(b'"%d":1' % number for number in range(SIZE // 11)) + b"}"),
        "many further fields": one(b"1", b"".join(b',"f%d":1' % number for number in range(SIZE // 11))),
        "large headers": one(b"1", b',"headers":{"a":[' + b"[]," * (SIZE // 3) + b"[]]}"),
        "a long number": one(b"9" * (SIZE - 100)),
        "escapes": one(b'"' + rb"\u0041" * (SIZE // 6 - 20) + b'"'),
        "lone surrogates": one(b'"' + rb"\ud800" * (SIZE // 6 - 20) + b'"'),
        "backslashes and half a pair": one(b'"' + rb"\\" * (SIZE // 2 - 100) + rb'\ud800"'),
        "backslashes without an end": one(b'"' + rb"\\" * (SIZE // 2))[:-3],
        "spaces": b" " * SIZE,
        "numbers": b"[" + b"1," * (SIZE // 2) + b"1]",
        "no text": one(b'"' + b"\xff" * SIZE + b'"'),
        "empty members of gzip": gzip.compress(b"") * (SIZE // 20),
        "a bomb": gzip.compress(b" " * 20_000_000, 1),
        "good, and half of it": good[: SIZE // 2],
    }


GOOD = {
    "forward": (
        EVENTS,
        json.dumps([{"tenant_id": "t", "event_type": "e", "payload": "x" * 930}] * 1000).encode(),
        forwarded,
    ),
    "ingest": (PATH, json.dumps(batch(*(event(f"e-{n}", payload="x" * 780) for n in range(1000)))).encode(), batched),
}


@pytest.mark.parametrize("name", GOOD)
def test_no_body_of_a_megabyte_costs_ten_times_a_good_one(name: str, tmp_path: Path) -> None:
    path, good, one = GOOD[name]

    async def cost(session: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, float]:
        """The status, and the seconds of computing that it took this process."""
        folded = {"Content-Encoding": "gzip"} if body.startswith(b"\x1f\x8b") else {}
        began = time.process_time()
        async with session.post(url, data=body, headers=JSON | folded) as answer:
            await answer.read()
        return answer.status, time.process_time() - began

    async def story() -> None:
        async with running(name, tmp_path) as at, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{at.port}{path}"
            status, fair = await cost(session, url, good)
            assert status in (200, 202)
            for case, body in hostile(one, good).items():
                status, seconds = await cost(session, url, body)
                assert status < 500, case
                assert seconds < 10 * fair, case

    asyncio.run(story())


HALVES = [
    b"",
    b"GET /api/health HTTP/1.1\r\nHost:",
    b"POST /api/v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n",
]


async def latency(url: str, requests: int) -> float:
    """The usual seconds of a request, each on a connection of its own; all of them are answered."""
    seconds = []
    for _ in range(requests):
        async with aiohttp.ClientSession() as session:
            began = time.perf_counter()
            async with session.get(url) as answer:
                assert answer.status == 200
                await answer.read()
            seconds.append(time.perf_counter() - began)
    return median(seconds)


async def beside(port: int, strangers: int, work: Callable[[], Awaitable[float]]) -> float:
    """Work beside so many connections that are idle or half open."""
    async with AsyncExitStack() as lines:
        for number in range(strangers):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            lines.callback(writer.close)
            writer.write(HALVES[number % len(HALVES)])
        return await work()


SERVICES = ["forward", "ingest", "scoreboard"]


@pytest.mark.parametrize("name", SERVICES)
def test_beside_idle_and_half_open_connections_everybody_is_answered(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with running(name, tmp_path, WEB_MAX_CONNECTIONS="50", WEB_MAX_CONNECTIONS_PER_ADDRESS="40") as at:
            for url in (f"http://127.0.0.1:{at.port}/api/health", f"http://127.0.0.1:{at.metrics_port}/metrics"):
                port = at.port if "health" in url else at.metrics_port
                await beside(port, 100, lambda url=url: latency(url, 10))  # type: ignore[misc]

    asyncio.run(story())


@pytest.mark.chaos
@pytest.mark.parametrize("name", SERVICES)
def test_a_thousand_of_them_do_not_double_the_time_of_an_answer(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with running(name, tmp_path) as at:
            url = f"http://127.0.0.1:{at.port}/api/health"
            ratios = []
            for _ in range(3):
                alone = await latency(url, 300)
                ratios.append(await beside(at.port, 1_000, lambda: latency(url, 300)) / alone)
            print(f"{name}: an answer beside a thousand connections takes {min(ratios):.2f} times as long")
            assert min(ratios) < 2

    asyncio.run(story())
