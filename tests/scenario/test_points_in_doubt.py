"""Leaders decide about points of which nobody knows whether OSM has them: they are looked up first, and count once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import pytest

from carrick.outbox.opening import open_store
from carrick_scoreboard.delivery import SCORES
from tests.contract.scores.world import bury
from tests.osm import EAGLES, SCOUTS, Osm, simulated
from tests.phone import Phone
from tests.ports import free_port
from tests.scenario.conftest import Shared
from tests.scenario.leading import KEYS, Hall
from tests.service import register, serving

BEFORE = 32
"""What the patrol has when the simulator begins."""
FAULTS = {"apply_then_drop": 5, "drop_before_apply": 0}
"""What becomes of the only write of five points, and how many of them OSM has then."""


Story = Callable[[Hall, dict[str, Any]], Awaitable[None]]
"""What a leader does about five points that are dead, and OSM has them or not; it is given their line."""


@pytest.fixture
def tell(shared: Shared) -> Callable[[str, Story], None]:
    """Runs a story after no answer came to a write, and workers died with its points."""

    async def lost(osm: Osm, port: int, robin: Phone, fault: str) -> None:
        async with serving(osm, shared.url, port, **KEYS):
            await robin.sign_in()
            await osm.control("fault", kind=fault, endpoint="points", times=1)
            await robin.give({EAGLES: 5})
        await asyncio.to_thread(shared.clock.shift, 1000)
        with closing(open_store(shared.url)) as store:
            await asyncio.to_thread(bury, store, shared.clock)

    async def main(fault: str, story: Story) -> None:
        port = free_port()
        async with simulated(start=None) as osm, Phone(f"http://127.0.0.1:{port}") as robin:
            await register(osm, port)
            await lost(osm, port, robin, fault)
            async with serving(osm, shared.url, port, **KEYS) as running:
                (line,) = await robin.pending()
                assert line["state"] == "dead"
                await story(Hall(running, robin, shared.clock), line)

    return lambda fault, story: asyncio.run(main(fault, story))


async def decided(hall: Hall, line: dict[str, Any], choice: str, query: str = "") -> int:
    """What the leader chooses; the status of the answer."""
    status, _, _ = await hall.robin.ask("POST", f"/api/admin/pending/{line['id']}/{choice}{query}")
    return status


async def over(hall: Hall) -> None:
    """Until the leader has nothing more to look at."""
    while await hall.robin.pending():  # noqa: ASYNC110  a server rings no event
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("fault", FAULTS)
def test_points_in_doubt_that_are_tried_again_count_once(tell: Callable[[str, Story], None], fault: str) -> None:
    async def story(hall: Hall, line: dict[str, Any]) -> None:
        assert await decided(hall, line, "retry") == 202
        await over(hall)
        assert await hall.osm.points(EAGLES) == BEFORE + 5
        assert [(one["previousScore"], one["newScore"]) for one in await hall.robin.history()] == [(BEFORE, BEFORE + 5)]

    tell(fault, story)


def test_points_in_doubt_that_are_tried_again_by_many_at_once_count_once(tell: Callable[[str, Story], None]) -> None:
    async def story(hall: Hall, line: dict[str, Any]) -> None:
        statuses = await asyncio.gather(*(decided(hall, line, "retry") for _ in range(8)))
        assert set(statuses) <= {202, 409}
        await over(hall)
        assert await hall.osm.points(EAGLES) == BEFORE + 5

    tell("apply_then_drop", story)


@pytest.mark.parametrize("fault", FAULTS)
def test_points_in_doubt_that_are_discarded_are_looked_up_first(tell: Callable[[str, Story], None], fault: str) -> None:
    async def story(hall: Hall, line: dict[str, Any]) -> None:
        status, answer, _ = await hall.robin.ask("POST", f"/api/admin/pending/{line['id']}/discard")
        assert status == 202
        assert "OSM" in answer["message"]
        await over(hall)
        assert line["reason"] == "in_doubt"
        assert await hall.osm.points(EAGLES) == BEFORE + FAULTS[fault]
        assert sum(one["points"] for one in await hall.robin.history()) == FAULTS[fault]

    tell(fault, story)


def test_who_decides_by_numbers_that_have_changed_meanwhile_is_told_so(tell: Callable[[str, Story], None]) -> None:
    async def story(hall: Hall, line: dict[str, Any]) -> None:
        await hall.osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, add=1)
        await hall.robin.give({EAGLES: 2})  # brings what is there to light
        (now,) = await hall.robin.pending()
        assert (now["reason"], now["found"]) == ("needs_review", BEFORE + 6)
        assert [await decided(hall, line, choice, "?found=none") for choice in ("retry", "discard")] == [409, 409]
        assert await decided(hall, line, "retry", "?found=x") == 400
        assert await hall.osm.points(EAGLES) == BEFORE + 8
        assert await decided(hall, line, "retry", f"?found={BEFORE + 6}") == 202
        await over(hall)
        assert await hall.osm.points(EAGLES) == BEFORE + 13

    tell("apply_then_drop", story)


def test_points_in_doubt_that_an_operator_has_removed_can_only_be_given_up(
    tell: Callable[[str, Story], None], shared: Shared
) -> None:
    async def story(hall: Hall, line: dict[str, Any]) -> None:
        with closing(open_store(shared.url)) as store:
            await asyncio.to_thread(store.discard_all, SCORES.name)
        status, answer, _ = await hall.robin.ask("POST", f"/api/admin/pending/{line['id']}/retry")
        assert (status, answer["error"]) == (409, "over")
        assert await decided(hall, line, "discard") == 204
        assert await hall.robin.pending() == []

    tell("apply_then_drop", story)
