"""Many displays at once while Redis goes and comes back and OSM limits: `python -m bench.displays`, half a minute.

A real scoreboard on PostgreSQL, a Redis server and the simulator of OSM are processes of their own on this machine; this
one is the displays. It prints a table with a line for each phase, and ends with 1 when a display got another status than
it should have, or OSM was asked more often than the cache allows.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
from rich.console import Console
from rich.table import Table
from tests.osm import ROBIN, SCOUTS, Osm, OsmProcess
from tests.ports import free_port
from tests.postgres_server import drop_database, fresh_database
from tests.redis_server import RedisProcess
from tests.scenario.leading import KEYS
from tests.scenario.processes import ServiceProcess
from tests.scoreboard import CLIENT
from tests.service import allow_displays, environment, register, sign_in

from bench.ingest import wait_for
from bench.patrols import add_device
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.wiring import opened_tables

CUBS = 40103
"""Robin leads the scouts and helps the cubs."""
DISPLAYS = 200
ROUNDS = 10
LONGEST_SECONDS = 180.0


class Answer(NamedTuple):
    """What one display got, and after how many seconds. `hit`: nothing waited for OSM."""

    status: int
    seconds: float
    hit: bool


class Phase(NamedTuple):
    """What all displays got. OSM was asked `calls` times meanwhile, and may be asked `most` times."""

    name: str
    expected: int
    answers: Sequence[Answer]
    calls: int
    most: int

    @property
    def is_well(self) -> bool:
        return {answer.status for answer in self.answers} == {self.expected} and self.calls <= self.most

    def milliseconds(self, part: float) -> float:
        """So long that part of the answers took at most."""
        return 1000 * sorted(answer.seconds for answer in self.answers)[int(part * (len(self.answers) - 1))]


class Hall(NamedTuple):
    """A scoreboard at work, what it stands on, and the displays of each section."""

    url: str
    osm: Osm
    redis: RedisProcess
    tokens: dict[int, list[str]]
    session: aiohttp.ClientSession

    async def phase(
        self, name: str, section: int = SCOUTS, *, rounds: int, expected: int = 200, most: int = 0
    ) -> Phase:
        """All displays of the section begin at the same moment, and each asks again when it has its answer."""
        before = await self._calls()
        told = await asyncio.gather(*[self._ask(token, rounds) for token in self.tokens[section]])
        answers = [answer for one in told for answer in one]
        return Phase(name, expected, answers, await self._calls() - before, most)

    async def _ask(self, token: str, rounds: int) -> list[Answer]:
        answers = []
        for _ in range(rounds):
            began = time.perf_counter()
            headers = {"Authorization": f"Bearer {token}"}
            async with self.session.get(f"{self.url}/api/v1/patrols", headers=headers) as answer:
                await answer.read()
            hit = answer.headers.get("X-Cache") == "HIT"
            answers.append(Answer(answer.status, time.perf_counter() - began, hit))
        return answers

    async def _calls(self) -> int:
        return len(await self.osm.calls(limit=1_000_000))


async def evening(hall: Hall) -> AsyncIterator[Phase]:
    """The phases, one after the other. The profile and the section are read once; after that nothing is."""
    yield await hall.phase("nothing known, all at once", rounds=1, most=2)
    yield await hall.phase("from cache", rounds=ROUNDS)
    asking = asyncio.create_task(hall.phase("Redis is killed meanwhile", rounds=ROUNDS))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(hall.redis.kill)
    yield await asking
    yield await hall.phase("without Redis", rounds=ROUNDS)
    asking = asyncio.create_task(hall.phase("Redis comes back meanwhile", rounds=ROUNDS))
    await asyncio.to_thread(hall.redis.start)
    yield await asking
    yield await hall.phase("with Redis again", rounds=ROUNDS)
    await hall.osm.control("fault", kind="rate_limited", user_id=ROBIN, times=None, retry_after=600)
    yield await hall.phase("OSM limits, no scores yet", CUBS, rounds=1, expected=429, most=1)
    yield await hall.phase("OSM limits, from cache", rounds=ROUNDS)


async def told(url: str, osm: Osm, redis: RedisProcess, database: str) -> list[Phase]:
    """One display is signed in on the pages, the others beside it in the tables; then all of them ask."""
    async with asyncio.timeout(LONGEST_SECONDS):
        await sign_in(url, str(SCOUTS))
        tokens: dict[int, list[str]] = {}
        with opened_tables(database) as tables:
            for n in range(2 * DISPLAYS):
                section = SCOUTS if n < DISPLAYS else CUBS
                token = add_device(Devices(tables), n, section, client_id=CLIENT, user_id=ROBIN)
                tokens.setdefault(section, []).append(token)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=DISPLAYS)) as session:
            return [phase async for phase in evening(Hall(url, osm, redis, tokens, session))]


@contextmanager
def running() -> Iterator[tuple[str, Osm, RedisProcess, str]]:
    """A scoreboard's address, its OSM, its Redis and its database."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = fresh_database(18)
        stack.callback(drop_database, 18, database)
        redis = RedisProcess(keep="never")
        stack.callback(redis.close)
        osm = stack.enter_context(OsmProcess(folder)).osm
        port = free_port()
        settings = environment(database, osm, port, REDIS_URL=redis.url, **KEYS)
        allow_displays(database)
        stack.enter_context(ServiceProcess("scoreboard", folder, **settings))
        wait_for(port)
        asyncio.run(register(osm, port))
        yield f"http://127.0.0.1:{port}", osm, redis, database


def shown(phases: Sequence[Phase]) -> Table:
    """A line for each phase."""
    table = Table(title=f"{DISPLAYS} displays at once")
    for heading in ("phase", "answers", "status", "cached", "p50", "p99", "OSM calls", "of at most"):
        table.add_column(heading, justify="left" if heading == "phase" else "right", no_wrap=True)
    for phase in phases:
        statuses = ", ".join(map(str, sorted({answer.status for answer in phase.answers})))
        hits = sum(answer.hit for answer in phase.answers) / len(phase.answers)
        p50, p99 = (f"{phase.milliseconds(part):.0f} ms" for part in (0.5, 0.99))
        count, calls, most = str(len(phase.answers)), str(phase.calls), str(phase.most)
        table.add_row(
            phase.name, count, statuses, f"{hits:.0%}", p50, p99, calls, most, style="" if phase.is_well else "red"
        )
    return table


def main() -> int:
    with running() as parts:
        phases = asyncio.run(told(*parts))
    console = Console()
    console.width = max(console.width, 110)  # so wide is the table, also in a log
    console.print(shown(phases))
    return 0 if all(phase.is_well for phase in phases) else 1


if __name__ == "__main__":
    sys.exit(main())
