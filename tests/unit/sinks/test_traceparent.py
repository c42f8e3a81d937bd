"""Trace contexts: what is read, and what goes on."""

from __future__ import annotations

import pytest

from carrick.sinks.traceparent import child_of, trace_id

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.mark.parametrize("traceparent", [f"00-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-01-what-the-future-is-like"])
def test_a_traceparent_names_its_trace(traceparent: str) -> None:
    assert trace_id(traceparent) == TRACE


@pytest.mark.parametrize(
    "traceparent",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_no_traceparent_counts_as_none(traceparent: str | None) -> None:
    assert trace_id(traceparent) is None
    assert child_of(traceparent, "1" * 16) is None


def test_a_child_has_the_same_trace_and_flags_and_its_own_span() -> None:
    assert child_of(f"00-{TRACE}-{SPAN}-01", "b7ad6b7169203331") == f"00-{TRACE}-b7ad6b7169203331-01"
