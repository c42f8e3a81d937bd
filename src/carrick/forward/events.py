"""Events as producers post them, and as entries of the channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from carrick.entry import NewEntry
from carrick.errors import CarrickError
from carrick.outbox.producing import MAX_HEADERS_BYTES, new_entry
from carrick.web.objects import RawObject, no_object, object_in
from carrick.web.problems import problem_of

CHANNEL = "cloud"
MOST_EVENTS = 1000


class Event(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One event to forward. `event_id` is the id under which the cloud will know it; one is made when it has none."""

    tenant_id: Annotated[str, Meta(min_length=1, max_length=255)]
    event_type: Annotated[str, Meta(min_length=1, max_length=255)]
    payload: msgspec.Raw
    event_id: UUID | None = None
    occurred_at: Annotated[datetime, Meta(tz=True)] | None = None
    key: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    group: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0
    headers: RawObject = no_object()


Events = Event | Annotated[list[Event], Meta(min_length=1, max_length=MOST_EVENTS)]


def entries_of(events: Event | Sequence[Event], traceparent: str | None) -> list[NewEntry]:
    """The events as entries. Raises Problem with the index of the first bad one."""
    listed = [events] if isinstance(events, Event) else events
    return [_entry(event, traceparent, index) for index, event in enumerate(listed)]


def _entry(event: Event, traceparent: str | None, index: int) -> NewEntry:
    fields: Mapping[str, Any] = {
        "channel": CHANNEL,
        "event_type": event.event_type,
        "payload": bytes(event.payload),
        "id": event.event_id,
        "tenant_id": event.tenant_id,
        "key": event.key,
        "group": event.group,
        "priority": event.priority,
        "occurred_at": event.occurred_at,
        "traceparent": traceparent,
    }
    try:
        return new_entry(**fields, headers=object_in("headers", event.headers, MAX_HEADERS_BYTES))
    except CarrickError as error:
        raise problem_of(error, index=index) from None
