"""What a sink is: one small class that hands entries to a destination and reports what became of them.

A report is one of three: the destination looked at the entries one by one (Results), refused the whole because of
something in it (Refused), or could not be asked at all (Unavailable). What follows from a report (splitting, gates,
backoff, outcomes) is the relay's business, so that it is the same for every sink.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias
from uuid import UUID

import msgspec

from carrick.entry import Entry, Outcome
from carrick.steady import steady_seconds


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The destination answered for itself. An entry that `outcomes` does not name was not tried, and is released.

    `unavailable`: it answered for these entries and then could be asked no more, so a gate closes nevertheless.
    """

    outcomes: Mapping[UUID, Outcome]
    unavailable: Unavailable | None = None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The destination refused the batch for a reason that may lie in one entry: it is split until that one is alone.

    Nothing of it took effect there. `too_large`: the batch as such was too big, so the next ones are made smaller.
    """

    code: str
    message: str
    too_large: bool = False


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """The destination could not be asked, or said "not now" or "not you": a gate closes and no attempt is spent.

    `seconds`: how long the destination asked to be left alone; None: the breaker's growing backoff.
    `unsure`: the request may have taken effect there (only where the destination is not idempotent).
    `connection`: it could not even be reached, so a bare connect (`Sink.reachable`) may open the gate early.
    `too_large`: it, or somebody on the way, found the batch too big, so the next ones are made smaller.
    `scope`: which gate; a sink that knows better names a tenant's or a principal's.
    """

    code: str
    message: str
    seconds: float | None = None
    unsure: bool = False
    connection: bool = False
    too_large: bool = False
    scope: str = "*"


Report: TypeAlias = Results | Refused | Unavailable


def has_delivered(report: Report) -> bool:
    """Whether the destination has taken something."""
    return isinstance(report, Results) and any(outcome.is_success for outcome in report.outcomes.values())


def failure_of(report: Report) -> str | None:
    """The code of what failed first; None where nothing did."""
    if not isinstance(report, Results):
        return report.code
    if report.unavailable is not None:
        return report.unavailable.code
    return next(
        (outcome.code or outcome.kind.value for outcome in report.outcomes.values() if outcome.is_failure), None
    )


def unfit(error: Exception) -> Outcome:
    """The end of an entry that no message can be made of, whatever comes back."""
    return Outcome.rejected(error, code="invalid_entry")


class LeaseLost(Exception):
    """The entries belong to somebody else now, or nobody can tell: drop them, and write nothing about them."""


class Note(Protocol):
    """Writes down what a sink is about to do, with these entries (None: all)."""

    async def __call__(self, intent: Any, ids: Collection[UUID] | None = None, /) -> None:
        """Durable when it returns. Raises LeaseLost."""


async def _note_nothing(_: Any, __: Collection[UUID] | None = None, /) -> None:
    """Where there is no lease there is nothing to write an intent to."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of one claim on their way out: all of them, or a part after a split.

    `deadline` is a time of `steady_seconds`, some way before the lease ends: later than that the sink must not
    start anything, and must have given up what it started.
    `note` writes down, durably, what the sink is about to do (JSON), with which entries (else all), in place of what it
    noted before. Should the process die or stop then, or the outcome be unsure, those of a coalesced group come back
    together, with this as their `intent`. Raises LeaseLost, which the sink lets pass: it must do nothing then.
    Entries of a group that come while others of it are in doubt, behind a gate, carry that doubt's intent: what became
    of it is for the sink to find out, and to remember, before it does anything.
    """

    entries: Sequence[Entry]
    deadline: float
    note: Note = _note_nothing

    def seconds_left(self) -> float:
        """How long the delivery may still take."""
        return self.deadline - steady_seconds()


class Sink(Protocol):
    """A destination. One object serves one channel and is used by several deliveries at once.

    `side_by_side`: what one claim took may go out as several deliveries at once. Not where the sink notes what it is
    about to do, or is ever unsure of what it did: both are about all that was claimed together.
    `idempotent`: what may have arrived may simply be handed over again. Where not, a delivery that ends without a
    report (the process stops, or the sink raises) is unsure. After a `note` it is unsure in any case.
    """

    side_by_side: bool = False
    idempotent: bool = True

    async def deliver(self, delivery: Delivery) -> Report:
        """Hand the entries over. Raises nothing on purpose: what goes wrong is a report.

        Cancelling it means that the lease is lost or the process stops: it must not go on in the background.
        """

    async def reachable(self) -> bool:
        """Whether a bare connection to the destination comes about now; sends nothing."""

    async def close(self) -> None:
        """Give back what the sink holds open. It is not used afterwards."""
