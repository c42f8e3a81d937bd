"""Entries as a claim would give them, for tests that need no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from carrick.entry import Batch, Entry

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def entry(number: int, *, group: str | None = None, size: int = 10, age_seconds: float = 0.0) -> Entry:
    """The entry with that number."""
    return Entry(
        id=UUID(int=number),
        seq=number,
        channel="things",
        tenant_id="t",
        principal=None,
        group_key=group,
        event_type="thing.happened",
        key=None,
        payload=b"1" * size,
        headers=None,
        payload_size_bytes=size,
        priority=0,
        traceparent=None,
        occurred_at=None,
        created_at=NOW - timedelta(seconds=age_seconds),
        attempt_count=0,
        crash_count=0,
    )


def batch(*entries: Entry, lease_seconds: float = 120.0) -> Batch:
    """A claim of these entries at NOW."""
    return Batch(
        channel="things",
        token=UUID(int=1),
        lease_expires_at=NOW + timedelta(seconds=lease_seconds) if entries else None,
        entries=entries,
        lease_seconds=lease_seconds,
    )
