"""The database's clock, as far as a batch tells it."""

from __future__ import annotations

from datetime import datetime, timedelta

from carrick.entry import Batch


def claimed_at(batch: Batch) -> datetime | None:
    """When the batch was claimed, by the database's clock; None when it is empty."""
    if batch.lease_expires_at is None:
        return None
    return batch.lease_expires_at - timedelta(seconds=batch.lease_seconds)
