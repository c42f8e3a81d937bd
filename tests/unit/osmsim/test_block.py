"""A blocked application: told on every call, and blocked for good when it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.osm import HAZEL, Osm, story


async def block(osm: Osm) -> dict[str, Any]:
    state: dict[str, Any] = (await osm.state())["block"]
    return state


@pytest.mark.parametrize("kind", ["block_page", "blocked_header"])
@story
async def test_a_block_that_was_told_once_stands_for_everybody(osm: Osm, kind: str) -> None:
    await osm.control("fault", kind=kind)
    first = await osm.profile(await osm.token())
    second = await osm.write(await osm.token(HAZEL), 50)
    assert ("X-Blocked" in second.headers) is ("X-Blocked" in first.headers) is (kind == "blocked_header")
    assert (b"OSM): Blocked" in second.body) is (kind == "block_page")
    assert await osm.points() == 32


@story
async def test_the_call_that_is_told_is_no_sin_and_every_later_one_is(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("block", reason="Too many errors")
    assert (await osm.profile(token)).headers["X-Blocked"] == "Too many errors"
    assert ((await block(osm))["sins"], (await block(osm))["permanent"]) == (0, False)
    await osm.profile(token)
    await osm.call("GET", "/oauth/authorize")
    assert ((await block(osm))["sins"], (await block(osm))["permanent"]) == (2, True)


@story
async def test_a_block_begun_by_a_fault_has_been_told(osm: Osm) -> None:
    await osm.control("fault", kind="blocked_header")
    token = await osm.token()
    await osm.profile(token)
    assert (await block(osm))["sins"] == 0
    await osm.profile(token)
    assert (await block(osm))["sins"] == 1


@story
async def test_a_block_can_be_lifted_while_nobody_went_on(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("block", style="page")
    await osm.profile(token)
    await osm.control("unblock")
    assert (await osm.profile(token)).json["status"] is True


@story
async def test_a_permanent_block_is_lifted_only_with_forgiveness(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("block")
    await osm.profile(token)
    await osm.profile(token)
    answer = await osm.try_control("unblock")
    assert (answer.status, answer.json["message"]) == (
        400,
        "the block is permanent after 1 calls made while blocked; accepted: forgive",
    )
    await osm.control("unblock", forgive=True)
    assert (await osm.profile(token)).status == 200


@story
async def test_calls_while_blocked_do_not_touch_the_budget_and_are_in_the_log(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("block")
    await osm.profile(token)
    answer = await osm.profile(token)
    assert answer.headers["X-RateLimit-Remaining"] == "1000"
    assert [call["effect"] for call in await osm.calls()] == ["refused: blocked", "refused: blocked for good, sin 1"]


@story
async def test_the_control_api_is_not_blocked(osm: Osm) -> None:
    await osm.control("block")
    assert (await osm.call("GET", "/control/")).status == 200
