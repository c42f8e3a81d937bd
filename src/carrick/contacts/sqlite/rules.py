"""Who is joined with whom, and what becomes of traits: the rules that stand in 0002_resolve.sql on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from carrick.contacts.identity import Identity, IdentityType
from carrick.outbox.sqlite.content import canonical

Traits = dict[str, Any]


class Found(NamedTuple):
    """A contact that some of the given identities belong to; `tied` are those, the strongest first."""

    contact_id: str
    seq: int
    external_id: str | None
    traits: Traits
    tied: tuple[Identity, ...]


class Plan(NamedTuple):
    """Which contacts become one (the oldest first), which stay apart, and the external id that decides it."""

    external_id: str | None
    joined: list[Found]
    apart: list[Found]


def plan(given: Sequence[Identity], found: Sequence[Found]) -> Plan:
    """The external id of a resolve is the one given, else that of the first contact found that has one.

    `found` has the contact of the strongest identity first. Contacts with another external id stay apart; all others
    become one.
    """
    named = given[0].normalised if given[0].type is IdentityType.EXTERNAL_ID else None
    external_id = named or next((one.external_id for one in found if one.external_id is not None), None)
    apart = [one for one in found if one.external_id not in (None, external_id)]
    joined = [one for one in found if one not in apart]
    return Plan(external_id, sorted(joined, key=lambda one: one.seq), apart)


def joined_traits(joined: Iterable[Found]) -> Traits:
    """The traits of contacts that become one; where several have a trait, the oldest contact's stays."""
    traits: Traits = {}
    for one in joined:
        traits = {**one.traits, **traits}
    return traits


def changed_traits(known: Traits, given: Traits) -> Traits:
    """The given traits that differ from those known; None where a trait goes."""
    return {name: value for name, value in given.items() if _text(value) != _text(known.get(name))}


def traits_after(known: Traits, given: Traits) -> Traits:
    """The traits once those given are set; None removes one."""
    return {name: value for name, value in {**known, **given}.items() if value is not None}


def _text(value: Any) -> str:
    """One text for equal JSON values: true is not 1, and 1 is 1.0."""
    return canonical(json.dumps(value))
