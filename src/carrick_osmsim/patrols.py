"""The patrols of a section, read and written, with OSM's types: strings for a patrol, numbers for its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrick_osmsim.reply import Reply, as_json
from carrick_osmsim.world import Member, Patrol, Section, World

SPECIAL = ((-3, "Young Leaders (YLs)"), (-2, "Leaders"))
ROLES = {2: ("Patrol Leader", "PL"), 1: ("Assistant Patrol Leader", "APL")}
MAX_POINTS = 2**31 - 1


def read_patrols(section: Section, query: Mapping[str, str]) -> Reply:
    """All patrols with their members. A section without patrols is an empty list, not an empty object."""
    if not any(str(term.term_id) == query.get("termid") for term in section.terms):
        return as_json({"error": "Invalid term"}, effect=f"refused: {query.get('termid')!r} is no term of the section")
    effect = f"read {len(section.patrols)} patrols of {section.section_name}"
    if not section.patrols:
        return as_json([], effect=effect)
    answer: dict[str, Any] = {str(number): _special(number, name) for number, name in SPECIAL}
    for patrol in section.patrols:
        answer[str(patrol.patrol_id)] = _patrol(section, patrol)
    if query.get("include_no_patrol") == "y":
        answer["unallocated"] = {"members": _members(section, 0, "")}
    return as_json(answer, effect=effect)


def write_points(section: Section, form: Mapping[str, str]) -> Reply:
    """Set the points of a patrol to that number, whatever they were; answers an empty list."""
    patrol_id, points = _whole(form.get("patrolid")), _whole(form.get("points"))
    patrol = None if patrol_id is None else section.patrol(patrol_id)
    if patrol is None:
        return as_json(False, effect=f"refused: {form.get('patrolid')!r} is no patrol of the section")
    if points is None or abs(points) > MAX_POINTS:
        return as_json({"error": "Invalid points"}, effect=f"refused: {form.get('points')!r} are no points")
    before, patrol.points = patrol.points, points
    return as_json([], effect=f"points of {patrol.name} ({patrol_id}): {before} → {points}", applied=True)


def section_of(world: World, text: str | None) -> Section | None:
    """The section with that id, as it was sent."""
    number = _whole(text)
    return None if number is None else world.sections.get(number)


def _whole(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-")
    if text is None or not digits.isascii() or not digits.isdigit() or len(digits) > 12:
        return None
    return int(text)


def _special(number: int, name: str) -> dict[str, Any]:
    return {
        "patrolid": str(number),
        "sectionid": "-2",
        "name": name,
        "active": "1",
        "points": "0",
        "census_costs": False,
        "members": [],
    }


def _patrol(section: Section, patrol: Patrol) -> dict[str, Any]:
    return {
        "patrolid": str(patrol.patrol_id),
        "sectionid": str(section.section_id),
        "name": patrol.name,
        "active": "1",
        "points": str(patrol.points),
        "census_costs": False,
        "members": _members(section, patrol.patrol_id, patrol.name),
    }


def _members(section: Section, patrol_id: int, patrol_name: str) -> list[dict[str, Any]]:
    here = [member for member in section.members if member.patrol_id == patrol_id]
    return [_member(member, section.section_id, patrol_name) for member in here]


def _member(member: Member, section_id: int, patrol_name: str) -> dict[str, Any]:
    label, short = ROLES.get(member.role, ("", ""))
    answer: dict[str, Any] = {
        "firstname": member.firstname,
        "lastname": member.lastname,
        "scout_id": member.scout_id,
        "photo_guid": None,
        "patrolid": member.patrol_id,
        "patrolleader": str(member.role),
        "patrol": f"{patrol_name} {short}".strip(),
        "sectionid": section_id,
        "enddate": None,
        "age": f"{member.years} / {member.months}",
        "patrol_role_level_label": label,
        "active": 1,
        "scoutid": member.scout_id,
    }
    if member.role:
        answer |= {"patrol_role_level_abbr": short, "patrol_role_level": member.role}
    return answer | {"editable": True}
