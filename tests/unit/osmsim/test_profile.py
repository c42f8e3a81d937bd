"""`/oauth/resource`: the form of the answer, and who sees which sections."""

from __future__ import annotations

import pytest

from tests.osm import ASH, JASPER, OLIVE, PERRY, ROBIN, SCOUTS, WILLOW, Osm, story

READ, WRITE = "section:member:read", "section:member:write"


@story
async def test_the_profile_has_osms_form_and_types(osm: Osm) -> None:
    answer = await osm.profile(await osm.token())
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert list(answer.json) == ["status", "error", "data", "meta"]
    assert (answer.json["status"], answer.json["error"], answer.json["meta"]) == (True, None, [])
    data = answer.json["data"]
    assert (data["user_id"], data["full_name"]) == (ROBIN, "Robin Merriweather")
    assert data["email"] == "robin.merriweather@ashmere.example"
    assert data["scopes"] == [READ, WRITE]
    section = next(section for section in data["sections"] if section["section_id"] == SCOUTS)
    assert section["section_name"] == "Wold Scouts"
    assert (section["group_name"], section["group_id"]) == ("1st Ashmere-on-the-Wold", 7101)
    assert section["section_type"] == "scouts"
    assert section["terms"][1] == {
        "name": "Spring 2026",
        "startdate": "2026-01-21",
        "enddate": "2026-04-21",
        "term_id": 50402,
    }
    assert section["upgrades"]["level"] == "gold"


@story
async def test_json_is_written_as_php_writes_it(osm: Osm) -> None:
    answer = await osm.read(await osm.token(WILLOW), section=40202, term=50602)
    assert b'"age":"11 \\/ 0"' in answer.body
    assert b"M\\u00f4r-wenoliaid" in answer.body
    assert b'": ' not in answer.body


@story
async def test_terms_may_overlap_by_a_day(osm: Osm) -> None:
    data = (await osm.profile(await osm.token(WILLOW))).json["data"]
    terms = next(section["terms"] for section in data["sections"] if section["section_id"] == 40201)
    assert [terms[0]["enddate"], terms[1]["startdate"]] == ["2026-03-02", "2026-03-02"]


@story
async def test_a_section_may_be_between_terms_or_have_none(osm: Osm) -> None:
    data = (await osm.profile(await osm.token(ASH))).json["data"]
    between, without = data["sections"]
    assert [between["terms"][0]["enddate"], between["terms"][1]["startdate"]] == ["2026-02-20", "2026-03-14"]
    assert without["terms"] == []


@pytest.mark.parametrize(
    ("user", "scopes", "seen"),
    [
        (ROBIN, [READ, WRITE], [40103, 40104]),
        (JASPER, [READ], [40103, 40104]),
        (JASPER, [READ, WRITE], []),
        (OLIVE, [READ], [40101, 40102, 40103, 40104, 40201, 40202, 40301]),
        (OLIVE, [WRITE], [40101, 40102, 40103, 40104, 40201, 40202]),
        (PERRY, [READ], []),
        (ROBIN, [], []),
    ],
)
@story
async def test_only_sections_where_the_user_has_every_scope_are_seen(
    osm: Osm, user: int, scopes: list[str], seen: list[int]
) -> None:
    data = (await osm.profile(await osm.token(user, scopes=scopes))).json["data"]
    assert [section["section_id"] for section in data["sections"]] == seen
    assert data["has_section_access"] is bool(seen)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer nonsense", "Basic abc"])
@story
async def test_without_a_good_token_the_answer_is_401(osm: Osm, header: str) -> None:
    answer = await osm.call("GET", "/oauth/resource", headers={"Authorization": header})
    assert (answer.status, answer.json["error"]) == (401, "access_denied")


@story
async def test_an_access_token_is_good_for_an_hour(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("clock", advance_seconds=3599)
    assert (await osm.profile(token)).status == 200
    await osm.control("clock", advance_seconds=1)
    assert (await osm.profile(token)).status == 401
