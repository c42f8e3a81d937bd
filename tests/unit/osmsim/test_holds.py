"""Holds: a call waits at a point until it is released."""

from __future__ import annotations

import asyncio

import pytest

from tests.osm import HAZEL, LIONS, ROBIN, Osm, story


@pytest.mark.parametrize(("point", "meanwhile"), [("before_apply", 32), ("after_apply", 50), ("before_answer", 50)])
@story
async def test_a_call_waits_at_its_point_until_it_is_released(osm: Osm, point: str, meanwhile: int) -> None:
    await osm.control("hold", name="here", point=point, endpoint="points")
    writing = asyncio.create_task(osm.write(await osm.token(), 50))
    await osm.reached("here")
    assert await osm.points() == meanwhile
    assert not writing.done()
    assert await osm.control("release", name="here") == {"released": 1}
    assert (await writing).body == b"[]"
    assert await osm.points() == 50


@story
async def test_a_held_read_tells_what_was_there_when_it_was_done(osm: Osm) -> None:
    await osm.control("hold", name="read", point="after_apply", endpoint="patrols")
    token = await osm.token()
    reading = asyncio.create_task(osm.read(token))
    await osm.reached("read")
    await osm.write(token, 50)
    await osm.control("release", name="read")
    assert (await reading).json["72699"]["points"] == "32"


@story
async def test_two_writes_can_be_put_in_order(osm: Osm) -> None:
    await osm.control("hold", name="robin", user_id=ROBIN)
    first = asyncio.create_task(osm.write(await osm.token(ROBIN), 50))
    await osm.reached("robin")
    await osm.write(await osm.token(HAZEL), 60)
    await osm.control("release", name="robin")
    await first
    assert await osm.points() == 50


@story
async def test_a_hold_keeps_one_call_unless_told_otherwise(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("hold", name="one")
    writing = asyncio.create_task(osm.write(token, 50))
    await osm.reached("one")
    assert (await osm.write(token, 7, patrol=LIONS)).status == 200
    await osm.control("release", name="one")
    await writing


@story
async def test_a_hold_may_gather_several_calls(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("hold", name="all", times=3)
    calls = [asyncio.create_task(osm.profile(token)) for _ in range(3)]
    await osm.reached("all", count=3)
    assert await osm.control("release", name="all") == {"released": 3}
    assert [(await call).status for call in calls] == [200, 200, 200]


@story
async def test_a_held_write_is_done_even_when_the_caller_has_gone(osm: Osm) -> None:
    await osm.control("hold", name="late", point="before_apply")
    writing = asyncio.create_task(osm.write(await osm.token(), 50))
    await osm.reached("late")
    writing.cancel()
    await asyncio.wait([writing])
    await osm.control("release", name="late")
    record = (await osm.calls(finished=1))[-1]
    assert record["effect"] == "points of Eagles (72699): 32 → 50 (the caller had gone)"
    assert (record["status"], record["applied"], await osm.points()) == (None, True, 50)


@story
async def test_a_hold_and_a_fault_work_together(osm: Osm) -> None:
    await osm.control("fault", kind="apply_then_drop", endpoint="points")
    await osm.control("hold", name="applied", point="after_apply", endpoint="points")
    writing = asyncio.create_task(osm.write(await osm.token(), 50))
    await osm.reached("applied")
    assert await osm.points() == 50
    await osm.control("release", name="applied")
    assert (await writing).status == 0


@story
async def test_a_released_hold_is_gone(osm: Osm) -> None:
    await osm.control("hold", name="gone")
    await osm.control("release", name="gone")
    answer = await osm.try_control("release", name="gone")
    assert answer.json["message"] == "name: there is no hold gone; accepted: none"
    assert (await osm.profile(await osm.token())).status == 200


@story
async def test_a_name_can_be_used_once_at_a_time(osm: Osm) -> None:
    await osm.control("hold", name="twice")
    assert (await osm.try_control("hold", name="twice")).status == 400
    assert (await osm.try_control("hold", name="a/b")).status == 400


@story
async def test_waiting_for_a_hold_that_nobody_reaches_ends_with_408(osm: Osm) -> None:
    await osm.control("hold", name="lonely")
    assert (await osm.call("GET", "/control/holds/lonely?timeout_seconds=0.01")).status == 408
    assert (await osm.call("GET", "/control/holds/nowhere")).status == 404


@story
async def test_a_reset_lets_everybody_go(osm: Osm) -> None:
    await osm.control("hold", name="kept")
    token = await osm.token()
    call = asyncio.create_task(osm.profile(token))
    await osm.reached("kept")
    await osm.control("reset")
    assert (await call).status == 200
