"""The W3C trace context of an entry: reading it, and going on with it. What is not of that form counts as none."""

from __future__ import annotations

from carrick.tracing import read_traceparent


def trace_id(traceparent: str | None) -> str | None:
    """The trace that a traceparent belongs to, as 32 hex digits."""
    found = read_traceparent(traceparent)
    return None if found is None else found["trace"]


def child_of(traceparent: str | None, span_id: str) -> str | None:
    """The traceparent of a new span, 16 hex digits, in the same trace and with the same flags."""
    found = read_traceparent(traceparent)
    return None if found is None else f"00-{found['trace']}-{span_id}-{found['flags']}"
