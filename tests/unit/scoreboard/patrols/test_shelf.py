"""The last scores of a section: whoever replaces them has seen every change, and changes find them."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from carrick_scoreboard.osm.answers import Patrol
from carrick_scoreboard.patrols.known import SectionScores
from tests.hall import Hall, in_hall
from tests.osm import EVENING, SCOUTS

TEN = SectionScores(
    patrols=(Patrol("1", "Eagles", 10),), cached_at=EVENING, valid_until=EVENING + timedelta(minutes=5), term_id=7
)


@in_hall
async def test_a_read_that_saw_points_which_were_taken_back_meanwhile_replaces_nothing(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        await one.shelf.put_scores(SCOUTS, TEN)
        before = await one.shelf.stored_scores(SCOUTS)
        await two.shelf.change_scores(SCOUTS, {"1": 15})
        read = msgspec.structs.replace(TEN, patrols=(Patrol("1", "Eagles", 15),))
        await two.shelf.change_scores(SCOUTS, {"1": 10})
        assert not await one.shelf.replace_scores(SCOUTS, before, read)
        last = await one.shelf.last_scores(SCOUTS)
        assert last is not None
        assert [patrol.points for patrol in last.patrols] == [10]


@in_hall
async def test_scores_that_nobody_has_read_are_not_made_up_by_a_change(hall: Hall) -> None:
    async with hall.replica() as one:
        await one.shelf.change_scores(SCOUTS, {"1": 15})
        assert await one.shelf.last_scores(SCOUTS) is None
