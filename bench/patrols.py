"""GET /api/v1/patrols from cache over loopback, beside an empty route of the same server; and 200 devices at once.

`python -m bench --only patrols`. One server process holds 200 devices of 20 sections; a client process of this kind sends
the requests on 200 connections that stay open. The client parses nothing but lengths, so that the server is what is measured.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from bench.ingest import serving as process
from bench.measure import Result
from bench.postgres import database
from carrick import wiring
from carrick.ops.collector import spare_the_collector
from carrick.relay.threads import Threads
from carrick.settings import read_settings
from carrick.web.routes import Call, Route, application
from carrick.web.server import serving
from carrick_scoreboard.admission import Admission
from carrick_scoreboard.credentials import Credentials
from carrick_scoreboard.metrics import ScoreboardMetrics
from carrick_scoreboard.osm.answers import Patrol, Profile
from carrick_scoreboard.osm.client import Application, OsmClient, Tokens
from carrick_scoreboard.patrols import Patrols
from carrick_scoreboard.patrols.known import SectionScores, Term
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.routes import patrols as patrol_routes
from carrick_scoreboard.sealing import KeyRing, digest
from carrick_scoreboard.standing import SharedStanding
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.scores import Scores
from carrick_scoreboard.store.sections import SectionSettings
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.store.tables import Tables

PORT = 18083
DEVICES = 200
SECTIONS = 20
REQUESTS = 10_000
PACE_SECONDS = 1.0
"""How often a device asks in the case that measures latency; real ones ask every five minutes."""


class Nothing(msgspec.Struct, frozen=True):
    """What the empty route answers."""

    status: str = "ok"


def opened(url: str) -> Tables:
    """The tables of that database."""
    return PostgresTables(url) if url.startswith("postgres") else SqliteTables(url.removeprefix("sqlite:///"))


async def serve(url: str) -> None:
    """The device side with everything in cache, for ever."""
    spare_the_collector()
    async with AsyncExitStack() as stack:
        tables, threads = opened(url), Threads(4)
        kv = wiring.shared_state(read_settings({"DATABASE_URL": url}), threads)
        blocks, devices = Blocks(tables), Devices(tables)
        metrics = ScoreboardMetrics(blocks)
        standing = SharedStanding(kv, blocks, threads, metrics)
        client = OsmClient(Application("http://127.0.0.1:1", "bench", "none"), standing, metrics)
        credentials = Credentials(StoredCredentials(tables), KeyRing({"k": b"k" * 32}), client, threads, "bench")
        shelf = Shelf(kv, kept_seconds=86_400, now=lambda: datetime.now(UTC))
        await _fill(Clients(tables), devices, credentials, shelf)
        sections, scores = SectionSettings(tables), Scores(tables)

        async def pending(section_ids: Collection[int]) -> Mapping[int, Mapping[str, int]]:
            return await threads.call(scores.pending, section_ids)

        patrols = Patrols(shelf, standing, credentials, client, devices, sections, threads, metrics, pending=pending)
        routes = [*patrol_routes.routes(patrols, Admission(devices, threads)), _empty()]
        await stack.enter_async_context(serving(application(routes, max_body_bytes=1024), "127.0.0.1", PORT))
        await asyncio.Event().wait()


def _empty() -> Route:
    async def empty(_: Call[Any, Any]) -> Nothing:
        return Nothing()

    return Route(method="GET", path="/empty", summary="Nothing", handle=empty, gives=Nothing)


async def _fill(clients: Clients, devices: Devices, credentials: Credentials, shelf: Shelf) -> None:
    clients.add("display", "", "", actor="bench")
    now = datetime.now(UTC).replace(microsecond=0)
    tokens = Tokens(access_token="a", refresh_token="r", expires_in=86_400)
    await credentials.sign_in(tokens, Profile(user_id=1, full_name="Bench"))
    for section in range(1, SECTIONS + 1):
        found = tuple(Patrol(str(section * 10 + n), f"Patrol {n}", 30 + n) for n in range(6))
        until = now + timedelta(hours=12)
        await shelf.put_scores(section, SectionScores(patrols=found, cached_at=now, valid_until=until, term_id=1))
        await shelf.put_term(section, 1, Term(found="term", checked_at=now, term_id=1))
    for n in range(DEVICES):
        add_device(devices, n, 1 + n % SECTIONS)


def add_device(devices: Devices, n: int, section_id: int, *, client_id: str = "display", user_id: int = 1) -> str:
    """A display of that section, signed in by that user; its token."""
    user_code = "".join("BCDFGHJKLM"[int(d)] for d in f"{n:08}")
    code = devices.begin(digest(f"code-{n}"), user_code, client_id, address="", country="", poll_seconds=5, seconds=300)
    assert code is not None
    devices.approve(code, osm_user_id=user_id, section_id=section_id, name=f"{n}", term_id=None, term_end_date=None)
    devices.poll(digest(f"code-{n}"), client_id, digest(f"token-{n}"))
    return f"token-{n}"


class Connection(asyncio.Protocol):
    """One device's connection: asks again when told; notes how long each answer took."""

    def __init__(self, n: int, path: str, answered: Callable[[Connection], None]) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-{n}\r\n\r\n".encode()
        self._answered = answered
        self._received = b""
        self.seconds: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def ask(self) -> None:
        """Send the request."""
        self._asked_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._received.decode())
        self._received = b""
        self.seconds.append(time.perf_counter() - self._asked_at)
        self._answered(self)


async def _connected(path: str, answered: Callable[[Connection], None]) -> list[Connection]:
    loop = asyncio.get_running_loop()
    connections = [Connection(n, path, answered) for n in range(DEVICES)]
    for connection in connections:
        await loop.create_connection(partial(_same, connection), "127.0.0.1", PORT)
    return connections


def _same(connection: Connection) -> Connection:
    return connection


async def _saturate(path: str) -> float:
    """Requests per second, every connection asking again at once."""
    left = REQUESTS
    done = asyncio.Event()

    def answered(connection: Connection) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            done.set()
        elif left > 0:
            connection.ask()

    connections = await _connected(path, answered)
    started = time.perf_counter()
    for connection in connections:
        connection.ask()
    await done.wait()
    return REQUESTS / (time.perf_counter() - started)


async def _paced(path: str, rounds: int) -> list[float]:
    """How long answers take when each device asks once in PACE_SECONDS, not in step with the others."""
    connections = await _connected(path, lambda _: None)
    for _ in range(rounds):
        for connection in connections:
            connection.ask()
            await asyncio.sleep(PACE_SECONDS / DEVICES)
    await asyncio.sleep(0.5)
    return [seconds for connection in connections for seconds in connection.seconds[1:]]


def cases(quick: bool) -> Iterator[Result]:
    """From cache, on SQLite and PostgreSQL."""
    rounds = 2 if quick else 9
    with tempfile.TemporaryDirectory() as folder, database() as url:
        for backend, at in (("SQLite", f"sqlite:///{folder}/board.db"), ("PostgreSQL", url)):
            wiring.migrate(at)
            with process(["-m", "bench.patrols", at], PORT):
                rates: dict[str, list[float]] = {"/api/v1/patrols": [], "/empty": []}
                for turn in range(rounds + 1):
                    for path, measured in rates.items():
                        rate = asyncio.run(_saturate(path))
                        if turn:
                            measured.append(rate)
                ours, other = map(statistics.median, rates.values())
                yield Result(f"patrols from cache, {backend}", ours, other, 0.6, "empty route, same server")
                yield from _latency(backend, 3 if quick else 20)


def _latency(backend: str, rounds: int) -> Iterator[Result]:
    """p99 beside the limit; a ratio of 1 or more is within it."""
    taken = sorted(asyncio.run(_paced("/api/v1/patrols", rounds)))
    p99 = 1000 * taken[int(len(taken) * 0.99)]
    yield Result(f"patrols, {DEVICES} devices, {backend}: limit beside p99", 20.0, p99, 1.0, "p99", " ms")


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {"patrols": cases}

if __name__ == "__main__":
    os.environ.pop("PORT", None)
    asyncio.run(serve(sys.argv[1]))
