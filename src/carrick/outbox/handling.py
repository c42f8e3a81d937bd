"""Handlers: functions of the application that deliver a channel's entries, and what they may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from carrick.entry import Batch, Outcome
from carrick.errors import InvalidInput

Answer: TypeAlias = Mapping[UUID, Outcome] | Iterable[tuple[UUID, Outcome]] | None
"""None: everything is delivered. Otherwise an outcome per entry; an entry that is not named goes back, unspent."""

Handler: TypeAlias = Callable[[Batch], Answer | Awaitable[Answer]]
"""Does with a batch what the channel is for. May be a coroutine function."""

ANSWERS_ACCEPTED = "None, or outcomes by entry id: {entry.id: Outcome.delivered(), …}"


class Retry(Exception):
    """A handler raises this when none of the batch worked and all of it may work later.

    `after` is in seconds; without it the channel's backoff counts.
    """

    def __init__(self, message: str | None = None, *, after: float | None = None) -> None:
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

    def __init__(self, message: str = "the handler rejected it") -> None:
        super().__init__(message)
        self.message = message

    def outcome(self) -> Outcome:
        """What it means for an entry that was alone."""
        return Outcome.rejected(self.message, code="rejected")


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


def outcomes_of(batch: Batch, answer: Any) -> dict[UUID, Outcome]:
    """What a handler's answer says about each entry. Raises InvalidInput for what is no answer."""
    ids = {entry.id for entry in batch}
    if answer is None:
        return dict.fromkeys(ids, Outcome.delivered())
    try:
        outcomes = dict(answer)
    except (TypeError, ValueError):
        raise InvalidInput("answer", f"the handler returned {_shown(answer)}", ANSWERS_ACCEPTED) from None
    for entry_id, outcome in outcomes.items():
        if not isinstance(outcome, Outcome):
            raise InvalidInput("answer", f"the outcome of {entry_id} is {_shown(outcome)}", ANSWERS_ACCEPTED)
        if entry_id not in ids:
            raise InvalidInput("answer", f"{_shown(entry_id)} is no id of this batch", ANSWERS_ACCEPTED)
    return outcomes


def name_of(handler: object) -> str:
    """How a handler is called in messages."""
    module, name = getattr(handler, "__module__", None), getattr(handler, "__qualname__", None)
    return f"{module}.{name}" if module and name else repr(handler)


def _shown(value: object) -> str:
    return repr(value)[:80]
