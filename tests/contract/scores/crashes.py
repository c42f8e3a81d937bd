"""Kills replicas at every step of submit, deliver and finish, and looks at what is left when others have settled it."""

from __future__ import annotations

import asyncio
import json
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
        return await asyncio.to_thread(self._live, job) == "died"

    def _live(self, job: dict[str, Any]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer: dict[str, str] = json.loads(self._process.stdout.readline())
        assert answer["end"] != "failed", answer
        return answer["end"]


class Ground(NamedTuple):
    """A database and a simulator for one crash after the other."""

    nursery: Nursery
    kind: Kind
    osm: Osm

    def job(self, key: str, **more: Any) -> dict[str, Any]:
        submission = {"points": POINTS, "user": ROBIN, "key": key}
        return {"url": self.kind.url, "osm_port": self.osm.port, "submit": [submission], **more}


async def crash(ground: Ground, die_at: int) -> bool:
    """One run with a death at that step; False when there is no such step. What must hold is asserted."""
    key = f"crash-{die_at}"
    before = {patrol: await ground.osm.points(patrol) for patrol, _ in POINTS}
    died = await ground.nursery.live(**ground.job(key, die_at=die_at))
    await settle(ground, key)
    assert {patrol: await ground.osm.points(patrol) - before[patrol] for patrol in before} == {EAGLES: 8, LIONS: 2}
    return died


async def settle(ground: Ground, key: str) -> None:
    """The phone sends again what it had no answer to; replicas come until nothing is left to do."""
    for _ in range(3):
        ground.kind.clock.shift(1000)
        await ground.nursery.live(**ground.job(key))
    with ground.kind.tables().reading() as ask:
        rows = ask("updates_history", section_id=SCOUTS, limit=3, before=2**62)
        assert ask("updates_pending", section_id=SCOUTS) == []
        assert ask("doubts_of", section_id=SCOUTS) == []
        assert len(rows) == len(POINTS)
        assert len({row["submission_id"] for row in rows}) == 1
