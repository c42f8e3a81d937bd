"""The control API: the world as others change it, the clock, the log, reset, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.osm import ASH, EAGLES, HAZEL, JASPER, ROBIN, SCOUTS, TERM, Osm, story


async def terms(osm: Osm, section: int) -> list[dict[str, Any]]:
    sections = (await osm.state())["sections"]
    found: list[dict[str, Any]] = next(one["terms"] for one in sections if one["section_id"] == section)
    return found


@story
async def test_points_change_as_somebody_else_would_change_them(osm: Osm) -> None:
    assert await osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, points=10) == {"points": 10}
    assert await osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, add=-3) == {"points": 7}
    assert (await osm.read(await osm.token())).json["72699"]["points"] == "7"
    assert [call["endpoint"] for call in await osm.calls()] == ["patrols"]


@story
async def test_a_term_ends_and_the_section_is_between_terms(osm: Osm) -> None:
    assert await osm.control("end-term", section_id=SCOUTS) == {"ended": [TERM]}
    assert [term["enddate"] for term in await terms(osm, SCOUTS)] == ["2026-01-11", "2026-03-01", "2026-07-30"]


@story
async def test_a_term_that_began_today_is_gone_when_it_ends(osm: Osm) -> None:
    await osm.control("end-term", section_id=40201)
    assert [term["enddate"] for term in await terms(osm, 40201)] == ["2026-03-01"]


@story
async def test_a_term_starts_today(osm: Osm) -> None:
    term = await osm.control("start-term", section_id=40302, days=30)
    assert (term["startdate"], term["enddate"], term["name"]) == ("2026-03-02", "2026-04-01", "Spring 2026")
    answer = await osm.read(await osm.token(ASH), section=40302, term=term["term_id"])
    assert answer.json["66001"]["name"] == "Anchor"


@story
async def test_a_term_starts_and_ends_on_given_days(osm: Osm) -> None:
    days = {"startdate": "2026-05-01", "enddate": "2026-05-31"}
    await osm.control("start-term", section_id=40302, name="Camp", **days)
    term = (await terms(osm, 40302))[0]
    assert (term["name"], term["startdate"], term["enddate"]) == ("Camp", "2026-05-01", "2026-05-31")
    answer = await osm.try_control("start-term", section_id=40302, startdate="2026-05-02", enddate="2026-05-01")
    assert answer.json["message"] == "enddate: is before startdate"


@story
async def test_somebody_more_can_sign_in_and_write(osm: Osm) -> None:
    await osm.control("user", user_id=100011, full_name="Fern Brook", write=[SCOUTS])
    assert (await osm.write(await osm.token(100011), 50)).body == b"[]"
    assert await osm.points() == 50
    answer = await osm.try_control("user", user_id=100012, full_name="Moss Bank", write=[7])
    assert answer.json["message"].startswith("section_id: there is no section 7")


@story
async def test_rights_change(osm: Osm) -> None:
    await osm.control("rights", user_id=JASPER, section_id=SCOUTS, level="write")
    assert (await osm.write(await osm.token(JASPER), 50)).body == b"[]"
    await osm.control("rights", user_id=JASPER, section_id=SCOUTS)
    assert list((await osm.write(await osm.token(JASPER), 51)).json) == ["err"]


@story
async def test_the_clock_is_set_moved_stopped_and_started(osm: Osm) -> None:
    assert (await osm.control("clock", set="2030-01-01T12:00:00+01:00"))["clock"] == "2030-01-01T11:00:00Z"
    assert (await osm.control("clock", advance_seconds=90))["clock"] == "2030-01-01T11:01:30Z"
    assert (await osm.state())["clock_stands"] is True
    await osm.control("clock", stands=False)
    state = await osm.state()
    assert (state["clock_stands"], state["clock"][:16]) == (False, "2030-01-01T11:01")


@story
async def test_a_reset_brings_everything_back(osm: Osm) -> None:
    before = await osm.state()
    token = await osm.token()
    await osm.write(token, 99)
    await osm.control("fault", kind="slow")
    await osm.control("block")
    await osm.control("budget", remaining=3)
    await osm.control("settings", refresh_refusal="invalid_grant")
    await osm.control("clock", advance_seconds=5000)
    await osm.control("reset")
    assert {**await osm.state(), "last_call": 0} == before
    assert await osm.calls() == []
    assert (await osm.profile(token)).status == 401


@story
async def test_a_reset_may_be_to_another_day(osm: Osm) -> None:
    await osm.control("reset", clock="2027-06-01T08:00:00Z")
    assert (await terms(osm, 40201))[0]["enddate"] == "2027-06-01"


@story
async def test_the_log_has_every_call_with_its_effect(osm: Osm) -> None:
    await osm.write(await osm.token(), 50)
    assert await osm.calls() == [
        {
            "number": 1,
            "at": "2026-03-02T18:30:00.000+00:00",
            "user_id": ROBIN,
            "endpoint": "points",
            "method": "POST",
            "path": "/ext/members/patrols/",
            "query": {"action": "updatePatrolPoints", "sectionid": "40104"},
            "form": {"points": "50", "patrolid": "72699"},
            "open": False,
            "status": 200,
            "effect": "points of Eagles (72699): 32 → 50",
            "applied": True,
            "fault": None,
        }
    ]


@story
async def test_the_log_can_be_read_after_a_number(osm: Osm) -> None:
    token = await osm.token()
    for points in (1, 2, 3):
        await osm.write(token, points)
    assert [call["form"]["points"] for call in await osm.calls(after=1)] == ["2", "3"]
    assert [call["form"]["points"] for call in await osm.calls(after=0, limit=1)] == ["1"]


@story
async def test_waiting_for_calls_that_do_not_come_ends_with_408(osm: Osm) -> None:
    assert (await osm.call("GET", "/control/calls?finished=1&timeout_seconds=0.01")).status == 408


@pytest.mark.parametrize(
    ("action", "fields", "said"),
    [
        ("points", {"section_id": 1, "patrol_id": 1}, "section_id: there is no section 1; accepted: 40101,"),
        ("points", {"section_id": 40301, "patrol_id": 1}, "has no patrol 1; accepted: 65001, 65002"),
        ("revoke", {"user_id": 1}, "user_id: there is no user 1; accepted: 100001,"),
        ("budget", {"remaining": -1}, "remaining: accepted are 0 to 1000000"),
        ("budget", {"limit": 0}, "limit: accepted are 1 to 1000000"),
        ("budget", {"reset_seconds": -1}, "reset_seconds: accepted are 0 to 86400"),
        ("clock", {"set": "2026-01-01T00:00:00"}, "clock: accepted is a time with its zone"),
        ("clock", {"set": "soon"}, "$.set"),
        ("tokens", {"user_id": HAZEL, "client_id": "x"}, "client_id: accepted are carrick-demo"),
        ("tokens", {"user_id": HAZEL, "scopes": ["all"]}, "scopes: all is not a scope"),
        ("block", {"style": "loud"}, "Invalid enum value 'loud'"),
        ("block", {"reason": "a\nb"}, "reason: accepted is printable ASCII"),
        ("settings", {"refresh_refusal": "maybe"}, "Invalid enum value 'maybe'"),
        ("app", {"client_id": "", "client_secret": "", "redirect_uris": []}, "must not be empty"),
        ("clock", {"advance_seconds": 3e9}, "clock: accepted are the years 2000 to 2100"),
        ("clock", {"advance_seconds": 1e20}, "advance_seconds: accepted are -3155760000 to"),
        ("reset", {"clock": "9999-12-31T00:00:00Z"}, "clock: accepted are the years 2000 to 2100"),
        ("start-term", {"section_id": 40104, "startdate": "9999-12-31"}, "out of range"),
        ("points", {"section_id": 40104, "patrol_id": 72699, "points": 2**40}, "points: accepted are -2147483647 to"),
    ],
)
@story
async def test_what_makes_no_sense_is_refused_by_name(osm: Osm, action: str, fields: dict[str, Any], said: str) -> None:
    before = await osm.state()
    answer = await osm.try_control(action, **fields)
    assert (answer.status, answer.json["error"]) == (400, "invalid_input")
    assert said in answer.json["message"]
    assert await osm.state() == before


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'"x"', b"[" * 5000])
@story
async def test_what_is_no_json_object_is_refused(osm: Osm, body: bytes) -> None:
    assert (await osm.call("POST", "/control/reset", body=body)).status == 400


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/control/explode"), ("GET", "/control/nothing"), ("PUT", "/control/reset")]
)
@story
async def test_what_the_control_api_does_not_have_is_404_and_no_call_of_osm(osm: Osm, method: str, path: str) -> None:
    assert (await osm.call(method, path)).status == 404
    assert await osm.calls() == []


@pytest.mark.parametrize("query", ["after=x", "nonsense=1", "limit=-1"])
@story
async def test_a_question_that_makes_no_sense_is_refused(osm: Osm, query: str) -> None:
    assert (await osm.call("GET", f"/control/calls?{query}")).status == 400


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://["])
@story
async def test_a_page_of_somebody_else_cannot_press_buttons(osm: Osm, origin: str) -> None:
    assert (await osm.call("POST", "/control/block", form={}, headers={"Origin": origin})).status == 403
    assert (await osm.state())["block"] is None


@story
async def test_its_own_pages_can_press_buttons(osm: Osm) -> None:
    assert (await osm.call("POST", "/control/block", form={}, headers={"Origin": osm.url})).status == 303
    assert (await osm.state())["block"] is not None


@story
async def test_what_curl_sends_without_a_header_is_taken_as_json(osm: Osm) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await osm.call("POST", "/control/tokens", body=b'{"user_id": 100001}', headers=headers)
    assert answer.json["user_id"] == ROBIN
