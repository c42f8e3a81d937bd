"""Profiles and patrols as OSM writes them, and what is refused."""

from __future__ import annotations

import copy
from datetime import date
from typing import Any

import pytest

from carrick_scoreboard.osm.answers import Nonsense, Patrol, patrols_of, profile_of

PROFILE: dict[str, Any] = {
    "status": True,
    "error": None,
    "data": {
        "user_id": 17,
        "full_name": "Rowan Example",
        "email": "rowan@example.org",
        "scopes": ["section:member:read"],
        "sections": [
            {
                "section_id": 4001,
                "section_name": "Cubs",
                "group_name": "1st Example",
                "group_id": 12,
                "section_type": "cubs",
                "terms": [
                    {"term_id": 1, "name": "Autumn", "startdate": "2025-09-01", "enddate": "2026-01-05"},
                    {"term_id": 2, "name": "Spring", "startdate": "2026-01-05", "enddate": "2026-03-31"},
                ],
                "upgrades": {},
            }
        ],
    },
    "meta": [],
}

PATROLS: dict[str, Any] = {
    "-2": {"patrolid": "-2", "sectionid": "-2", "name": "Leaders", "active": "1"},
    "-3": {"patrolid": "-3", "sectionid": "-2", "name": "Young Leaders", "active": "1", "points": "0"},
    "72700": {"patrolid": "72700", "sectionid": "4001", "name": "wolves", "points": "-3", "members": [{"id": 1}]},
    "72699": {"patrolid": "72699", "sectionid": "4001", "name": "Eagles", "points": "32", "members": [{"id": 2}]},
    "72701": {"patrolid": "72701", "sectionid": "4001", "name": "Empty", "points": "7", "members": []},
    "unallocated": {"members": [{"id": 3}]},
}


def changed(value: dict[str, Any], path: list[Any], to: Any) -> dict[str, Any]:
    other = copy.deepcopy(value)
    place: Any = other
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return other


def test_a_profile_names_the_user_and_their_sections() -> None:
    profile = profile_of(PROFILE)
    assert (profile.user_id, profile.full_name) == (17, "Rowan Example")
    section = profile.section(4001)
    assert section is not None
    assert (section.name, section.group_name, section.kind) == ("Cubs", "1st Example", "cubs")
    assert profile.section(4002) is None


def test_a_user_without_the_scope_has_no_sections() -> None:
    assert profile_of(changed(PROFILE, ["data", "sections"], [])).sections == ()


@pytest.mark.parametrize(
    ("day", "term"),
    [
        ("2025-08-31", None),
        ("2025-09-01", 1),
        ("2026-01-04", 1),
        ("2026-01-05", 2),
        ("2026-03-31", 2),
        ("2026-04-01", None),
    ],
)
def test_a_term_has_both_its_ends_and_the_later_one_wins(day: str, term: int | None) -> None:
    section = profile_of(PROFILE).sections[0]
    found = section.term_on(date.fromisoformat(day))
    assert (None if found is None else found.id) == term


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["data"], None),
        (["data", "user_id"], "me"),
        (["data", "user_id"], -1),
        (["data", "sections"], {"a": 1}),
        (["data", "sections", 0, "section_id"], None),
        (["data", "sections", 0, "terms", 0, "startdate"], "2025-13-01"),
        (["data", "sections", 0, "terms", 0, "enddate"], 5),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused(path: list[Any], value: object) -> None:
    with pytest.raises(Nonsense, match="profile: "):
        profile_of(changed(PROFILE, path, value))


def test_patrols_that_take_part_come_by_name() -> None:
    assert patrols_of(PATROLS) == (Patrol("72699", "Eagles", 32), Patrol("72700", "wolves", -3))


def test_a_section_without_patrols_answers_with_an_empty_list() -> None:
    assert patrols_of([]) == ()


@pytest.mark.parametrize(
    "value",
    [
        "nothing",
        [1],
        7,
        changed(PATROLS, ["72699"], []),
        changed(PATROLS, ["72699", "points"], "many"),
        changed(PATROLS, ["72699", "points"], None),
        changed(PATROLS, ["72699", "points"], "9" * 12),
        changed(PATROLS, ["72699", "patrolid"], "72700"),
        changed(PATROLS, ["72699", "name"], 5),
        changed(PATROLS, ["72699", "members"], "x"),
        changed(PATROLS, ["new"], {"patrolid": "new", "name": "N", "points": "1"}),
        {str(number): {} for number in range(1001)},
    ],
)
def test_patrols_that_make_no_sense_are_refused(value: object) -> None:
    with pytest.raises(Nonsense, match="patrol"):
        patrols_of(value)
