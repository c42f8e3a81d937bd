"""Reading patrols and writing points, with OSM's types and its ways of saying no."""

from __future__ import annotations

import pytest

from tests.osm import EAGLES, JASPER, LIONS, OLIVE, ROBIN, SCOUTS, WILLOW, Osm, story

READ = "section:member:read"


@story
async def test_a_patrol_has_strings_and_its_members_have_numbers(osm: Osm) -> None:
    answer = await osm.read(await osm.token())
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    patrol = answer.json["72699"]
    member = patrol.pop("members")[0]
    assert patrol == {
        "patrolid": "72699",
        "sectionid": "40104",
        "name": "Eagles",
        "active": "1",
        "points": "32",
        "census_costs": False,
    }
    numbers = {name: member[name] for name in ("scout_id", "scoutid", "patrolid", "sectionid", "active")}
    assert numbers == {
        "scout_id": 4010400,
        "scoutid": 4010400,
        "patrolid": EAGLES,
        "sectionid": SCOUTS,
        "active": 1,
    }
    assert (member["patrolleader"], member["patrol_role_level"], member["patrol"]) == ("2", 2, "Eagles PL")


@story
async def test_leaders_and_young_leaders_are_special_patrols_without_members(osm: Osm) -> None:
    patrols = (await osm.read(await osm.token())).json
    for number in ("-2", "-3"):
        special = patrols[number]
        assert (special["patrolid"], special["sectionid"], special["points"]) == (number, "-2", "0")
        assert special["members"] == []


@story
async def test_a_real_patrol_may_have_no_members(osm: Osm) -> None:
    patrols = (await osm.read(await osm.token())).json
    assert (patrols["175221"]["sectionid"], patrols["175221"]["members"]) == ("40104", [])


@story
async def test_those_in_no_patrol_are_a_key_with_members_only(osm: Osm) -> None:
    unallocated = (await osm.read(await osm.token())).json["unallocated"]
    assert list(unallocated) == ["members"]
    assert {member["patrolid"] for member in unallocated["members"]} == {0}


@story
async def test_those_in_no_patrol_come_only_when_asked_for(osm: Osm) -> None:
    assert "unallocated" not in (await osm.read(await osm.token(), include_no_patrol="n")).json


@story
async def test_a_section_without_patrols_is_an_empty_list(osm: Osm) -> None:
    assert (await osm.read(await osm.token(OLIVE), section=40101, term=50102)).body == b"[]"


@story
async def test_the_same_patrol_id_in_two_sections_is_two_patrols(osm: Osm) -> None:
    await osm.write(await osm.token(WILLOW), 99, patrol=72699, section=40202)
    assert (await osm.points(72699, 40202), await osm.points(72699, SCOUTS)) == (99, 32)


@story
async def test_writing_sets_the_value_and_answers_an_empty_list(osm: Osm) -> None:
    token = await osm.token()
    answer = await osm.write(token, 37)
    assert (answer.status, answer.body) == (200, b"[]")
    assert (await osm.read(token)).json["72699"]["points"] == "37"


@story
async def test_writing_has_no_comparison_and_no_memory(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, points=500)
    await osm.write(token, 37)
    await osm.write(token, 37)
    assert await osm.points() == 37


@story
async def test_points_may_be_negative(osm: Osm) -> None:
    await osm.write(await osm.token(), -4)
    assert await osm.points() == -4


@story
async def test_the_points_do_not_depend_on_the_term(osm: Osm) -> None:
    token = await osm.token()
    assert (await osm.read(token, term=50401)).json["72699"]["points"] == "32"


@pytest.mark.parametrize("term", ["50602", "0", "", "x"])
@story
async def test_a_term_of_another_section_is_an_error_with_status_200(osm: Osm, term: str) -> None:
    answer = await osm.read(await osm.token(), term=term)
    assert (answer.status, answer.json) == (200, {"error": "Invalid term"})


@pytest.mark.parametrize("section", ["40202", "1", "", "40104 or 1=1", "9" * 400])
@story
async def test_a_section_of_somebody_else_cannot_be_read(osm: Osm, section: str) -> None:
    answer = await osm.read(await osm.token(), section=section)
    assert (answer.status, list(answer.json)) == (200, ["error"])


@story
async def test_who_may_only_read_gets_an_error_on_writing(osm: Osm) -> None:
    token = await osm.token(JASPER, scopes=[READ])
    assert (await osm.read(token)).json["72699"]["points"] == "32"
    answer = await osm.write(token, 1)
    assert (answer.status, list(answer.json)) == (200, ["err"])
    assert await osm.points() == 32


@story
async def test_a_token_to_read_cannot_write_whoever_has_it(osm: Osm) -> None:
    assert list((await osm.write(await osm.token(ROBIN, scopes=[READ]), 1)).json) == ["err"]
    assert await osm.points() == 32


@pytest.mark.parametrize("patrol", ["-2", "1", "", "x", "64002"])
@story
async def test_points_for_a_patrol_that_is_not_there_are_answered_false(osm: Osm, patrol: str) -> None:
    answer = await osm.write(await osm.token(), 1, patrol=patrol)
    assert (answer.status, answer.body) == (200, b"false")


@pytest.mark.parametrize("points", ["", "5.5", "many", "99999999999", "٣"])
@story
async def test_points_that_are_no_number_are_refused(osm: Osm, points: str) -> None:
    answer = await osm.write(await osm.token(), points)
    assert (answer.status, answer.json) == (200, {"error": "Invalid points"})
    assert await osm.points() == 32


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/ext/members/patrols/?action=updatePatrolPoints&sectionid=40104"),
        ("POST", "/ext/members/patrols/?action=getPatrolsWithPeople&sectionid=40104"),
        ("GET", "/ext/members/patrols/?action=dropEverything"),
        ("GET", "/ext/members/patrols"),
        ("GET", "/oauth/token"),
        ("DELETE", "/oauth/resource"),
    ],
)
@story
async def test_what_osm_does_not_know_is_404_and_changes_nothing(osm: Osm, method: str, target: str) -> None:
    answer = await osm.call(method, target, token=await osm.token(), form={"points": 1, "patrolid": LIONS})
    assert (answer.status, await osm.points(LIONS)) == (404, 30)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"points=\xff"),
        ("application/x-www-form-urlencoded; charset=nonsense", b"points=1"),
        ("multipart/form-data", b"points"),
        ("multipart/form-data; boundary=x", b"--x\r\npoints"),
    ],
)
@pytest.mark.parametrize("path", ["/oauth/token", "/control/points"])
@story
async def test_a_body_that_is_no_form_is_the_callers_fault(osm: Osm, path: str, kind: str, body: bytes) -> None:
    answer = await osm.call("POST", path, body=body, headers={"Content-Type": kind})
    assert answer.status in ((400,) if path == "/oauth/token" else (303, 400))


@story
async def test_a_body_that_is_too_large_is_refused(osm: Osm) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await osm.call("POST", "/oauth/token", body=b"a=" + b"x" * 2_000_000, headers=headers)
    assert answer.status in (0, 413)
    assert (await osm.calls())[-1]["effect"] == "refused: the body is too large"
