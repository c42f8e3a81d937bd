"""Handlers: functions of the application that deliver a channel's entries, and what they may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from carrick.entry import After, Batch, Outcome, OutcomeKind
from carrick.errors import InvalidInput
from carrick.outbox.limits import check_finite

Answer: TypeAlias = Mapping[UUID, Outcome] | Iterable[tuple[UUID, Outcome]] | None
"""None: everything is delivered. Otherwise an outcome per entry; an entry that is not named goes back, unspent."""

Handler: TypeAlias = Callable[[Batch], Answer | Awaitable[Answer]]
"""Does with a batch what the channel is for. May be a coroutine function."""

ANSWERS_ACCEPTED = "None, or outcomes by entry id: {entry.id: Outcome.delivered(), …}"


class Retry(Exception):
    """A handler raises this when none of the batch worked and all of it may work later.

    `after` is in seconds, or a timedelta; without it the channel's backoff counts.
    """

    def __init__(self, message: str | BaseException | None = None, *, after: After = None) -> None:
        super().__init__(message or "the handler asked for another attempt")
        self.after = after
        self.message = message

    def outcome(self) -> Outcome:
        """What it means for each entry."""
        return Outcome.retry(after=self.after, code="retry", message=self.message)


class Reject(Exception):
    """A handler raises this when an entry will never work, before it has done anything with the batch.

    Alone in its batch, the entry is dead. Of several, each is tried in smaller batches until the bad one is alone.
    """

    def __init__(self, message: str | BaseException = "the handler rejected it") -> None:
        super().__init__(message)

    def outcome(self) -> Outcome:
        """What it means for an entry that was alone."""
        return Outcome.rejected(str(self), code="rejected")


class Handling(msgspec.Struct, frozen=True, kw_only=True):
    """A registered handler. `timeout` is in seconds, None for what the lease allows.

    `idempotent`: a call that did not end, in time or before the process stopped, may simply be repeated; else its
    outcome counts as unknown.
    """

    channel: str
    handler: Handler
    timeout: float | None = None
    idempotent: bool = True


def registered(known: Mapping[str, Handling], new: Handling) -> dict[str, Handling]:
    """The handlers with one more. Raises InvalidInput when its channel has one, or for a timeout that cannot be."""
    if new.channel in known:
        there = known[new.channel].handler
        raise InvalidInput("channel", f"{new.channel!r} has a handler already: {name_of(there)}", "one per channel")
    if new.timeout is not None and not 0 < new.timeout <= 86_400:
        raise InvalidInput(
            "timeout", f"{new.timeout!r} seconds", "more than 0, at most 86400; None for the lease's time"
        )
    if not callable(new.handler):
        raise InvalidInput("handler", f"{new.handler!r} is not a function", "a function that takes a Batch")
    return {**known, new.channel: new}


def outcomes_of(batch: Batch, answer: Any) -> tuple[dict[UUID, Outcome], list[Exception]]:
    """What a handler's answer says about each entry, and what is wrong with it.

    A fault in the outcome of one entry is that entry's: it is tried again, with the sentence as its last error. An
    outcome of nothing in this batch is a fault of the entries that are not named, one of which is meant.
    """
    ids = {entry.id for entry in batch}
    if answer is None:
        return dict.fromkeys(ids, Outcome.delivered()), []
    try:
        given = dict(answer)
    except (TypeError, ValueError):
        no_answer = InvalidInput("answer", f"the handler returned {_shown(answer)}", ANSWERS_ACCEPTED)
        return dict.fromkeys(ids, _refused(no_answer)), [no_answer]
    outcomes: dict[UUID, Outcome] = {}
    faults: list[Exception] = []
    for entry_id in ids & given.keys():
        try:
            outcomes[entry_id] = _checked(given[entry_id])
        except (InvalidInput, OverflowError) as fault:
            outcomes[entry_id] = _refused(fault)
            faults.append(fault)
    for strange in given.keys() - ids:
        faults.append(InvalidInput("answer", f"{_shown(strange)} is no id of this batch", ANSWERS_ACCEPTED))
        outcomes |= dict.fromkeys(ids - given.keys(), _refused(faults[-1]))
    return outcomes, faults


def name_of(handler: object) -> str:
    """How a handler is called in messages."""
    module, name = getattr(handler, "__module__", None), getattr(handler, "__qualname__", None)
    return f"{module}.{name}" if module and name else repr(handler)


def _checked(outcome: Any) -> Outcome:
    """The outcome as it is, if it can be written down. Raises what is wrong with it."""
    if not isinstance(outcome, Outcome) or not isinstance(outcome.kind, OutcomeKind):
        raise InvalidInput("answer", f"the outcome is {_shown(outcome)}", ANSWERS_ACCEPTED)
    check_finite("after", outcome.after)
    if not isinstance(outcome.code, str | None):
        raise InvalidInput("code", f"is {_shown(outcome.code)}", "text, or a whole number")
    if not isinstance(outcome.message, str | None):
        raise InvalidInput("message", f"is {_shown(outcome.message)}", "text, or an exception")
    return outcome


def _refused(fault: Exception) -> Outcome:
    return Outcome.retry(code="invalid_answer", message=fault)


def _shown(value: object) -> str:
    return repr(value)[:80]
