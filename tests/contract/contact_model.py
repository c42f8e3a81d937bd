"""The rules of contacts in plain Python, without a database: the judge of what the databases do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Name = tuple[str, str]
"""Type and normalised value of an identity."""

ORDER = ["external_id", "email", "phone", "anonymous_id"]


@dataclass
class Person:
    """A contact; its number is its age."""

    number: int
    names: set[Name] = field(default_factory=set)
    traits: dict[str, Any] = field(default_factory=dict)
    merged_into: int | None = None

    @property
    def external_id(self) -> str | None:
        return next((value for kind, value in self.names if kind == "external_id"), None)


@dataclass
class Answer:
    """What a resolve answers, in numbers."""

    number: int
    created: bool
    merged: list[int]
    conflicts: list[int]


class Model:
    """The contacts of one tenant, and every event about them in order."""

    def __init__(self) -> None:
        self.people: list[Person] = []
        self.events: list[tuple[Any, ...]] = []
        self._told: set[frozenset[str]] = set()

    def resolve(self, given: list[Name], traits: dict[str, Any]) -> Answer:
        names = sorted(dict.fromkeys(given), key=lambda name: ORDER.index(name[0]))
        found = list({owner.number: owner for name in names if (owner := self._owner(name))}.values())
        ids = [value for kind, value in names if kind == "external_id"]
        ids += [person.external_id for person in found if person.external_id is not None]
        apart = [person for person in found if person.external_id is not None and person.external_id != ids[0]]
        same = sorted((person for person in found if person not in apart), key=lambda person: person.number)
        new = [name for name in names if self._owner(name) is None]
        created = not same
        if created:
            self.people.append(Person(len(self.people)))
            same = [self.people[-1]]
        survivor, *losers = same
        for loser in losers:
            self._merge(survivor, loser)
        self._add(survivor, created, new, traits)
        for other in apart:
            self._conflict(survivor, ids[0], other, names)
        numbers = [person.number for person in losers], [person.number for person in apart]
        return Answer(survivor.number, created, *numbers)

    def living(self) -> list[set[Name]]:
        return [person.names for person in self.people if person.merged_into is None]

    def _owner(self, name: Name) -> Person | None:
        return next((person for person in self.people if name in person.names), None)

    def _merge(self, survivor: Person, loser: Person) -> None:
        survivor.traits = loser.traits | survivor.traits
        survivor.names |= loser.names
        loser.names = set()
        loser.merged_into = survivor.number
        self.events.append(("merged", survivor.number, loser.number))

    def _add(self, person: Person, created: bool, new: list[Name], traits: dict[str, Any]) -> None:
        changed = {key: value for key, value in traits.items() if person.traits.get(key) != value}
        person.names |= set(new)
        person.traits = {key: value for key, value in (person.traits | traits).items() if value is not None}
        if created:
            self.events.append(("created", person.number, new, person.traits))
        elif new or changed:
            self.events.append(("updated", person.number, new, changed))

    def _conflict(self, person: Person, external_id: str, other: Person, names: list[Name]) -> None:
        assert other.external_id is not None
        pair = frozenset({external_id, other.external_id})
        if pair not in self._told:
            self._told.add(pair)
            tied = [name for name in names if name in other.names]
            self.events.append(("conflict", person.number, external_id, other.number, other.external_id, tied))


def components(requests: list[list[Name]]) -> set[frozenset[Name]]:
    """Which identities end up together when nothing keeps them apart: union and find."""
    parent: dict[Name, Name] = {}

    def root(name: Name) -> Name:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for first, *others in requests:
        for name in others:
            parent[root(name)] = root(first)
        root(first)
    groups: dict[Name, set[Name]] = {}
    for name in parent:
        groups.setdefault(root(name), set()).add(name)
    return {frozenset(group) for group in groups.values()}
