"""The device side of the scoreboard against the simulator: replicas on one database, and one clock for all of them."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp

from carrick.relay.threads import Threads
from carrick.state.beside import Redis
from carrick.state.shared import SharedState
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.web.routes import application
from carrick.web.server import serving
from carrick_scoreboard.admission import Admission
from carrick_scoreboard.credentials import Credentials
from carrick_scoreboard.metrics import ScoreboardMetrics
from carrick_scoreboard.osm.answers import Profile
from carrick_scoreboard.osm.client import Application, OsmClient, Tokens
from carrick_scoreboard.patrols import Patrols
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.refreshes import Refreshes
from carrick_scoreboard.routes import device_socket
from carrick_scoreboard.routes import patrols as patrol_routes
from carrick_scoreboard.sealing import KeyRing, digest
from carrick_scoreboard.standing import SharedStanding
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.sections import SectionSettings
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.store.tables import Tables
from tests.osm import EVENING, ROBIN, SCOUTS, Osm, simulated
from tests.replicas import Time, replica
from tests.sqlite_file import whole_file

KEYS = KeyRing({"test": b"k" * 32})
ORIGIN = "http://localhost:8080"
APPLICATION = "carrick-demo", "not-a-secret"
PATIENCE_SECONDS = 60
serial = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """What a device got."""

    status: int
    headers: Mapping[str, str]
    json: Any

    @property
    def points(self) -> dict[str, int]:
        return {patrol["name"]: patrol["score"] for patrol in self.json["patrols"]}

    @property
    def expires_at(self) -> datetime:
        return datetime.fromisoformat(self.json["cache_expires_at"])


@dataclass
class Replica:
    """One process of the scoreboard, as far as devices see it."""

    kv: SharedState
    blocks: Blocks
    devices: Devices
    sections: SectionSettings
    stored: StoredCredentials
    standing: SharedStanding
    credentials: Credentials
    client: OsmClient
    shelf: Shelf
    patrols: Patrols
    admission: Admission
    sockets: device_socket.Sockets
    metrics: ScoreboardMetrics
    tables: Tables
    session: aiohttp.ClientSession
    port: int
    pending: dict[str, int] = field(default_factory=dict)

    async def get(self, token: str, path: str = "/api/v1/patrols") -> Answer:
        """What a device with that token gets."""
        headers = {"Authorization": f"Bearer {token}"}
        async with self.session.get(f"http://127.0.0.1:{self.port}{path}", headers=headers) as response:
            return Answer(response.status, response.headers.copy(), await response.json())

    def value(self, metric: str, **labels: str) -> float:
        """A figure of this process; 0 where nothing was counted yet."""
        return self.metrics.registry.get_sample_value(metric, labels) or 0.0


class Hall:
    """Everything of one test: the simulator, the database, the clock, and who shows what."""

    def __init__(self, osm: Osm, database: Path | str) -> None:
        self.osm = osm
        self.database = database
        clock: Clock = SqliteClock(database) if isinstance(database, Path) else PostgresClock(database)
        clock.shift((EVENING - datetime.now(UTC)).total_seconds())
        self.time = Time(clock)
        self._began = self.time.now
        self.look_seconds = 0.0
        """How long replicas remember what they saw: not at all, so that what a test changes shows at once."""

    def now(self) -> datetime:
        return EVENING + timedelta(seconds=self.time.now - self._began)

    async def advance(self, seconds: float) -> None:
        """Let time pass for the replicas, their database and OSM."""
        self.time.shift(seconds)
        await self.osm.control("clock", advance_seconds=seconds)

    @asynccontextmanager
    async def replica(self, name: str = "one", redis: Redis | None = None, **options: Any) -> AsyncIterator[Replica]:
        """A replica with threads, connections and a port of its own."""
        async with AsyncExitStack() as stack:
            kv = await stack.enter_async_context(replica(self.database, redis, self.time))
            threads = Threads(4)
            stack.callback(threads.close)
            path = self.database
            tables: Tables = SqliteTables(path) if isinstance(path, Path) else PostgresTables(path)
            stack.callback(tables.close)
            yield await self._built(stack, kv, threads, tables, name, **options)

    async def _built(
        self, stack: AsyncExitStack, kv: SharedState, threads: Threads, tables: Tables, name: str, **options: Any
    ) -> Replica:
        blocks, stored, devices, sections = (
            Blocks(tables),
            StoredCredentials(tables),
            Devices(tables),
            SectionSettings(tables),
        )
        metrics = ScoreboardMetrics(blocks, now=self.now)
        standing = SharedStanding(kv, blocks, threads, metrics, now=self.now)
        client = OsmClient(
            Application(self.osm.url, *APPLICATION), standing, metrics, timeout_seconds=2.0, now=self.now
        )
        stack.push_async_callback(client.close)
        credentials = Credentials(stored, KEYS, client, threads, name, **options)
        pending: dict[str, int] = {}

        async def shown(sections: Collection[int]) -> Mapping[int, object]:
            return await shelf.shown([*sections])

        refreshes = Refreshes(kv, shown)
        shelf = Shelf(kv, kept_seconds=192 * 3600, now=self.now, told=refreshes.tell)

        async def not_delivered(sections: Collection[int]) -> Mapping[int, Mapping[str, int]]:
            return dict.fromkeys(sections, pending)

        patrols = Patrols(
            shelf, standing, credentials, client, devices, sections, threads, metrics,
            pending=not_delivered, look_seconds=self.look_seconds, now=self.now,
        )  # fmt: skip
        stack.push_async_callback(patrols.close)
        admission = Admission(devices, threads, refused=metrics.refused, now=self.now, clock=self.time.clock)
        sockets = device_socket.Sockets(admission, refreshes, metrics, origin=ORIGIN, look_seconds=self.look_seconds)
        stack.push_async_callback(sockets.close)
        made = [*patrol_routes.routes(patrols, admission, now=self.now), *device_socket.routes(sockets)]
        port = await stack.enter_async_context(serving(application(made, max_body_bytes=1024), "127.0.0.1", 0))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        return Replica(
            kv, blocks, devices, sections, stored, standing, credentials, client, shelf, patrols, admission, sockets,
            metrics, tables, session, port, pending,
        )  # fmt: skip

    async def sign_in(self, replica: Replica, user_id: int = ROBIN, seconds: int = 3600) -> None:
        """The user has signed in; the access token is good for so long."""
        pair = await self.osm.control("tokens", user_id=user_id)
        tokens = Tokens(access_token=pair["access_token"], refresh_token=pair["refresh_token"], expires_in=seconds)
        await replica.credentials.sign_in(tokens, Profile(user_id=user_id, full_name="Somebody"))

    async def device(self, replica: Replica, user_id: int = ROBIN, section_id: int = SCOUTS) -> str:
        """The token of a new device of a user who is signed in; its term is not known."""
        if replica.stored.get(user_id) is None:
            await self.sign_in(replica, user_id)
        return add_device(replica, user_id, section_id)

    async def calls(self, endpoint: str | None = None) -> list[dict[str, Any]]:
        """The calls that OSM has got."""
        calls = await self.osm.calls(limit=1000)
        return [call for call in calls if endpoint is None or call["endpoint"] == endpoint]


def add_device(replica: Replica, user_id: int, section_id: int) -> str:
    """A device that was let in; its token."""
    [token] = add_devices(replica, [(user_id, section_id)])
    return token


def add_devices(replica: Replica, wanted: Sequence[tuple[int, int]]) -> list[str]:
    """Devices of these users for these sections; their tokens."""
    clients = Clients(replica.tables)
    if clients.get("display") is None:
        clients.add("display", "", "", actor="test")
    tokens = [f"device-token-{next(serial)}" for _ in wanted]
    with replica.tables.writing() as ask:
        for token, (user_id, section_id) in zip(tokens, wanted, strict=True):
            given = {"osm_user_id": user_id, "section_id": section_id, "term_id": None, "term_end_date": None}
            [row] = ask("device_add", client_id="display", name="Hall", **given)
            ask("device_give_token", id=row["id"], token_digest=digest(token))
    return tokens


def in_hall(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that gets a hall on a SQLite file as its first argument."""

    @functools.wraps(test)
    def told(*given: Any, sqlite_path: Path, **named: Any) -> None:
        whole_file(sqlite_path)
        asyncio.run(_within(sqlite_path, test, *given, **named))

    given = list(inspect.signature(test).parameters.values())[1:]
    path = inspect.Parameter("sqlite_path", inspect.Parameter.KEYWORD_ONLY)
    told.__signature__ = inspect.Signature([*given, path])  # type: ignore[attr-defined]
    return told


async def _within(database: Path | str, test: Callable[..., Awaitable[None]], *given: Any, **named: Any) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm:
        await test(Hall(osm, database), *given, **named)


def run_in_hall(database: Path | str, test: Callable[[Hall], Awaitable[None]]) -> None:
    """The same on a database that is there."""
    asyncio.run(_within(database, test))
