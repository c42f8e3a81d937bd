"""How many sections' points go to OSM at once, and who does not wait for them."""

from __future__ import annotations

import asyncio

from tests.osm import EAGLES, HAZEL
from tests.phone import Phone
from tests.scenario.leading import Hall, Tell

CUBS, BADGERS = 40103, 62001
"""The other section of the same leader, and a patrol of it."""


async def held(hall: Hall) -> tuple[asyncio.Task[tuple[int, object]], asyncio.Task[tuple[int, object]]]:
    """Points for two sections, of which OSM does not answer the first."""
    await hall.osm.control("hold", name="write", point="before_apply", endpoint="points")
    scouts = asyncio.create_task(hall.robin.give({EAGLES: 5}))
    await hall.osm.reached("write")
    return scouts, asyncio.create_task(hall.robin.give({BADGERS: 1}, section=CUBS))


async def writes(hall: Hall) -> int:
    """How many writes OSM was asked for so far."""
    return sum(call["endpoint"] == "points" for call in await hall.osm.calls())


def test_one_delivery_is_under_way_at_a_time_and_displays_and_sign_ins_do_not_wait_for_it(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        scouts, cubs = await held(hall)
        display = await hall.service.device_token(str(CUBS))
        status, _, headers = await hall.service.get("/api/v1/patrols", Authorization=f"Bearer {display}")
        assert (status, headers["X-Cache"]) == (200, "MISS")
        async with Phone(hall.service.url, HAZEL) as hazel:
            await hazel.sign_in()
        assert await writes(hall) == 1
        await hall.osm.control("release", name="write")
        assert [status for status, _ in await asyncio.gather(scouts, cubs)] == [200, 200]

    tell(story)


def test_more_deliveries_at_once_can_be_asked_for(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        scouts, cubs = await held(hall)
        assert (await cubs)[0] == 200
        assert not scouts.done()
        await hall.osm.control("release", name="write")
        assert (await scouts)[0] == 200

    tell(story, SCORE_WORKERS="2")
