"""Everything that can be made to go wrong, on the raw answer, and whether the work was done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from carrick_osmsim.faults import KINDS
from carrick_osmsim.simulator import Simulator
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, SCOUTS, Answer, Osm, simulated, story


async def faulty_write(osm: Osm, **fault: Any) -> Answer:
    """A write of 50 to the Eagles (who have 32) that gets the fault."""
    await osm.control("fault", **fault)
    return await osm.write(await osm.token(), 50)


async def applied(osm: Osm) -> bool:
    """Whether the write was done; the log must say the same."""
    done: bool = await osm.points() == 50
    assert (await osm.calls())[-1]["applied"] == done
    return done


@story
async def test_429_has_retry_after_and_nothing_left(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="rate_limited", retry_after=17)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "17")
    assert (answer.headers["X-RateLimit-Remaining"], answer.headers["X-RateLimit-Reset"]) == ("0", "17")
    assert not await applied(osm)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@story
async def test_a_server_error_is_a_page_and_nothing_is_done(osm: Osm, status: int) -> None:
    answer = await faulty_write(osm, kind="server_error", status=status)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert not await applied(osm)


@story
async def test_a_server_error_may_come_after_the_work(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="server_error", status=502, applied=True)
    assert answer.status == 502
    assert await applied(osm)


@story
async def test_a_token_can_be_refused_once(osm: Osm) -> None:
    assert (await faulty_write(osm, kind="unauthorized")).status == 401
    assert not await applied(osm)


@story
async def test_the_block_page_is_html_with_status_200_and_its_title(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="block_page")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>Online Scout Manager (OSM): Blocked</title>" in answer.body
    assert "X-Blocked" not in answer.headers
    assert not await applied(osm)


@story
async def test_the_block_page_comes_on_the_token_endpoint_too(osm: Osm) -> None:
    await osm.control("fault", kind="block_page", endpoint="token")
    answer = await osm.call("POST", "/oauth/token", form={"grant_type": "refresh_token"})
    assert answer.status == 200
    assert b"Online Scout Manager (OSM): Blocked" in answer.body


@story
async def test_x_blocked_is_a_header(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="blocked_header", text="Invalid data")
    assert (answer.status, answer.headers["X-Blocked"]) == (403, "Invalid data")
    assert not await applied(osm)


@story
async def test_x_blocked_may_stand_on_the_answer_of_a_write_that_was_done(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="blocked_header", applied=True)
    assert (answer.status, answer.body) == (200, b"[]")
    assert "X-Blocked" in answer.headers
    assert await applied(osm)


@story
async def test_x_deprecated_is_a_date_on_a_good_answer(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="deprecated", text="2026-09-01")
    assert (answer.status, answer.body, answer.headers["X-Deprecated"]) == (200, b"[]", "2026-09-01")
    assert await applied(osm)


@story
async def test_x_deprecated_comes_on_top_of_another_fault(osm: Osm) -> None:
    await osm.control("fault", kind="deprecated", times=None)
    answer = await faulty_write(osm, kind="server_error")
    assert answer.status == 500
    assert "X-Deprecated" in answer.headers


@pytest.mark.parametrize(("done", "meanwhile"), [(True, 50), (False, 32)])
def test_a_slow_answer_is_right_and_the_work_is_done_before_or_after_the_wait(
    done: bool, meanwhile: int, tmp_path: Path
) -> None:
    async def main() -> Answer:
        async with simulated(tmp_path / "osm.json") as osm:  # its end is the end of the wait
            await osm.control("fault", kind="slow", seconds=3600, applied=done)
            writing = asyncio.create_task(osm.write(await osm.token(), 50))
            while not await osm.calls():
                pass
            assert (await osm.points(), writing.done()) == (meanwhile, False)
        return await writing

    assert asyncio.run(main()).body == b"[]"
    kept = Simulator(state=tmp_path / "osm.json").world.sections[SCOUTS].patrol(EAGLES)
    assert kept is not None
    assert kept.points == 50


@story
async def test_a_slow_answer_comes_by_itself(osm: Osm) -> None:
    assert (await faulty_write(osm, kind="slow", seconds=0.01)).body == b"[]"


@pytest.mark.parametrize("done", [True, False])
@story
async def test_no_answer_until_the_caller_gives_up(osm: Osm, done: bool) -> None:
    await osm.control("fault", kind="never_answer", applied=done)
    writing = asyncio.create_task(osm.write(await osm.token(), 50))
    while not await osm.calls():
        pass
    assert (await osm.calls())[-1]["open"]
    writing.cancel()
    record = (await osm.calls(finished=1))[-1]
    assert record["status"] is None
    assert await applied(osm) is done


@story
async def test_the_work_is_done_and_the_connection_is_closed_without_a_word(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="apply_then_drop")
    assert (answer.status, answer.body) == (0, b"")
    assert await applied(osm)


@story
async def test_the_connection_is_closed_and_nothing_is_done(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="drop_before_apply")
    assert (answer.status, answer.body) == (0, b"")
    assert not await applied(osm)


@story
async def test_an_answer_is_cut_in_half(osm: Osm) -> None:
    token = await osm.token()
    whole = await osm.read(token)
    await osm.control("fault", kind="truncated")
    answer = await osm.read(token)
    assert (answer.status, answer.whole) == (200, False)
    assert answer.body == whole.body[: len(whole.body) // 2]
    assert int(answer.headers["Content-Length"]) == len(whole.body)


@pytest.mark.parametrize("kind", ["truncated", "apply_then_drop", "drop_before_apply"])
@story
async def test_a_connection_that_was_to_stay_open_is_closed_all_the_same(osm: Osm, kind: str) -> None:
    await osm.control("fault", kind=kind)
    headers = {"Connection": "keep-alive"}
    answer = await osm.call("GET", "/oauth/resource", token=await osm.token(), headers=headers)
    assert not answer.whole


@pytest.mark.parametrize(
    ("kind", "body", "done"),
    [
        ("error_200", b'{"error":"no"}', False),
        ("err_200", b'{"err":"no"}', False),
        ("false_body", b"false", False),
        ("empty_body", b"", False),
        ("invalid_json", b'{"status":true,"data":{"user_id":', True),
        ("wrong_structure", b'{"items":[{"identifier":"patrolid"}],"meta":1}', True),
    ],
)
@story
async def test_what_is_wrong_may_come_with_status_200(osm: Osm, kind: str, body: bytes, done: bool) -> None:
    answer = await faulty_write(osm, kind=kind, text="no")
    assert (answer.status, answer.body, answer.whole) == (200, body, True)
    assert await applied(osm) is done


@pytest.mark.parametrize("kind", ["error_200", "err_200", "false_body", "empty_body"])
@story
async def test_an_error_may_be_told_although_the_work_was_done(osm: Osm, kind: str) -> None:
    await faulty_write(osm, kind=kind, applied=True)
    assert await applied(osm)


@story
async def test_json_may_be_called_html(osm: Osm) -> None:
    answer = await faulty_write(osm, kind="json_as_html")
    assert (answer.body, answer.headers["Content-Type"]) == (b"[]", "text/html; charset=utf-8")
    assert await applied(osm)


@story
async def test_any_other_answer_can_be_made_up(osm: Osm) -> None:
    answer = await faulty_write(
        osm, kind="custom", status=418, text="short", content_type="text/plain", headers={"X-Stout": "yes"}
    )
    assert (answer.status, answer.body, answer.headers["X-Stout"]) == (418, b"short", "yes")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "drop" not in kind and kind != "never_answer"])
@story
async def test_every_answer_with_a_fault_has_the_rate_limit_headers(osm: Osm, kind: str) -> None:
    answer = await faulty_write(osm, kind=kind, seconds=0)
    assert "X-RateLimit-Remaining" in answer.headers
    assert (await osm.calls())[-1]["fault"] == kind


@story
async def test_a_fault_is_for_one_call_unless_told_otherwise(osm: Osm) -> None:
    assert (await faulty_write(osm, kind="server_error")).status == 500
    assert (await osm.write(await osm.token(), 51)).status == 200


@story
async def test_a_fault_may_be_for_some_calls_after_others(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("fault", kind="server_error", times=2, skip=1)
    assert [(await osm.profile(token)).status for _ in range(4)] == [200, 500, 500, 200]


@story
async def test_a_fault_may_stay_until_it_is_cleared(osm: Osm) -> None:
    token = await osm.token()
    fault = await osm.control("fault", kind="server_error", times=None)
    assert [(await osm.profile(token)).status for _ in range(3)] == [500, 500, 500]
    assert await osm.control("clear-faults", id=fault["id"]) == {"cleared": 1}
    assert (await osm.profile(token)).status == 200


@pytest.mark.parametrize(
    ("matching", "hit"),
    [
        ({"user_id": ROBIN}, True),
        ({"user_id": HAZEL}, False),
        ({"endpoint": "points"}, True),
        ({"endpoint": "patrols"}, False),
        ({"section_id": SCOUTS, "patrol_id": EAGLES}, True),
        ({"section_id": 40103}, False),
        ({"patrol_id": LIONS}, False),
    ],
)
@story
async def test_a_fault_is_for_the_calls_it_names(osm: Osm, matching: dict[str, Any], hit: bool) -> None:
    answer = await faulty_write(osm, kind="server_error", **matching)
    assert (answer.status == 500) is hit


@story
async def test_faults_are_taken_one_per_call_in_the_order_they_were_made(osm: Osm) -> None:
    await osm.control("fault", kind="server_error")
    await osm.control("fault", kind="rate_limited")
    token = await osm.token()
    assert [(await osm.profile(token)).status for _ in range(3)] == [500, 429, 200]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "meteor"}, "Invalid enum value 'meteor'"),
        ({"kind": "slow", "seconds": -1}, "seconds: accepted are 0 to 3600"),
        ({"kind": "slow", "times": 0}, "times: accepted are 1 or more"),
        ({"kind": "slow", "skip": -1}, "skip: accepted are 0 or more"),
        ({"kind": "custom", "status": 99}, "status: accepted are 200 to 599"),
        ({"kind": "rate_limited", "retry_after": -5}, "retry_after: accepted are 0 or more"),
        ({"kind": "blocked_header", "text": "a\r\nSet-Cookie: b"}, "headers: accepted are printable ASCII"),
        ({"kind": "custom", "headers": {"X": "\n"}}, "headers: accepted are printable ASCII"),
        ({"kind": "slow", "when": "now"}, "unknown field `when`"),
        ({}, "missing required field `kind`"),
    ],
)
@story
async def test_a_fault_that_makes_no_sense_is_refused_by_name(osm: Osm, fault: dict[str, Any], said: str) -> None:
    answer = await osm.try_control("fault", **fault)
    assert (answer.status, answer.json["error"]) == (400, "invalid_input")
    assert said in answer.json["message"]
    assert (await osm.state())["faults"] == []
