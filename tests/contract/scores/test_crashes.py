"""A replica that dies at any step of submit, deliver or finish: points count once (defects 2 and 3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from carrick import wiring
from tests.contract.scores.crashes import (
    CALLS,
    Decision,
    Ground,
    Nursery,
    crash,
    crash_beside,
    crash_deciding,
    crash_in_call,
    crash_in_race,
    stall,
)
from tests.contract.scores.nursery import kind_of
from tests.contract.scores.world import Kind
from tests.osm import simulated

STRIDE = 12
"""In the daily suite every twelfth step, from a different one in each kind of database; `make chaos` takes all."""
DECISION_STRIDE = 21
"""As rarely, of a leader's decisions: each step of the next kind."""
RACE_STRIDE = 4
"""Of two replicas that begin at once, the first dies at every fourth step, if it gets that far."""
DECISIONS = [
    Decision(choice, fault) for choice in ("retry", "discard") for fault in ("apply_then_drop", "drop_before_apply")
]
"""Of points in doubt that OSM has, or has not."""
WRITES = [
    "-- Remembers a submission",
    "-- Puts entries",
    "-- One update of a submission",
    "-- Writes the lease of a batch",
    "-- Writes down the intent of a delivery",
    "-- A write to OSM is about to be tried",
    "before POST",
    "after POST",
    "-- An update has been applied",
    "-- It is known what became of the write",
    "-- Everything in a batch is delivered",
]
"""What a replica writes, in this order; the words are those that its statements on SQLite begin with."""


@asynccontextmanager
async def ground(kind: Kind, *, replicas: int = 1) -> AsyncIterator[Ground]:
    with ExitStack() as stack:
        nursery, *others = [stack.enter_context(Nursery()) for _ in range(replicas)]
        async with simulated() as osm:
            yield Ground(nursery, kind, osm, *others)


def test_every_statement_and_call_that_writes_is_a_step_at_which_a_replica_can_die(sqlite_path: Path) -> None:
    async def main() -> None:
        wiring.migrate(f"sqlite:///{sqlite_path}")
        async with ground(kind_of(f"sqlite:///{sqlite_path}")) as there:
            steps = (await there.nursery.live(**there.job("whole"))).steps
        first = [next(number for number, step in enumerate(steps) if step.startswith(write)) for write in WRITES]
        assert first == sorted(first)

    asyncio.run(main())


async def every_step(
    ground: Ground, crash: Callable[[Ground, int], Awaitable[bool]], first: int = 1, stride: int = 1
) -> int:
    """At how many steps a replica died."""
    tried = 0
    while await crash(ground, first + tried * stride):
        tried += 1
    return tried


def test_a_death_at_some_steps_neither_loses_nor_doubles_points(kind: Kind) -> None:
    async def main() -> None:
        async with ground(kind) as there:
            assert await every_step(there, crash, 1 if kind.url.startswith("sqlite") else 4, STRIDE) > 3

    asyncio.run(main())


def test_a_death_while_osm_has_the_request_neither_loses_nor_doubles_points(kind: Kind) -> None:
    async def main() -> None:
        async with ground(kind) as there:
            for endpoint, point in CALLS:
                await crash_in_call(there, endpoint, point)

    asyncio.run(main())


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_death_at_every_step_neither_loses_nor_doubles_points(kind: Kind, replicas: int) -> None:
    async def main() -> None:
        async with ground(kind, replicas=replicas) as there:
            for endpoint, point in CALLS:
                await crash_in_call(there, endpoint, point)
            tried = await every_step(there, crash if replicas == 1 else crash_beside)
            races = range(1, tried + 1, RACE_STRIDE) if replicas == 2 else ()
            lost = sum([await crash_in_race(there, step) for step in races])
        runs = len(CALLS) + tried + 1 + len(races)
        print(f"crash points tried: {len(CALLS) + tried} (and {lost} in a race), runs: {runs}, totals wrong: 0")

    asyncio.run(main())


def test_a_death_at_some_steps_of_a_decision_about_points_in_doubt_counts_them_once(kind: Kind) -> None:
    async def deciding(ground: Ground, step: int) -> bool:
        return await crash_deciding(ground, DECISIONS[step // DECISION_STRIDE % len(DECISIONS)], step)

    async def main() -> None:
        async with ground(kind) as there:
            first = 1 if kind.url.startswith("sqlite") else 8
            assert await every_step(there, deciding, first, DECISION_STRIDE) > 1

    asyncio.run(main())


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("decision", DECISIONS, ids=str)
def test_a_death_at_every_step_of_a_decision_about_points_in_doubt_counts_them_once(
    kind: Kind, decision: Decision, replicas: int
) -> None:
    async def main() -> None:
        async with ground(kind, replicas=replicas) as there:
            tried = await every_step(there, lambda ground, step: crash_deciding(ground, decision, step))
        print(f"{decision.choice} after {decision.fault}: crash points tried: {tried}, totals wrong: 0")

    asyncio.run(main())


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_replica_that_stands_still_before_a_write_until_its_lease_is_over_does_not_write(kind: Kind) -> None:
    async def main() -> None:
        async with ground(kind, replicas=2) as there:
            steps = (await there.nursery.live(**there.job("whole"))).steps
            writes = [number for number, step in enumerate(steps, 1) if step == "before POST"]
            for done, step in enumerate(writes):
                woken = await stall(there, step)
                assert woken.steps.count("after POST") == done
        print(f"stalls before a write: {len(writes)}, writes that left after it: 0, totals wrong: 0")

    asyncio.run(main())
