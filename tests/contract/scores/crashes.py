"""Kills replicas at every step of submit, deliver and finish, and looks at what is left when others have settled it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from carrick.outbox.opening import open_store
from tests.contract.scores.world import Kind, bury
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, SCOUTS, Osm

ROOT = Path(__file__).parents[3]
POINTS = [(EAGLES, 5), (LIONS, 2), (EAGLES, 3)]
CALLS = list(product(["patrols", "points"], ["before_apply", "after_apply", "before_answer"]))
"""Where a request is while the replica that made it dies."""
LONG_TIMEOUT_SECONDS = 95
STALL_SECONDS = 30.0
"""A write may leave while its timeout still fits into the lease of 120 seconds; after this long it does not."""
BESIDE_SECONDS = 1.0
"""So long a second replica works beside one that stands still; then it has ended, or waits for what that one holds."""


class Ended(NamedTuple):
    """How a replica ended: `died`, or `done` with these steps; or it has `stopped`."""

    how: str
    steps: list[str]


class Nursery:
    """Forks replicas; single-threaded, so that forking is safe."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.scores.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if kind is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # a replica that stands still would be waited for
        self._process.wait(60)

    async def live(self, **job: Any) -> Ended:
        """One replica, and its end."""
        await self.start(**job)
        return await self.ended()

    async def start(self, **job: Any) -> int:
        """A replica begins to live; its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int((await asyncio.to_thread(self._answer))["pid"])

    async def ended(self) -> Ended:
        """Wait until it has ended, or stands still."""
        answer = await asyncio.to_thread(self._answer)
        assert answer["end"] != "failed", answer
        return Ended(answer["end"], answer.get("said", []))

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class Ground(NamedTuple):
    """A database and a simulator for one crash after the other."""

    nursery: Nursery
    kind: Kind
    osm: Osm
    other: Nursery | None = None
    """Where a second replica lives, if there is one."""

    def job(self, key: str, **more: Any) -> dict[str, Any]:
        submission = {"points": POINTS, "user": ROBIN, "key": key}
        places = {"url": self.kind.url, "osm_port": self.osm.port}
        return {**places, "submit": [submission], **more}


async def crash(ground: Ground, step: int) -> bool:
    """One run with a death at that step; False when there is no such step. What must hold is asserted."""
    key, before = f"crash-{step}", await scores(ground)
    ended = await ground.nursery.live(**ground.job(key, at=step))
    await settle(ground, key, before)
    return ended.how == "died"


async def crash_beside(ground: Ground, step: int) -> bool:
    """As `crash`; but while the replica is at that step, another one takes the same request and looks for work.

    What the first one has locked the other waits for until the first one is dead.
    """
    assert ground.other is not None
    key, before = f"beside-{step}", await scores(ground)
    replica = await ground.nursery.start(**ground.job(key, at=step, stops=True))
    stopped = (await ground.nursery.ended()).how == "stopped"
    other = asyncio.create_task(ground.other.live(**ground.job(key, rounds=3)))
    if stopped:
        await asyncio.wait([other], timeout=BESIDE_SECONDS)
        os.kill(replica, signal.SIGKILL)
        assert (await ground.nursery.ended()).how == "died"
    await other
    await settle(ground, key, before)
    return stopped


async def crash_in_race(ground: Ground, step: int) -> bool:
    """As `crash`; another replica begins with the same request at the same time, and may do all of the work."""
    assert ground.other is not None
    key, before = f"race-{step}", await scores(ground)
    first = ground.nursery.live(**ground.job(key, at=step))
    ended, _ = await asyncio.gather(first, ground.other.live(**ground.job(key, rounds=3)))
    await settle(ground, key, before)
    return ended.how == "died"


async def crash_in_call(ground: Ground, endpoint: str, point: str) -> None:
    """One run in which the replica dies while OSM has its request, before or after it was applied."""
    key, before = f"crash-{endpoint}-{point}", await scores(ground)
    await ground.osm.control("hold", name="call", point=point, endpoint=endpoint)
    replica = await ground.nursery.start(**ground.job(key))
    await ground.osm.reached("call")
    if ground.other is not None:
        await ground.other.live(**ground.job(key, rounds=3))
    os.kill(replica, signal.SIGKILL)
    assert (await ground.nursery.ended()).how == "died"
    await ground.osm.control("release", name="call")
    await settle(ground, key, before)


class Decision(NamedTuple):
    """What a leader does about five points in doubt, and what has become of their write."""

    choice: str
    fault: str

    @property
    def points(self) -> int:
        """What OSM has of them in the end."""
        return 0 if self == ("discard", "drop_before_apply") else 5


async def crash_deciding(ground: Ground, decision: Decision, step: int) -> bool:
    """One run with a death at that step while a leader decides and OSM is asked; False when there is no such step.

    With a second replica, the first stands still at that step, and the leader decides the same there, until it is dead.
    """
    before = await ground.osm.points(EAGLES)
    await lose(ground, decision.fault, f"{decision}-{step}")
    job = {**ground.job(""), "submit": [], "decide": decision.choice}
    replica = await ground.nursery.start(**job, at=step, stops=ground.other is not None)
    ended = await ground.nursery.ended()
    if ground.other is not None:
        other = asyncio.create_task(ground.other.live(**job, rounds=3))
        if ended.how == "stopped":
            await asyncio.wait([other], timeout=BESIDE_SECONDS)
            os.kill(replica, signal.SIGKILL)
            ended = await ground.nursery.ended()
        await other
    for _ in range(3):  # what is still there, the leader decides again
        ground.kind.clock.shift(1000)
        if "before GET" not in (await ground.nursery.live(**job)).steps:
            break
    await check_decided(ground, before, decision.points)
    return ended.how == "died"


async def lose(ground: Ground, fault: str, key: str) -> None:
    """Five points are dead, and OSM has them or not: the answer did not come, and workers died with them since."""
    await ground.osm.control("fault", kind=fault, endpoint="points", times=1)
    given = {"points": [(EAGLES, 5)], "user": ROBIN, "key": key}
    await ground.nursery.live(**ground.job(key) | {"submit": [given]})
    ground.kind.clock.shift(1000)
    with closing(open_store(ground.kind.url)) as store:
        bury(store, ground.kind.clock)


async def check_decided(ground: Ground, before: int, points: int) -> None:
    """OSM has what was decided, the history says the same, and nothing is left to decide."""
    after = await ground.osm.points(EAGLES)
    assert after - before == points
    with ground.kind.tables().reading() as ask:
        newest = [row["new_score"] for row in ask("updates_history", section_id=SCOUTS, limit=1, before=2**62)]
        assert ask("updates_unfinished", osm_user_id=ROBIN, limit=10) == []
        assert ask("doubts_of", section_id=SCOUTS) == []
    assert newest == [after] or (not points and not newest)


async def stall(ground: Ground, step: int) -> Ended:
    """One run in which the replica stands still at that step until its lease is over and all is done by others.

    A second leader's points are among that: what the first replica had in mind would undo them.
    """
    key, before = f"stall-{step}", await scores(ground)
    replica = await ground.nursery.start(**ground.job(key, at=step, stops=True, timeout=LONG_TIMEOUT_SECONDS))
    assert (await ground.nursery.ended()).how == "stopped"
    await asyncio.sleep(STALL_SECONDS)  # the replica's own clock goes on
    ground.kind.clock.shift(1000)  # and the database's
    assert ground.other is not None
    await ground.other.live(**ground.job(key))
    more = {"points": [(EAGLES, 7)], "user": HAZEL, "key": f"{key}-more"}
    await ground.other.live(**{**ground.job(key), "submit": [more]})
    os.kill(replica, signal.SIGCONT)
    woken = await ground.nursery.ended()
    after = await scores(ground)
    assert {patrol: after[patrol] - before[patrol] for patrol in before} == {EAGLES: 8 + 7, LIONS: 2}
    return woken


async def scores(ground: Ground) -> dict[int, int]:
    """What OSM has."""
    return {patrol: await ground.osm.points(patrol) for patrol, _ in POINTS}


async def settle(ground: Ground, key: str, before: dict[int, int]) -> None:
    """The phone sends again what it had no answer to; replicas come until one has nothing to ask of OSM."""
    for _ in range(3):
        ground.kind.clock.shift(1000)
        if "before GET" not in (await ground.nursery.live(**ground.job(key))).steps:
            break
    with ground.kind.tables().reading() as ask:
        rows = ask("updates_history", section_id=SCOUTS, limit=3, before=2**62)
        assert ask("updates_pending", section_ids=[SCOUTS]) == []
        assert ask("doubts_of", section_id=SCOUTS) == []
        assert len(rows) == len(POINTS)
        assert len({row["submission_id"] for row in rows}) == 1
    after = await scores(ground)
    assert {patrol: after[patrol] - before[patrol] for patrol in before} == {EAGLES: 8, LIONS: 2}
