"""The body of a batch: entries of one tenant as the events of one JSON document.

A payload is spliced in byte by byte, never parsed or encoded again. The headers of an entry become fields of its event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from carrick.entry import Entry
from carrick.sinks.headers import own_headers
from carrick.sinks.traceparent import trace_id

SCHEMA_VERSION = "1.0"


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry as the destination sees it. These fields are fixed: a header of the same name does not change them.

    `group` is there when the entry has one: the destination, too, may want to keep its events in order.
    """

    event_id: UUID
    tenant_id: str
    event_type: str
    occurred_at: datetime
    trace_id: str | None
    schema_version: str
    payload: msgspec.Raw
    group: str | None = None


class Envelope(msgspec.Struct, frozen=True):
    """A batch. All its events are of the one tenant."""

    tenant_id: str
    edge_id: str
    sent_at: datetime
    events: list[Event | dict[str, Any]]


_encoder = msgspec.json.Encoder()


def by_tenant(entries: Sequence[Entry]) -> list[Sequence[Entry]]:
    """The entries of each tenant, in their order; the tenants in the order of their first entries."""
    if len({entry.tenant_id for entry in entries}) == 1:
        return [entries]
    tenants: dict[str, list[Entry]] = {}
    for entry in entries:
        tenants.setdefault(entry.tenant_id, []).append(entry)
    return list(tenants.values())


def body_of(entries: Sequence[Entry], *, edge_id: str, sent_at: datetime) -> bytes:
    """The batch as JSON, not compressed. The entries are of one tenant; a batch without any is of nobody."""
    tenant_id = entries[0].tenant_id if entries else ""
    return _encoder.encode(Envelope(tenant_id, edge_id, sent_at, [*_events(entries)]))


def faults_in(entries: Iterable[Entry]) -> dict[UUID, Exception]:
    """Why a batch cannot be made of these: what is wrong with each entry of which no event can be made."""
    faults: dict[UUID, Exception] = {}
    for entry in entries:
        try:
            _encoder.encode([*_events([entry])])
        except Exception as error:  # noqa: BLE001  whatever it is, it is about this entry
            faults[entry.id] = error
    return faults


def _events(entries: Iterable[Entry]) -> Iterable[Event | dict[str, Any]]:
    for entry in entries:
        event = Event(
            entry.id,
            entry.tenant_id,
            entry.event_type,
            entry.occurred_at or entry.created_at,
            trace_id(entry.traceparent) if entry.traceparent else None,
            SCHEMA_VERSION,
            msgspec.Raw(entry.payload),
            entry.group_key,
        )
        yield _with_headers(event, own_headers(entry)) if entry.headers else event


def _with_headers(event: Event, headers: Mapping[str, Any]) -> dict[str, Any]:
    """Headers as further fields of an event."""
    fixed = msgspec.structs.asdict(event)
    if event.group is None:
        del fixed["group"]
    return {**fixed, **headers, **fixed}
