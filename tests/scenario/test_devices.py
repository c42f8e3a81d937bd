"""An hour in twenty halls: two hundred devices ask, and OSM hardly notices; it fails, blocks, and Redis dies."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from carrick.state.redis import RedisServer
from carrick.wiring import migrate
from carrick_osmsim.seed import rights
from carrick_osmsim.server import serving
from carrick_osmsim.simulator import Simulator
from tests.hall import Answer, Hall, Replica, add_devices
from tests.osm import EAGLES, EVENING, HAZEL, ROBIN, SCOUTS, WILLOW, Osm
from tests.redis_server import RedisProcess

USERS = (ROBIN, HAZEL, WILLOW)
SECTIONS = range(90001, 90021)
ALONE = 90021
"""A section with one device: what it costs is what the others may cost."""
MINUTE = 60


@pytest.fixture
def server() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.close()


class Evening:
    """Devices that ask when they are told to, and some that ask every minute whatever they are told."""

    def __init__(self, simulator: Simulator, hall: Hall, replicas: Sequence[Replica]) -> None:
        self.simulator = simulator
        self.hall = hall
        self.replicas = replicas
        self._devices: list[tuple[str, int]] = []
        self._rude: set[str] = set()
        self._next_at: dict[str, float] = {}

    async def fill(self, devices: int) -> None:
        """The devices, in turns of all sections and users; every tenth is rude."""
        for user_id in USERS:
            await self.hall.sign_in(self.replicas[0], user_id)
        turns = itertools.islice(zip(itertools.cycle(USERS), itertools.cycle(SECTIONS), strict=False), devices)
        wanted = [*turns, (ROBIN, ALONE)]
        tokens = add_devices(self.replicas[0], wanted)
        self._devices = [(token, section_id) for token, (_, section_id) in zip(tokens, wanted, strict=True)]
        self._rude = {*tokens[::10], tokens[-1]}

    async def minutes(self, count: int) -> list[tuple[int, Answer]]:
        """Let time pass; what devices got, with their sections. Nobody is ever told to come back in the past."""
        got: list[tuple[int, Answer]] = []
        for _ in range(count):
            await self.hall.advance(MINUTE)
            now = self.hall.now()
            due = [
                one for one in self._devices if one[0] in self._rude or self._next_at.get(one[0], 0) <= now.timestamp()
            ]
            replicas = itertools.cycle(self.replicas)
            answers = await asyncio.gather(*(next(replicas).get(token) for token, _ in due))
            for (token, section_id), answer in zip(due, answers, strict=True):
                assert answer.status == 200, answer.json
                assert answer.expires_at > now
                self._next_at[token] = 0 if token in self._rude else answer.expires_at.timestamp()
                got.append((section_id, answer))
        return got

    def calls(self, after: int = 0) -> Counter[int]:
        """How often OSM was asked for the patrols of each section."""
        return Counter(
            int(call.query["sectionid"]) for call in self.simulator.calls.after(after) if call.endpoint == "patrols"
        )

    @property
    def last_call(self) -> int:
        return self.simulator.calls.last_number


@asynccontextmanager
async def evening(
    database: Path | str, *, devices: int, replicas: int = 1, redis: str | None = None
) -> AsyncIterator[Evening]:
    simulator = Simulator(start=EVENING)
    world = simulator.world
    for section_id in (*SECTIONS, ALONE):
        section = copy.deepcopy(world.sections[SCOUTS])
        section.section_id = section_id
        world.sections[section_id] = section
        for user_id in USERS:
            world.users[user_id].rights[section_id] = rights("write")
    async with asyncio.timeout(100), AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(simulator))
        hall = Hall(Osm(port), database)
        made = [
            await stack.enter_async_context(hall.replica(f"{n}", RedisServer(redis) if redis else None))
            for n in range(replicas)
        ]
        told = Evening(simulator, hall, made)
        await told.fill(devices)
        yield told


def test_two_hundred_devices_cost_osm_no_more_than_one_in_each_section(sqlite_path: Path) -> None:
    async def story() -> None:
        async with evening(sqlite_path, devices=200) as tonight:
            answers = await tonight.minutes(60)
            calls = tonight.calls()
            assert len(answers) > 2 * 60 * 12
            assert set(calls) == {*SECTIONS, ALONE}
            assert max(calls.values()) <= calls[ALONE] <= 12
            profiles = [call for call in tonight.simulator.calls.after(0) if call.endpoint == "resource"]
            assert len(profiles) <= len(USERS) * len(SECTIONS) + 1

    migrate(f"sqlite:///{sqlite_path}")
    asyncio.run(story())


def test_an_outage_costs_ten_calls_a_section_at_most_and_a_block_none(sqlite_path: Path) -> None:
    async def story() -> None:
        async with evening(sqlite_path, devices=40) as tonight:
            await tonight.minutes(6)
            await tonight.hall.osm.control("fault", kind="server_error", times=None)
            before = tonight.last_call
            during = await tonight.minutes(10)
            during += await tonight.minutes(1)
            asked = tonight.calls(before)
            assert 1 <= min(asked.values()) <= max(asked.values()) <= 10
            everything = Counter(call.endpoint for call in tonight.simulator.calls.after(before))
            assert everything.total() <= 10 * (len(SECTIONS) + 1)
            assert any(answer.json["stale"] for _, answer in during)
            await tonight.hall.osm.control("clear-faults")
            await tonight.minutes(10)
            assert not any(answer.json["stale"] for _, answer in await tonight.minutes(6))
            await tonight.hall.osm.control("block")
            await tonight.minutes(6)  # somebody has been told by now
            before = tonight.last_call
            blocked = await tonight.minutes(20)
            assert tonight.last_call == before
            assert all(answer.json["service_blocked"] and answer.json["stale"] for _, answer in blocked)
            block = tonight.simulator.world.block
            assert block is not None
            assert not block.permanent

    migrate(f"sqlite:///{sqlite_path}")
    asyncio.run(story())


def test_answers_stay_right_and_cost_no_more_calls_while_redis_is_killed_flushed_and_back(
    sqlite_path: Path, server: RedisProcess
) -> None:
    async def story() -> None:
        async with evening(sqlite_path, devices=40, replicas=2, redis=server.url) as tonight:
            await tonight.minutes(12)
            assert any(b"osm_ratelimit" in key for key in server.client().scan_iter())
            server.kill()
            for section_id in SECTIONS:
                await tonight.hall.osm.control("points", section_id=section_id, patrol_id=EAGLES, points=77)
            await tonight.minutes(6)
            during = await tonight.minutes(6)
            assert {answer.points["Eagles"] for section_id, answer in during if section_id != ALONE} == {77}
            assert all(replica.kv.health.degraded for replica in tonight.replicas)
            server.start()
            with server.client() as client:
                client.flushall()
                during += await tonight.minutes(12)
                assert any(b"osm_ratelimit" in key for key in client.scan_iter())
            assert {answer.points["Eagles"] for section_id, answer in during if section_id != ALONE} == {77}
            assert not any(answer.json["stale"] for _, answer in during)
            assert max(tonight.calls().values()) <= 36 / 5 + 1

    migrate(f"sqlite:///{sqlite_path}")
    asyncio.run(story())


def test_two_replicas_on_postgresql_cost_osm_as_much_as_one(postgres_url: str) -> None:
    async def story() -> None:
        async with evening(postgres_url, devices=60, replicas=2) as tonight:
            answers = await tonight.minutes(21)
            calls = tonight.calls()
            assert max(calls.values()) <= calls[ALONE] <= 5
            assert {answer.json["stale"] for _, answer in answers} == {False}

    asyncio.run(story())
