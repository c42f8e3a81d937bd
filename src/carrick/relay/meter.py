"""What the relay tells about its work; the metrics are made of it elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from carrick.entry import Batch, Outcome, OutcomeKind, State


class Tally(msgspec.Struct):
    """How many entries took which way."""

    claimed: int = 0
    delivered: int = 0
    retried: int = 0
    dead: int = 0
    released: int = 0
    lost: int = 0

    def add(self, other: Tally) -> None:
        for field in Tally.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


def tally_of(batch: Batch, outcomes: Mapping[UUID, Outcome] | None, states: Mapping[UUID, State]) -> Tally:
    """What a finish has changed, counted; what it should have changed and did not was lost with the lease."""
    if outcomes is None:
        return Tally(claimed=len(batch), delivered=len(states), lost=len(batch) - len(states))
    ways: Counter[str] = Counter()
    for entry_id, state in states.items():
        spent = outcomes[entry_id].kind is not OutcomeKind.RELEASED
        ways[state if state is not State.PENDING else "retried" if spent else "released"] += 1
    return Tally(
        claimed=len(batch),
        delivered=ways[State.DELIVERED],
        retried=ways["retried"],
        dead=ways[State.DEAD],
        released=ways["released"],
        lost=len(outcomes) - len(states),
    )


class Meter(Protocol):
    """Takes note of what happens. Called from the event loop; must be quick."""

    def claimed(self, channel: str, entries: int, seconds: float) -> None:
        """A claim took so long and got so many."""

    def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None:
        """One call of the sink took so long. Something of it was delivered, something failed: both, or neither."""

    def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None:
        """A batch is over. `now` is the database's clock."""

    def lease_lost(self, channel: str, entries: int) -> None:
        """A lease moved on while its batch was on the way."""


class NoMeter:
    """Takes no note."""

    def claimed(self, channel: str, entries: int, seconds: float) -> None: ...
    def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None: ...
    def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None: ...
    def lease_lost(self, channel: str, entries: int) -> None: ...


class Meters:
    """Several that take note of the same."""

    def __init__(self, *meters: Meter) -> None:
        self._meters = meters

    def claimed(self, channel: str, entries: int, seconds: float) -> None:
        for meter in self._meters:
            meter.claimed(channel, entries, seconds)

    def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None:
        for meter in self._meters:
            meter.sent(channel, seconds, delivered=delivered, failed=failed)

    def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None:
        for meter in self._meters:
            meter.finished(channel, tally, batch, now)

    def lease_lost(self, channel: str, entries: int) -> None:
        for meter in self._meters:
            meter.lease_lost(channel, entries)
