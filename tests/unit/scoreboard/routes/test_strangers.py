"""Who answers in OSM's place takes no scores from a display, and signs nobody out."""

from __future__ import annotations

import pytest

from tests.contract.scores.strangers import STRANGERS
from tests.hall import Hall, in_hall
from tests.osm import ROBIN

DAY_SECONDS = 86_400


@pytest.mark.parametrize("endpoint", ["patrols", "resource", "token"])
@in_hall
async def test_a_display_shows_the_last_scores_whatever_a_stranger_answers(hall: Hall, endpoint: str) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        first = await one.get(token)
        for number, fault in enumerate(STRANGERS):
            await hall.osm.control("fault", endpoint=endpoint, **fault)
            await hall.advance(1800 if endpoint == "patrols" else DAY_SECONDS if number % 10 == 0 else 3600)
            answer = await one.get(token)
            assert (answer.status, answer.points) == (200, first.points), fault
            await hall.osm.control("clear-faults")
        assert not await one.credentials.is_revoked(ROBIN)
        await hall.advance(1800)
        await one.get(token)
        await hall.advance(1800)
        answer = await one.get(token)
        assert (answer.status, answer.json["stale"]) == (200, False)
