"""Kills replicas at every step of submit, deliver and finish, and looks at what is left when others have settled it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.contract.scores.world import Kind
from tests.osm import EAGLES, LIONS, ROBIN, SCOUTS, Osm

ROOT = Path(__file__).parents[3]
POINTS = [(EAGLES, 5), (LIONS, 2), (EAGLES, 3)]


class Nursery:
    """Forks replicas; single-threaded, so that forking is safe."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.scores.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    async def live(self, **job: Any) -> bool:
        """One replica; whether it died."""
        await self.start(**job)
        return await self.ended()

    async def start(self, **job: Any) -> int:
        """A replica begins to live; its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int((await asyncio.to_thread(self._answer))["pid"])

    async def ended(self) -> bool:
        """Wait until it has ended; whether it died."""
        answer = await asyncio.to_thread(self._answer)
        assert answer["end"] != "failed", answer
        return bool(answer["end"] == "died")

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class Ground(NamedTuple):
    """A database and a simulator for one crash after the other."""

    nursery: Nursery
    kind: Kind
    osm: Osm
    redis_url: str = ""
    other: Nursery | None = None
    """Where a second replica lives, if there is one."""

    def job(self, key: str, **more: Any) -> dict[str, Any]:
        submission = {"points": POINTS, "user": ROBIN, "key": key}
        places = {"url": self.kind.url, "osm_port": self.osm.port, "redis_url": self.redis_url}
        return {**places, "submit": [submission], **more}


async def crash(ground: Ground, die_at: int) -> bool:
    """One run with a death at that step; False when there is no such step. What must hold is asserted."""
    key = f"crash-{die_at}"
    before = await scores(ground)
    dying = ground.nursery.live(**ground.job(key, die_at=die_at))
    if ground.other is None:
        died = await dying
    else:
        died, _ = await asyncio.gather(dying, ground.other.live(**ground.job(key, rounds=3)))
    await settle(ground, key, before)
    return died


async def crash_in_call(ground: Ground, endpoint: str, point: str) -> None:
    """One run in which the replica dies while OSM has its request, before or after it was applied."""
    key, before = f"crash-{endpoint}-{point}", await scores(ground)
    await ground.osm.control("hold", name="call", point=point, endpoint=endpoint)
    replica = await ground.nursery.start(**ground.job(key))
    await ground.osm.reached("call")
    os.kill(replica, signal.SIGKILL)
    assert await ground.nursery.ended()
    await ground.osm.control("release", name="call")
    await settle(ground, key, before)


async def scores(ground: Ground) -> dict[int, int]:
    """What OSM has."""
    return {patrol: await ground.osm.points(patrol) for patrol, _ in POINTS}


async def settle(ground: Ground, key: str, before: dict[int, int]) -> None:
    """The phone sends again what it had no answer to; replicas come until nothing is left to do."""
    for _ in range(3):
        ground.kind.clock.shift(1000)
        await ground.nursery.live(**ground.job(key))
    with ground.kind.tables().reading() as ask:
        rows = ask("updates_history", section_id=SCOUTS, limit=3, before=2**62)
        assert ask("updates_pending", section_ids=[SCOUTS]) == []
        assert ask("doubts_of", section_id=SCOUTS) == []
        assert len(rows) == len(POINTS)
        assert len({row["submission_id"] for row in rows}) == 1
    after = await scores(ground)
    assert {patrol: after[patrol] - before[patrol] for patrol in before} == {EAGLES: 8, LIONS: 2}
