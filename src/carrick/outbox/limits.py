"""What the stores accept beside entries: limits, tokens, scopes, times. Each refusal names the field."""

from __future__ import annotations

import math
import re
from typing import get_args
from uuid import UUID

from carrick.entry import ClosedBy
from carrick.errors import InvalidInput, InvalidToken
from carrick.outbox.channel import MAX_BATCH_BYTES, MAX_BATCH_ROWS, MAX_LEASE_SECONDS, MAX_WAIT_SECONDS

LONGEST_GATE_SECONDS = 3_153_600_000
"""A hundred years."""
SCOPE = re.compile(r"\*|(tenant|principal):[^\x00\ud800-\udfff]+")


def check_claim(
    owner: str,
    *,
    max_rows: int | None = None,
    max_bytes: int | None = None,
    lease_seconds: int | None = None,
    fresh_seconds: float | None = None,
) -> None:
    """Refuse limits of a claim that are negative, zero, absurd or no whole numbers. None means the channel's own."""
    check_name("owner", owner)
    check_finite("fresh_seconds", fresh_seconds)
    if fresh_seconds is not None and fresh_seconds > MAX_WAIT_SECONDS:
        raise InvalidInput("fresh_seconds", f"{fresh_seconds} is out of range", f"0 to {MAX_WAIT_SECONDS:.0f}")
    check_limit("max_rows", max_rows, MAX_BATCH_ROWS)
    check_limit("max_bytes", max_bytes, MAX_BATCH_BYTES)
    check_limit("lease_seconds", lease_seconds, MAX_LEASE_SECONDS)


def check_name(field: str, name: object) -> None:
    """Refuse what is no name of a worker or a duty."""
    if not isinstance(name, str) or not name or len(name) > 255 or "\x00" in name:
        raise InvalidInput(field, f"{name!r:.80} is no name", "1 to 255 characters without NUL")


def check_limit(field: str, value: int | None, most: int) -> None:
    """Refuse a limit that is not a whole number from 1 to `most`; None means no limit of its own."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInput(field, f"{value!r:.80} is out of range", f"1 to {most}")


def check_token(token: object) -> UUID:
    """A lease token or an entry id as a UUID. Raises InvalidToken."""
    if isinstance(token, UUID):
        return token
    try:
        return UUID(str(token))
    except ValueError:
        raise InvalidToken(token) from None


def check_finite(field: str, value: float | None) -> None:
    """Refuse seconds that are negative, infinite or no number; None means no end."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise InvalidInput(field, f"{value!r:.80} is out of range", "0 or more seconds")


def check_rest(seconds: float) -> None:
    """Refuse a time to rest or to have a duty that is not more than 0 and at most a day."""
    check_number("seconds", seconds)
    if not 0 < seconds <= MAX_LEASE_SECONDS:
        raise InvalidInput("seconds", f"{seconds} is out of range", f"more than 0, at most {MAX_LEASE_SECONDS}")


def check_cap(seconds: float) -> None:
    """Refuse a longest time for a gate that is not more than 0 and at most a hundred years."""
    check_number("cap_seconds", seconds)
    if not 0 < seconds <= LONGEST_GATE_SECONDS:
        raise InvalidInput("cap_seconds", f"{seconds} is out of range", f"more than 0, at most {LONGEST_GATE_SECONDS}")


def check_scope(scope: object) -> None:
    """Refuse what is no scope of a gate."""
    if not isinstance(scope, str) or not SCOPE.fullmatch(scope):
        raise InvalidInput("scope", f"{scope!r:.80} is no gate scope", "*, tenant:NAME, principal:NAME")


def check_closed_by(closed_by: object) -> None:
    """Refuse what closes no gate."""
    accepted = get_args(ClosedBy)
    if closed_by not in accepted:
        raise InvalidInput("closed_by", f"{closed_by!r:.80} closes no gate", ", ".join(accepted))


def check_number(field: str, value: float) -> None:
    """Refuse what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InvalidInput(field, f"{value!r:.80} is no number", "seconds")
