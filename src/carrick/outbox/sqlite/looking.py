"""What people look at: gates, channels at a glance, and where one entry stands."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Any
from uuid import UUID

from carrick.entry import Attempt, ChannelStats, Contents, DeadCount, Gate, Sign, Standing, State, TenantWaiting
from carrick.errors import EntryNotFound
from carrick.outbox.channel import Mode
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.moment import moment, moment_or_none


def gates(connection: sqlite3.Connection, channel: str | None) -> list[Gate]:
    """Gates that are closed now."""
    return [_gate(row) for row in rows(connection, "gates", channel=channel)]


def stats(connection: sqlite3.Connection) -> list[ChannelStats]:
    """Every channel at a glance."""
    return [
        ChannelStats(
            **dict(zip(ChannelStats.__struct_fields__, counts, strict=False)),
            last_success_at=_parsed(success),
            last_error_at=_parsed(error),
            approximate=tuple(approximate.split(",")) if approximate else (),
        )
        for *counts, success, error, approximate in rows(connection, "stats")
    ]


def standing(connection: sqlite3.Connection, entry_id: UUID) -> Standing:
    """The facts about where one entry stands. Raises EntryNotFound."""
    found = rows(connection, "standing", id=str(entry_id))
    if not found:
        raise EntryNotFound(entry_id)
    (seq, now, channel, tenant_id, principal, group_key, event_type, created_at, state, attempts, crashes, due, rank,
     tried, code, message, owner, claimed_at, expires_at, ended_at, dlq_reason, frozen, mode) = found[0]  # fmt: skip
    facts = Facts(connection, seq, now, channel, tenant_id, principal, group_key, rank, frozen, mode)
    waits = facts.waiting() if state == State.PENDING else NOT_WAITING
    return Standing(
        id=entry_id,
        now=moment(now),
        channel=channel,
        tenant_id=tenant_id,
        principal=principal,
        group_key=group_key,
        event_type=event_type,
        state=State(state),
        created_at=moment(created_at),
        attempt_count=attempts,
        crash_count=crashes,
        next_attempt_at=moment_or_none(due),
        last_attempt_at=moment_or_none(tried),
        last_error_code=code,
        last_error_message=message,
        claimed_by=owner,
        claimed_at=moment_or_none(claimed_at),
        lease_expires_at=moment_or_none(expires_at),
        delivered_at=moment_or_none(ended_at) if state == State.DELIVERED else None,
        failed_at=moment_or_none(ended_at) if state == State.DEAD else None,
        dlq_reason=dlq_reason,
        attempts=tuple(Attempt(moment(at), *rest) for at, *rest in rows(connection, "attempts", id=str(entry_id))),
        **waits,
    )


def contents(connection: sqlite3.Connection, entry_id: UUID, characters: int) -> Contents:
    """What one entry carries. Raises EntryNotFound."""
    found = rows(connection, "contents", id=str(entry_id), characters=characters)
    if not found:
        raise EntryNotFound(entry_id)
    seq, key, payload, headers, size, priority, traceparent, occurred_at = found[0]
    return Contents(
        seq=seq,
        key=key,
        payload=payload[:characters],
        cut=len(payload) > characters,
        headers=None if headers is None else json.loads(headers),
        payload_size_bytes=size,
        priority=priority,
        traceparent=traceparent,
        occurred_at=moment_or_none(occurred_at),
    )


def dead(connection: sqlite3.Connection, channel: str, reason: str | None, most: int) -> list[DeadCount]:
    """What dead entries died of."""
    return [
        DeadCount(reason=why, error_code=code, count=count, first_at=moment(first), last_at=moment(last))
        for why, code, count, first, last in rows(connection, "dead", channel=channel, reason=reason, most=most)
    ]


def troubled(connection: sqlite3.Connection, channel: str, most: int) -> int:
    """How many waiting entries were tried in vain."""
    ((count,),) = rows(connection, "troubled", channel=channel, most=most)
    return int(count)


def tenants(connection: sqlite3.Connection, channel: str, **limits: int) -> list[TenantWaiting]:
    """The tenants with the most waiting entries."""
    found = rows(connection, "tenants", channel=channel, **limits)
    return [TenantWaiting(tenant_id=tenant_id, waiting=waiting) for tenant_id, waiting in found]


def signs(connection: sqlite3.Connection, limit: int) -> list[Sign]:
    """Who has duties and leases."""
    return [
        Sign(owner=owner, doing=doing, what=what, entries=entries, since=moment_or_none(since), until=moment(until))
        for owner, doing, what, entries, since, until in rows(connection, "signs", rows=limit)
    ]


NOT_WAITING: dict[str, Any] = {
    "frozen": False,
    "gate": None,
    "blocked_by": None,
    "group_held": False,
    "group_due_at": None,
    "rank_ahead": 0,
}
"""What is said of an entry that is claimed or has ended."""


class Facts:
    """What keeps one waiting entry waiting, looked up where it matters."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        seq: int,
        now: int,
        channel: str,
        tenant_id: str,
        principal: str | None,
        group_key: str | None,
        rank: int,
        frozen_batch: str | None,
        mode: str,
    ) -> None:
        self._connection = connection
        self._where = {"seq": seq, "now": now, "channel": channel, "tenant_id": tenant_id, "principal": principal}
        self._group_key = group_key
        self._rank = rank
        self._frozen_batch = frozen_batch
        self._mode = mode

    def waiting(self) -> dict[str, Any]:
        """The fields of Standing that only a waiting entry has."""
        grouped = self._mode != Mode.STREAM and self._group_key is not None
        batch, group = self._group() if grouped else (None, {})
        batch = self._frozen_batch or batch
        found = rows(self._connection, "standing_gate", frozen_batch=batch, **self._where)
        ((ahead,),) = rows(self._connection, "standing_ahead", rank=self._rank, **self._where)
        return {
            **NOT_WAITING,
            "frozen": self._frozen_batch is not None,
            "gate": _gate(found[0]) if found else None,
            "rank_ahead": ahead,
            **group,
        }

    def _group(self) -> tuple[str | None, dict[str, Any]]:
        """The frozen batch that holds it up, and what its group has to say."""
        ((held, earlier, frozen, batch, *times),) = rows(
            self._connection, "standing_group", group_key=self._group_key, **self._where
        )
        coalesces = self._mode == Mode.COALESCE
        blocked_by = (None if self._frozen_batch else frozen) if coalesces else earlier
        return batch if coalesces else None, {
            "group_held": bool(held),
            "blocked_by": None if blocked_by is None else UUID(blocked_by),
            "group_due_at": moment(group_due(*times)) if coalesces else None,
        }


def group_due(
    troubled: int | None, undelayed: int | None, delayed: int | None, earliest: int | None, max_wait: int | None
) -> int:
    """When a group is due: last put + delay, an entry without delay, or the longest wait; not before a retry's time."""
    soonest = min(time for time in (undelayed, earliest if delayed is None else delayed, max_wait) if time is not None)
    return soonest if troubled is None else max(soonest, troubled)


def _gate(row: tuple[Any, ...]) -> Gate:
    channel, scope, closed_until, reason, failures, closed_by = row
    return Gate(
        channel=channel,
        scope=scope,
        closed_until=moment_or_none(closed_until),
        reason=reason,
        consecutive_failures=failures,
        closed_by=closed_by,
    )


def _parsed(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
