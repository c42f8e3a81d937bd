"""What the entry of a stored event looks like."""

from __future__ import annotations

from typing import Any

import pytest

from carrick.ingest.relaying import Onward, onward
from tests.batches import checked, event

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "00f067aa0ba902b7"


def sent(**fields: Any) -> Onward:
    found = checked(event("a", **fields))
    return onward(found.arrivals[0], found.edge_id, SPAN)


def test_the_headers_name_the_event_and_keep_its_further_fields() -> None:
    assert sent(device_id="d", more=[1]).headers == b'{"device_id":"d","more":[1],"event_id":"a","edge_id":"gate-7"}'


def test_a_further_field_does_not_take_the_place_of_what_is_known() -> None:
    assert sent(edge_id="spoofed").headers == b'{"edge_id":"gate-7","event_id":"a"}'


@pytest.mark.parametrize(
    ("fields", "group"),
    [
        ({}, None),
        ({"device_id": "d"}, "d"),
        ({"device_id": "d", "group": "g"}, "g"),
        ({"device_id": 7}, None),
        ({"device_id": ""}, None),
        ({"device_id": "x" * 256}, None),
        ({"group": None, "device_id": "d"}, "d"),
    ],
)
def test_events_of_a_device_stay_in_order(fields: dict[str, Any], group: str | None) -> None:
    assert sent(**fields).group == group


def test_the_trace_goes_on() -> None:
    assert sent(trace_id=TRACE).traceparent == f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize("trace_id", [None, "", "0" * 32, TRACE.upper(), TRACE + "0", "x"])
def test_what_is_no_trace_is_none(trace_id: str | None) -> None:
    assert sent(trace_id=trace_id).traceparent is None
