"""Spans of OpenTelemetry around put, claim, deliver and finish, where its API is there (extra `otel`); else nothing.

The context of a put is kept with the entry as its `traceparent`, and the delivery goes on in the same trace. Where
spans go is the application's business: it brings the SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice

try:
    from opentelemetry import trace
    from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
except ModuleNotFoundError:
    ON = False
else:
    ON = True
    TRACER = trace.get_tracer("carrick")  # of the SDK that the application sets up, also later
    KINDS = {"put": SpanKind.PRODUCER, "deliver": SpanKind.CONSUMER}

MOST_LINKS = 32
TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
NOTHING: AbstractContextManager[object] = nullcontext()


def read_traceparent(text: str | None) -> re.Match[str] | None:
    """The parts of a W3C traceparent; what is not of that form counts as none."""
    found = TRACEPARENT.fullmatch(text or "")
    return None if found is None or (found["version"] == "00" and found["more"]) else found


def current() -> str | None:
    """The traceparent of the span that is open here, if one is."""
    if not ON:
        return None
    here = trace.get_current_span().get_span_context()
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}" if here.is_valid else None


def span(verb: str, channel: str, *, after: Iterable[str | None] = ()) -> AbstractContextManager[object]:
    """A span named `carrick.VERB`. `after` are traceparents: it goes on in the first one's trace and links to the rest.

    An error that passes through is noted. Without the API, or without an SDK behind it, this does nothing.
    """
    if not ON or not has_sdk():
        return NOTHING
    contexts = _contexts(after)
    return TRACER.start_as_current_span(
        f"carrick.{verb}",
        context=trace.set_span_in_context(NonRecordingSpan(contexts[0])) if contexts else None,
        kind=KINDS.get(verb, SpanKind.INTERNAL),
        attributes={"messaging.system": "carrick", "messaging.destination.name": channel},
        links=[Link(other) for other in contexts[1:]],
    )


def has_sdk() -> bool:
    """Whether somebody has set up where spans go."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def fail(message: str) -> None:
    """What the open span is about did not succeed."""
    if ON:
        trace.get_current_span().set_status(Status(StatusCode.ERROR, message))


def _contexts(traceparents: Iterable[str | None]) -> list[SpanContext]:
    """The different contexts among them, at most so many; what is not of that form counts as none."""
    known = dict.fromkeys(filter(None, traceparents))
    found = filter(None, map(read_traceparent, known))
    return [
        SpanContext(int(one["trace"], 16), int(one["span"], 16), True, TraceFlags(int(one["flags"], 16)))
        for one in islice(found, MOST_LINKS + 1)
    ]
