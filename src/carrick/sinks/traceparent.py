"""The W3C trace context of an entry: reading it, and going on with it. What is not of that form counts as none."""

from __future__ import annotations

import re

TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-(?P<flags>[0-9a-f]{2})"
    r"(?P<more>-.*)?"
)


def trace_id(traceparent: str | None) -> str | None:
    """The trace that a traceparent belongs to, as 32 hex digits."""
    found = _read(traceparent)
    return None if found is None else found["trace"]


def child_of(traceparent: str | None, span_id: str) -> str | None:
    """The traceparent of a new span, 16 hex digits, in the same trace and with the same flags."""
    found = _read(traceparent)
    return None if found is None else f"00-{found['trace']}-{span_id}-{found['flags']}"


def _read(traceparent: str | None) -> re.Match[str] | None:
    found = TRACEPARENT.fullmatch(traceparent or "")
    return None if found is None or (found["version"] == "00" and found["more"]) else found
