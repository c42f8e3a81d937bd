"""The content of OSM's answers, checked: profiles with sections and terms, patrols with points. Pure.

OSM writes numbers as numbers here and as texts there; both are taken. Anything that makes no sense is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")

MAX_PATROLS = 1_000

Id = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class Nonsense(Exception):
    """The answer does not have the structure it must have; the text says where."""


class Term(msgspec.Struct, frozen=True):
    """A term of a section, from its first day to its last."""

    id: Id = msgspec.field(name="term_id")
    name: str
    starts: date = msgspec.field(name="startdate")
    ends: date = msgspec.field(name="enddate")


class Section(msgspec.Struct, frozen=True):
    """A section that the user sees."""

    id: Id = msgspec.field(name="section_id")
    name: str = msgspec.field(name="section_name")
    group_name: str = ""
    kind: str = msgspec.field(name="section_type", default="")
    terms: tuple[Term, ...] = ()

    def term_on(self, day: date) -> Term | None:
        """The term that has this day, both ends included; of several the one that began last."""
        running = [term for term in self.terms if term.starts <= day <= term.ends]
        return max(running, key=lambda term: (term.starts, term.id), default=None)


class Profile(msgspec.Struct, frozen=True):
    """Who a credential belongs to, and what it may see."""

    user_id: Id
    full_name: str = ""
    email: str = ""
    scopes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    def section(self, section_id: int) -> Section | None:
        """The section of that id, if the user sees it."""
        return next((section for section in self.sections if section.id == section_id), None)


class Patrol(msgspec.Struct, frozen=True):
    """A patrol with its points."""

    id: str
    name: str
    points: int


class _Envelope(msgspec.Struct, frozen=True):
    data: Profile


class _Row(msgspec.Struct, frozen=True):
    patrolid: int
    name: str
    points: Annotated[int, msgspec.Meta(ge=-(10**9), le=10**9)]
    members: Sequence[Any] = ()


def profile_of(value: Any) -> Profile:
    """The answer of `/oauth/resource`. Raises Nonsense."""
    return _convert(value, _Envelope, "profile").data


def patrols_of(value: Any) -> tuple[Patrol, ...]:
    """The patrols that take part, by name. Raises Nonsense.

    Those of leaders (negative ids), the unallocated and those without members do not. A section without patrols answers
    with an empty list.
    """
    if value == []:
        return ()
    if not isinstance(value, dict) or not value:
        raise Nonsense(f"patrols: expected an object with patrols, got {shown(value)}")
    if len(value) > MAX_PATROLS:
        raise Nonsense(f"patrols: {len(value)} of them")
    rows = [_row(key, given) for key, given in value.items() if key != "unallocated"]
    taking_part = [row for row in rows if row.patrolid >= 0 and row.members]
    return tuple(
        Patrol(str(row.patrolid), row.name, row.points)
        for row in sorted(taking_part, key=lambda row: (row.name.casefold(), row.name, row.patrolid))
    )


def written_of(value: Any) -> None:
    """The answer to a write, which says nothing: an empty list. Raises Nonsense: anything else is somebody else's."""
    if value != []:
        raise Nonsense(f"a write: expected an empty list, got {shown(value)}")


def shown(value: Any) -> str:
    """What kind of value it is; an answer may hold names of children, so no more of it is told."""
    return f"{'an empty' if value in ({}, []) else 'a'} {type(value).__name__}"


def _row(key: str, given: Any) -> _Row:
    row = _convert(_special(key, given), _Row, f"patrol {key[:40]!r}")
    if str(row.patrolid) != key:
        raise Nonsense(f"patrol {key[:40]!r}: says that it is {row.patrolid}")
    return row


def _special(key: str, given: Any) -> Any:
    """The patrols of leaders lack what only others need."""
    return {"points": 0, **given} if key.startswith("-") and isinstance(given, Mapping) else given


def _convert(value: Any, kind: type[T], what: str) -> T:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Nonsense(f"{what}: {error}") from None
