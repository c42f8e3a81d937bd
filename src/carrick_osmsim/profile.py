"""`/oauth/resource`: who the token is for, and the sections it may see."""

from __future__ import annotations

from typing import Any

from carrick_osmsim.reply import Reply, as_json
from carrick_osmsim.seed import AREAS
from carrick_osmsim.world import Grant, Level, Section, User, World

SCOPES = frozenset(f"section:{area}:{level}" for area in AREAS for level in ("read", "write"))
RANK: dict[str, int] = {"read": 1, "write": 2}
UPGRADES = {
    "level": "gold",
    "badges": True,
    "campsiteexternalbookings": False,
    "details": True,
    "events": True,
    "emailbolton": True,
    "programme": True,
    "accounts": False,
    "filestorage": False,
    "chat": False,
    "ai": False,
    "tasks": False,
    "at_home": True,
}


def profile(world: World, grant: Grant) -> Reply:
    """The user with all sections that the token's scopes open."""
    user = world.users[grant.user_id]
    sections = [section for section in world.sections.values() if sees(user, grant, section)]
    data = {
        "user_id": user.user_id,
        "full_name": user.full_name,
        "email": user.email,
        "profile_picture_url": None,
        "scopes": grant.scopes,
        "sections": [_section(section) for section in sections],
        "has_parent_access": False,
        "has_section_access": bool(sections),
    }
    answer: dict[str, Any] = {"status": True, "error": None, "data": data, "meta": []}
    return as_json(answer, effect=f"profile of {user.full_name}: {len(sections)} sections")


def sees(user: User, grant: Grant, section: Section) -> bool:
    """Whether the user has in that section everything that the token asks for; a token that asks nothing sees none."""
    return bool(grant.scopes) and all(_has(user, section, *_parts(scope)) for scope in grant.scopes)


def may(user: User, grant: Grant, section: Section, level: Level) -> bool:
    """Whether this token may read or write the members of that section."""
    granted = any(area == "member" and RANK[given] >= RANK[level] for area, given in map(_parts, grant.scopes))
    return granted and sees(user, grant, section) and _has(user, section, "member", level)


def _has(user: User, section: Section, area: str, level: str) -> bool:
    own = user.rights.get(section.section_id, {}).get(area)
    return own is not None and RANK[own] >= RANK[level]


def _parts(scope: str) -> tuple[str, str]:
    _, area, level = scope.split(":")
    return area, level


def _section(section: Section) -> dict[str, Any]:
    return {
        "section_name": section.section_name,
        "group_name": section.group_name,
        "section_id": section.section_id,
        "group_id": section.group_id,
        "section_type": section.section_type,
        "terms": [
            {"name": term.name, "startdate": term.startdate, "enddate": term.enddate, "term_id": term.term_id}
            for term in sorted(section.terms, key=lambda term: term.startdate)
        ],
        "upgrades": UPGRADES,
    }
