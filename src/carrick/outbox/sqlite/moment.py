"""Times as the SQLite tables hold them: whole microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
PER_SECOND = 1_000_000
FOREVER = 2**63 - 1
"""The end of a gate that stays closed until somebody opens it."""


def moment(microseconds: int) -> datetime:
    """The datetime of a stored time."""
    return EPOCH + timedelta(0, 0, microseconds)


def moment_or_none(microseconds: int | None) -> datetime | None:
    """The datetime of a stored time; None where there is none, or no end."""
    return None if microseconds is None or microseconds == FOREVER else moment(microseconds)


def microseconds(when: datetime) -> int:
    """How a datetime with a time zone is stored."""
    return (when - EPOCH) // MICROSECOND


def span(seconds: float) -> int:
    """Seconds as microseconds."""
    return round(seconds * PER_SECOND)
