"""A replica that dies at any step of submit, deliver or finish: points count once (defects 2 and 3)."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.scores.crashes import Ground, Nursery, crash
from tests.contract.scores.world import Kind
from tests.osm import simulated

STRIDE = 9
"""In the daily suite every ninth step, from a different one in each kind of database; `make chaos` takes all."""


def every_step(kind: Kind, first: int, stride: int) -> int:
    """How many steps were tried."""

    async def main() -> int:
        tried = 0
        with Nursery() as nursery:
            async with simulated() as osm:
                ground = Ground(nursery, kind, osm)
                while await crash(ground, first + tried * stride):
                    tried += 1
        return tried

    return asyncio.run(main())


def test_a_death_at_some_steps_neither_loses_nor_doubles_points(kind: Kind) -> None:
    tried = every_step(kind, 1 if kind.url.startswith("sqlite") else 4, STRIDE)
    assert tried > 3


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_death_at_every_step_neither_loses_nor_doubles_points(kind: Kind) -> None:
    tried = every_step(kind, 1, 1)
    print(f"crash points tried: {tried}, runs: {tried + 1}, totals wrong: 0")
    assert tried > 30
