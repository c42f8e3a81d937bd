"""How points become a patrol's new score: who writes what, and what a read says about a write in doubt. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from uuid import UUID

import msgspec

from carrick_scoreboard.store.scores import Applied, Doubt


class Change(msgspec.Struct, frozen=True):
    """The points of one entry, and whose they are."""

    entry_id: UUID
    user_id: int
    points: int


class Step(msgspec.Struct, frozen=True):
    """Changes of one patrol that one write carries, with the credential of that user."""

    user_id: int
    changes: tuple[Change, ...]

    @property
    def points(self) -> int:
        """What they add up to; when that is nothing, nothing need be written."""
        return sum(change.points for change in self.changes)

    @property
    def is_shared(self) -> bool:
        """Whether they are of several users."""
        return len({change.user_id for change in self.changes}) > 1

    @property
    def entry_ids(self) -> tuple[UUID, ...]:
        return tuple(change.entry_id for change in self.changes)

    def applied(self, base: int) -> list[Applied]:
        """The score before and after each change, as if they had come one by one."""
        done = []
        for change in self.changes:
            done.append(Applied(change.entry_id, base, base + change.points))
            base += change.points
        return done


def steps(changes: Sequence[Change], *, merge: bool) -> list[Step]:
    """One write per user, in the order in which they came; merged: one for all, with the first one's credential."""
    if merge:
        return [Step(changes[0].user_id, tuple(changes))] if changes else []
    users = dict.fromkeys(change.user_id for change in changes)
    return [Step(user, tuple(change for change in changes if change.user_id == user)) for user in users]


class Verdict(Enum):
    """What a read says about a write in doubt."""

    HAPPENED = "happened"
    DID_NOT = "did not"
    UNCLEAR = "unclear"


def verdict(doubt: Doubt, score: int) -> Verdict:
    """The score that is there now, once the old request can no longer arrive."""
    if score == doubt.target:
        return Verdict.HAPPENED
    return Verdict.DID_NOT if score == doubt.base else Verdict.UNCLEAR


def writes_of(doubts: Iterable[Doubt]) -> list[list[Doubt]]:
    """Doubts that belong to one write, in the order of their entries."""
    writes: dict[str, list[Doubt]] = {}
    for doubt in doubts:
        writes.setdefault(doubt.write_id, []).append(doubt)
    return list(writes.values())


def happened(write: Sequence[Doubt]) -> list[Applied]:
    """The score before and after each entry of a write that turned out to have happened."""
    changes = tuple(Change(doubt.entry_id, 0, doubt.points) for doubt in write)
    return Step(0, changes).applied(write[0].base)
