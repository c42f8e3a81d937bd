"""Batches as a forwarder sends them, for tests of the receiving side."""

from __future__ import annotations

import json
import time
from typing import Any

from carrick.ingest.batch import Checked, read_batch
from carrick.ingest.body import MAX_BODY_BYTES
from carrick.ingest.store import Inbox, Offer, Taken, take_one
from carrick.sinks.signing import signature

PATH = "/api/v1/edge/batch"


def event(event_id: Any = "e-1", **fields: Any) -> dict[str, Any]:
    """One event with all the fields that the forwarder sends."""
    return {
        "event_id": event_id,
        "tenant_id": "farm-1",
        "event_type": "reading.taken",
        "occurred_at": "2026-05-01T12:00:00.000001Z",
        "trace_id": None,
        "schema_version": "1.0",
        "payload": {"celsius": 21.5},
        **fields,
    }


def batch(*events: Any, **fields: Any) -> dict[str, Any]:
    """A batch of these events."""
    return {
        "tenant_id": "farm-1",
        "edge_id": "gate-7",
        "sent_at": "2026-05-01T12:00:01Z",
        "events": list(events),
        **fields,
    }


def body(*events: Any, **fields: Any) -> bytes:
    """The same as JSON text."""
    return json.dumps(batch(*events, **fields)).encode()


def read(text: bytes, tenant_header: str | None = None, max_payload_bytes: int = MAX_BODY_BYTES) -> Checked:
    """What the ingest makes of such a text."""
    return read_batch(text, tenant_header=tenant_header, max_payload_bytes=max_payload_bytes)


def checked(*events: Any, **fields: Any) -> Checked:
    """A batch that is fit to be stored."""
    found = read(body(*events, **fields))
    assert not found.faults
    return found


def take(inbox: Inbox, batch: Checked, signature: bytes | None = None) -> Taken:
    """Take a batch alone. Raises what is wrong with it."""
    return take_one(inbox, Offer(batch, signature))


def numbered(count: int, prefix: str = "e", **fields: Any) -> list[dict[str, Any]]:
    """That many events with ids of their own."""
    return [event(f"{prefix}-{n}", payload={"n": n}, **fields) for n in range(count)]


def signed(
    content: bytes, secret: str, *, path: str = PATH, method: str = "POST", apart_seconds: float = 0
) -> dict[str, str]:
    """The headers of a signed request, by a clock that is that far from ours."""
    timestamp = int((time.time() + apart_seconds) * 1000)
    return {
        "x-edge-timestamp": str(timestamp),
        "x-edge-signature": signature(secret, timestamp, path, content, method),
    }
