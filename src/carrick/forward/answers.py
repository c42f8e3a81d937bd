"""What the forwarder's endpoints take and answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from carrick.entry import Line


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The database answers. Degraded: everything is right and slower, for that reason."""

    status: Literal["ready", "degraded"] = "ready"
    problem: str = ""
    mode: str = "send"


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the events, in the order given; they are on disk."""

    ids: Sequence[UUID]


class GateView(msgspec.Struct, frozen=True, kw_only=True):
    """A closed gate: nothing goes out through it. `closed_until` null: until somebody opens it."""

    scope: str
    reason: str
    closed_until: datetime | None
    consecutive_failures: int


class SyncState(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog at a glance. `pending_count` includes `held_count`, what waits behind a closed gate.

    `approximate` names the fields that are estimates, because so much waits or is dead that counting would take long.
    """

    pending_count: int
    claimed_count: int
    dlq_count: int
    oldest_pending_age_seconds: float | None
    last_success_at: datetime | None
    last_error_at: datetime | None
    held_count: int
    backlog_bytes: int
    approximate: Sequence[str]
    gates: Sequence[GateView]
    drain_rate_per_second: float
    eta_seconds: float | None
    catching_up: bool
    mode: str


class OutboxQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries to list."""

    status: str | None = None
    tenant: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    after: str | None = None


class DlqQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead entries to list."""

    tenant: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    after: str | None = None


class EntryView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the outbox: where it is, not what it carries."""

    id: UUID
    tenant_id: str
    event_type: str
    status: str
    attempt_count: int
    next_attempt_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None
    last_attempt_at: datetime | None
    occurred_at: datetime | None
    created_at: datetime
    group: str | None
    key: str | None
    priority: int
    payload_size_bytes: int
    claimed_by: str | None
    lease_expires_at: datetime | None
    delivered_at: datetime | None
    failed_at: datetime | None
    dlq_reason: str | None


class EntryList(msgspec.Struct, frozen=True, kw_only=True):
    """Some entries, oldest first; `next` is what to give as `after` for those behind them, null at the end."""

    entries: Sequence[EntryView]
    next: str | None = None


class CycleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle did."""

    claimed: int
    delivered: int
    retried: int
    dead: int
    released: int


class Redrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead entries to send round again: `ids`, or all of them with `allDlq`."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=10_000)] | None = None
    all_dlq: bool = msgspec.field(name="allDlq", default=False)
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    spread_seconds: Annotated[float, Meta(ge=0, le=86_400)] = msgspec.field(name="spreadSeconds", default=60.0)
    reason: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    dry_run: bool = msgspec.field(name="dryRun", default=False)


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries go round again, or would."""

    redriven: int
    dry_run: bool = msgspec.field(name="dryRun", default=False)


class UnclaimStuck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give back entries whose lease expired at least that long ago."""

    older_than_seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = msgspec.field(
        name="olderThanSeconds", default=300.0
    )


class Unclaimed(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries wait again, and how many are held by leases that ended later: the next claim has those."""

    unclaimed: int
    expired_younger: int


class Handshake(msgspec.Struct, frozen=True, kw_only=True):
    """What the cloud says to a bare question. `clock_difference_seconds`: the cloud's clock minus this one's."""

    reachable: bool
    status: int | None = None
    error: str | None = None
    clock_difference_seconds: float | None = None
    answer: Any = None


class LastError(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that failed lately, and why."""

    id: UUID
    at: datetime | None
    code: str | None
    message: str | None


class Diagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that helps to find out why nothing arrives."""

    instance_id: str
    edge_id: str
    mode: str
    cloud_url: str
    auth_mode: str
    database: str
    database_clock_difference_seconds: float
    handshake: Handshake
    gates: Sequence[GateView]
    last_errors: Sequence[LastError]


def entry_view(line: Line) -> EntryView:
    """An entry of the store as the API shows it."""
    return EntryView(
        id=line.id,
        tenant_id=line.tenant_id,
        event_type=line.event_type,
        status=line.state.value,
        attempt_count=line.attempt_count,
        next_attempt_at=line.next_attempt_at,
        last_error_code=line.last_error_code,
        last_error_message=line.last_error_message,
        last_attempt_at=line.last_attempt_at,
        occurred_at=line.occurred_at,
        created_at=line.created_at,
        group=line.group_key,
        key=line.key,
        priority=line.priority,
        payload_size_bytes=line.payload_size_bytes,
        claimed_by=line.claimed_by,
        lease_expires_at=line.lease_expires_at,
        delivered_at=line.delivered_at,
        failed_at=line.failed_at,
        dlq_reason=line.dlq_reason,
    )
