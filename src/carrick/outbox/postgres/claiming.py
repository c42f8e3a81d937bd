"""What a claim and a finish send to PostgreSQL, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from carrick.entry import Batch, Entry, Outcome, OutcomeKind, State
from carrick.outbox.channel import MAX_WAIT_SECONDS
from carrick.outbox.limits import check_claim, check_number, check_token
from carrick.outbox.postgres.marks import Lane
from carrick.outbox.wording import cleaned

ENTRY_FIELDS = len(Entry.__struct_fields__)
TENANT = Entry.__struct_fields__.index("tenant_id")
DUE, EXPIRES, LEASE_SECONDS, PROBE = range(ENTRY_FIELDS, ENTRY_FIELDS + 4)
"""Columns of claim.sql behind the entry's own."""
MAX_CODE, MAX_MESSAGE = 255, 2000
STATES = {state.value: state for state in State}
DELIVERED = frozenset({OutcomeKind.DELIVERED, OutcomeKind.DUPLICATE})


class Call(NamedTuple):
    """A query by its name, and its parameters."""

    name: str
    params: Mapping[str, Any]


class Claim(NamedTuple):
    """What one claim asks for; None means the channel's own."""

    channel: str
    owner: str
    max_rows: int | None
    max_bytes: int | None
    lease_seconds: int | None
    tenant: str | None
    token: UUID
    fresh_seconds: float | None

    @property
    def lane(self) -> Lane:
        """Claims of fresh entries leave the older ones behind, so they have marks of their own."""
        return self.channel, self.fresh_seconds is not None


def new_claim(
    channel: str,
    owner: str,
    *,
    max_rows: int | None = None,
    max_bytes: int | None = None,
    lease_seconds: int | None = None,
    tenant: str | None = None,
    token: UUID | None = None,
    fresh_seconds: float | None = None,
) -> Claim:
    """A claim whose limits were looked at, with a token of its own unless one is given. Raises InvalidInput."""
    check_claim(owner, max_rows=max_rows, max_bytes=max_bytes, lease_seconds=lease_seconds, fresh_seconds=fresh_seconds)
    return Claim(
        channel=channel,
        owner=owner,
        max_rows=max_rows,
        max_bytes=max_bytes,
        lease_seconds=lease_seconds,
        tenant=tenant,
        token=uuid4() if token is None else check_token(token),
        fresh_seconds=fresh_seconds,
    )


def finish_call(token: UUID, outcomes: Mapping[UUID, Outcome] | None) -> Call:
    """What finishes a lease: outcome by outcome, or all of it as delivered."""
    held = check_token(token)
    if outcomes is None:
        return Call("finish_all", {"token": held})
    given = [{"id": str(entry_id), **_outcome(outcome)} for entry_id, outcome in outcomes.items()]
    return Call("finish", {"token": held, "outcomes": json.dumps(given)})


def gives_back(outcomes: Mapping[UUID, Outcome] | None) -> bool:
    """Whether entries wait again, perhaps below a mark."""
    return outcomes is not None and any(outcome.kind not in DELIVERED for outcome in outcomes.values())


def states_of(rows: Sequence[tuple[Any, ...]]) -> dict[UUID, State]:
    """The new states of the entries that a finish changed."""
    return {entry_id: STATES[state] for entry_id, state in rows}


def batch_of(claim: Claim, rows: Sequence[tuple[Any, ...]]) -> Batch:
    """What a claim took."""
    if not rows:
        return Batch(channel=claim.channel, token=claim.token, lease_expires_at=None, entries=())
    return Batch(
        channel=claim.channel,
        token=claim.token,
        lease_expires_at=rows[0][EXPIRES],
        entries=tuple([Entry(*row[:ENTRY_FIELDS]) for row in rows]),
        lease_seconds=rows[0][LEASE_SECONDS],
        probe=rows[0][PROBE],
    )


def last_due(batch: Batch, rows: Sequence[tuple[Any, ...]]) -> dict[str, tuple[datetime, Entry]]:
    """Each tenant's last entry in the batch, with its due time."""
    return {row[TENANT]: (row[DUE], entry) for entry, row in zip(batch, rows, strict=True)}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    given: dict[str, Any] = {"outcome": outcome.kind.value}
    if outcome.after is not None:
        check_number("after", outcome.after)
        given["after"] = min(outcome.after, MAX_WAIT_SECONDS)
    if outcome.code is not None:
        given["code"] = cleaned(outcome.code, MAX_CODE)
    if outcome.message is not None:
        given["message"] = cleaned(outcome.message, MAX_MESSAGE)
    return given
