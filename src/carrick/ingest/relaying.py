"""Events on their way out again: what the entry of a stored event looks like. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from carrick.ingest.batch import Arrival
from carrick.outbox.producing import MAX_TEXT

TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")
GROUPS = ("group", "device_id")
"""Fields that say which events must stay in order, the first that is given."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Onward(msgspec.Struct, frozen=True, gc=False):
    """What an entry has beside the event's own type, payload and time. Its key is the event's id."""

    headers: bytes
    group: str | None
    traceparent: str | None


def onward(arrival: Arrival, edge_id: str | None, span_id: str) -> Onward:
    """The entry of an event. `span_id`, 16 hex digits, is the span of this batch in the event's trace."""
    headers: dict[str, Any] = {} if arrival.extra is None else _decode(arrival.extra)
    group = _group(headers) if headers else None
    headers["event_id"] = arrival.event_id
    if edge_id is not None:
        headers["edge_id"] = edge_id
    if arrival.trace_id is not None:
        headers["trace_id"] = arrival.trace_id
    traced = arrival.trace_id is not None and TRACE.fullmatch(arrival.trace_id)
    return Onward(_encode(headers), group, f"00-{arrival.trace_id}-{span_id}-01" if traced else None)


def _group(fields: Mapping[str, Any]) -> str | None:
    for name in GROUPS:
        value = fields.get(name)
        if isinstance(value, str) and 1 <= len(value) <= MAX_TEXT:
            return value
    return None
