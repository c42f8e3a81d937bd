"""The plain values of the engine: entries, their states, and what became of a delivery. No I/O here."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, Self, TypeAlias
from uuid import UUID

import msgspec

from carrick.errors import UnknownState

MICROSECONDS_PER_PRIORITY_STEP = 600 * 1_000_000
"""Ten minutes of waiting outweigh one step of priority."""


class State(StrEnum):
    """Where an entry is. `held` is not a state: it is pending behind a closed gate, and derived."""

    PENDING = "pending"
    CLAIMED = "claimed"
    DELIVERED = "delivered"
    DEAD = "dead"

    @classmethod
    def parse(cls, name: str) -> State:
        """Accept a state by Carrick's name or by a name that other outboxes use for it.

        Raises UnknownState with the accepted names.
        """
        try:
            return STATE_NAMES[name]
        except KeyError:
            raise UnknownState(name, sorted(STATE_NAMES)) from None


STATE_NAMES: dict[str, State] = {
    **{state.value: state for state in State},
    "acked": State.DELIVERED,
    "completed": State.DELIVERED,
    "dlq": State.DEAD,
    "failed": State.DEAD,
    "processing": State.CLAIMED,
    "sending": State.CLAIMED,
    "auth_revoked": State.PENDING,
}
"""Every name a state is accepted under, at the edges only."""


class OutcomeKind(StrEnum):
    """What became of one entry's delivery."""

    DELIVERED = "delivered"
    DUPLICATE = "duplicate"
    RETRY = "retry"
    UNSURE = "unsure"
    REJECTED = "rejected"
    RELEASED = "released"


After: TypeAlias = float | timedelta | None
Code: TypeAlias = str | int | None
Message: TypeAlias = str | BaseException | None


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry's outcome, as a sink reports it. Use the constructors: `Outcome.retry(after=30)`.

    `after` is in seconds from now; `code` and `message` are kept as the entry's last error, except of what is released.
    The constructors also take a timedelta, a whole number (an HTTP status) as code, and an exception as message.
    """

    kind: OutcomeKind
    after: float | None = None
    code: str | None = None
    message: str | None = None

    @classmethod
    def delivered(cls) -> Self:
        return cls(kind=OutcomeKind.DELIVERED)

    @classmethod
    def duplicate(cls) -> Self:
        return cls(kind=OutcomeKind.DUPLICATE)

    @classmethod
    def retry(cls, *, after: After = None, code: Code = None, message: Message = None) -> Self:
        return cls(kind=OutcomeKind.RETRY, after=_seconds(after), code=_name(code), message=_text(message))

    @classmethod
    def unsure(cls, *, after: After = None, code: Code = None, message: Message = None) -> Self:
        return cls(kind=OutcomeKind.UNSURE, after=_seconds(after), code=_name(code), message=_text(message))

    @classmethod
    def rejected(cls, message: Message = None, *, code: Code = None) -> Self:
        return cls(kind=OutcomeKind.REJECTED, code=_name(code), message=_text(message))

    @classmethod
    def released(cls, *, after: After = None, code: Code = None, message: Message = None) -> Self:
        return cls(kind=OutcomeKind.RELEASED, after=_seconds(after), code=_name(code), message=_text(message))

    @property
    def is_success(self) -> bool:
        """Whether the destination has the entry."""
        return self.kind in (OutcomeKind.DELIVERED, OutcomeKind.DUPLICATE)

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong. An entry released without a code was only given back, untried."""
        return not self.is_success and (self.kind is not OutcomeKind.RELEASED or self.code is not None)


def _seconds(after: After) -> float | None:
    return after.total_seconds() if isinstance(after, timedelta) else after


def _name(code: Code) -> str | None:
    return f"{code:d}" if isinstance(code, int) else code


def _text(message: Message) -> str | None:
    """What an exception says; its name where it says nothing."""
    return str(message) or type(message).__name__ if isinstance(message, BaseException) else message


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as a producer gives it, already checked; `payload` is the JSON text that will be delivered.

    Who gives an `id` gives a key, too: puts recognise each other by their keys.
    """

    channel: str
    event_type: str
    payload: bytes
    id: UUID | None = None
    key: str | None = None
    tenant_id: str = ""
    group_key: str | None = None
    principal: str | None = None
    priority: int = 0
    headers: bytes | None = None
    traceparent: str | None = None
    occurred_at: datetime | None = None
    delay_seconds: float | None = None
    max_wait_seconds: float | None = None


class Put(msgspec.Struct, frozen=True):
    """The answer to a put: `created` is false when the same key with the same content was there already."""

    id: UUID
    created: bool
    state: State


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A claimed entry with everything a sink needs. `payload` is never parsed on its way here.

    The garbage collector need not look at it, for nothing in it leads back to it: thousands are alive at a time.
    """

    id: UUID
    seq: int
    channel: str
    tenant_id: str
    principal: str | None
    group_key: str | None
    event_type: str
    key: str | None
    payload: bytes
    headers: dict[str, Any] | None
    payload_size_bytes: int
    priority: int
    traceparent: str | None
    occurred_at: datetime | None
    created_at: datetime
    attempt_count: int
    crash_count: int
    intent: Any = None
    """What was noted when it is in doubt; else what was noted of others of its group that are, behind a gate."""

    @property
    def group(self) -> tuple[str, str] | None:
        """Which entries it keeps its order with: those of the same group of the same tenant."""
        return None if self.group_key is None else (self.tenant_id, self.group_key)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one claim took: entries in delivery order under one lease. Empty (and false) when nothing was due.

    `lease_seconds` is how long the lease was when it was taken. `probe`: it goes ahead through a gate that failures
    have closed, to see whether the destination is back.
    """

    channel: str
    token: UUID
    lease_expires_at: datetime | None
    entries: tuple[Entry, ...]
    lease_seconds: float = 0.0
    probe: bool = False

    def __len__(self) -> int:
        return len(self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


ClosedBy = Literal["person", "destination", "failures"]
"""Who closed a gate. What failures closed, anybody may open or close for another time."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate that was closed. `closed_until` is None when it stays closed until somebody opens it."""

    channel: str
    scope: str
    closed_until: datetime | None
    reason: str
    consecutive_failures: int
    closed_by: ClosedBy = "person"


class ChannelStats(msgspec.Struct, frozen=True, kw_only=True):
    """A channel at a glance. `held_count` is the part of `pending_count` that waits behind a closed gate.

    `delivered_per_second` is that of all processes together: the mean of the last minute, or since the 10,000th last
    delivery where that is less. `last_error_at` is to the second; it names the last outcome that was a failure.

    `approximate` names the fields that are estimates, because so much waits or is dead that counting would take long.
    """

    channel: str
    pending_count: int
    held_count: int
    claimed_count: int
    dead_count: int
    backlog_bytes: int
    oldest_pending_age_seconds: float | None
    delivered_per_second: float
    last_success_at: datetime | None
    last_error_at: datetime | None
    approximate: tuple[str, ...] = ()


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What a relay that is about to sleep must know.

    `due_in` is in seconds: until something becomes due, a lease of another ends or a gate's time is up; None when
    nothing of that is in sight. `unseen`: somebody has put in a transaction that is still open and may not know that
    the relay sleeps, so it should look again soon.
    """

    due_in: float | None
    unseen: bool


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as lists show it: where it is, not what it carries."""

    id: UUID
    seq: int
    channel: str
    tenant_id: str
    principal: str | None
    group_key: str | None
    event_type: str
    key: str | None
    payload_size_bytes: int
    priority: int
    occurred_at: datetime | None
    created_at: datetime
    state: State
    next_attempt_at: datetime | None
    attempt_count: int
    crash_count: int
    last_attempt_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None
    claimed_by: str | None
    lease_expires_at: datetime | None
    delivered_at: datetime | None
    failed_at: datetime | None
    dlq_reason: str | None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a list. `next` is the cursor of the page behind it; None at the end."""

    lines: tuple[Line, ...]
    next: str | None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found. `cut`: there is more than was asked for.

    `tenants_unseen`: keys and groups of further tenants were not looked for. `ended_unseen`: there are older dead or
    delivered entries, which were not looked at for their tenant and group.
    """

    lines: tuple[Line, ...]
    cut: bool
    tenants_unseen: bool
    ended_unseen: bool


class DeadCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many died of one reason with one error, and when the first and the last of them did."""

    reason: str
    error_code: str | None
    count: int
    first_at: datetime
    last_at: datetime


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What one entry carries, for a person to look at. `cut`: the payload goes on behind what is shown."""

    seq: int
    key: str | None
    payload: str
    cut: bool
    headers: dict[str, Any] | None
    payload_size_bytes: int
    priority: int
    traceparent: str | None
    occurred_at: datetime | None


class TenantWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries of a tenant wait, counted up to a limit."""

    tenant_id: str
    waiting: int


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life: who has a duty, holds leases (of so many entries, the last taken at `since`) or rests.

    After `until` it says nothing any more. `what` is the duty, or the channel.
    """

    owner: str
    doing: Literal["duty", "lease", "rest"]
    what: str
    entries: int
    since: datetime | None
    until: datetime


class Attempt(msgspec.Struct, frozen=True):
    """One delivery that did not go through, the entry's `number`th attempt or after so many.

    `outcome` is "failed", "lapsed" when its worker let the lease run out, or "dead" when the entry was given up with it
    and redriven since.
    """

    at: datetime
    outcome: str
    number: int
    code: str | None
    message: str | None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about where one entry stands, as the store knows them at `now`; `explain` makes a sentence of it.

    `gate` is the closed gate that holds it, or the unsure delivery that it is part of or waits for; `blocked_by` the
    entry of its group that must go first; `group_due_at` when its debounced group is due; `rank_ahead` how many entries
    of its tenant go before it (counted up to 1000). `attempts` are the last deliveries that did not go through, in
    order.
    """

    id: UUID
    now: datetime
    channel: str
    tenant_id: str
    principal: str | None
    group_key: str | None
    event_type: str
    state: State
    created_at: datetime
    attempt_count: int
    crash_count: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None
    claimed_by: str | None
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    delivered_at: datetime | None
    failed_at: datetime | None
    dlq_reason: str | None
    frozen: bool
    gate: Gate | None
    blocked_by: UUID | None
    group_held: bool
    group_due_at: datetime | None
    rank_ahead: int
    attempts: tuple[Attempt, ...] = ()
