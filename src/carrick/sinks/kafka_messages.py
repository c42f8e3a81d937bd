"""Entries as Kafka messages: topic, key, value and headers. Nothing of Kafka's own is needed here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC
from functools import lru_cache
from string import Formatter
from typing import Any

import msgspec

from carrick.entry import Entry
from carrick.errors import InvalidInput
from carrick.sinks.headers import own_headers

TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
PLACEHOLDERS = ("event_type", "channel", "tenant_id")
TOPICS_ACCEPTED = (
    "1 to 249 letters, digits, dots, dashes and underscores, with {event_type}, {channel} or {tenant_id} in it"
)

Headers = dict[str, str | bytes | None]


class Message(msgspec.Struct, frozen=True, gc=False):
    """One Kafka message. Like its headers, nothing that the garbage collector must look at."""

    topic: str
    key: str | None
    value: bytes
    headers: Headers


class TopicTemplate:
    """Which topic an entry goes to. Raises InvalidInput for a placeholder that does not exist."""

    def __init__(self, template: str) -> None:
        fields = _placeholders(template)
        self._template = template
        self.one_topic = not set(fields) - {"channel"}
        """Whether all entries of a channel go to one topic."""
        self._fill = lru_cache(4096)(self._filled)
        if is_topic_name(self._fill("a", "a", "a")):
            return
        raise InvalidInput("topic", f"{template!r} makes no topic name", TOPICS_ACCEPTED)

    def of(self, entry: Entry) -> str:
        """The topic of the entry; perhaps a name that Kafka would refuse."""
        return self._fill(entry.event_type, entry.channel, entry.tenant_id)

    def _filled(self, event_type: str, channel: str, tenant_id: str) -> str:
        return self._template.format(event_type=event_type, channel=channel, tenant_id=tenant_id)


@lru_cache(4096)
def is_topic_name(name: str) -> bool:
    """Whether Kafka takes this as the name of a topic."""
    return TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


def headers_of(entry: Entry, entry_id: str) -> Headers:
    """The entry's own headers, then Carrick's; where the names are the same, Carrick's count.

    `entry_id` is the entry's id as text: that of a whole batch is made at once, which is much faster.
    """
    headers = _own_headers(own_headers(entry)) if entry.headers else {}
    headers["carrick-id"] = entry_id
    headers["carrick-event-type"] = entry.event_type
    if entry.tenant_id:
        headers["carrick-tenant"] = entry.tenant_id
    if entry.traceparent is not None:
        headers["traceparent"] = entry.traceparent
    return headers


def cloud_event_headers(source: str | None) -> Callable[[Entry, str], Headers]:
    """Headers that make the message a CloudEvent in binary mode too. Without a source it is `/carrick/CHANNEL`."""

    def headers(entry: Entry, entry_id: str) -> Headers:
        when = entry.occurred_at or entry.created_at
        ours: Headers = {
            "ce_specversion": "1.0",
            "ce_id": entry_id,
            "ce_source": source or f"/carrick/{entry.channel}",
            "ce_type": entry.event_type,
            "ce_time": when.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "content-type": "application/json",
        }
        if entry.group_key is not None:
            ours["ce_partitionkey"] = entry.group_key
        return headers_of(entry, entry_id) | ours

    return headers


def _own_headers(own: Mapping[str, Any]) -> Headers:
    msgspec.json.encode(own)  # raises for half a surrogate pair, which in a name would crash the client's library
    return {name: _as_text(value) for name, value in own.items() if not name.startswith("carrick-")}


def _as_text(value: Any) -> str | bytes | None:
    """Text as it is, null as Kafka's null, anything else as JSON."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value)


def _placeholders(template: str) -> list[str]:
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise InvalidInput("topic", f"{template!r}: {error}", TOPICS_ACCEPTED) from None
    fields = []
    for _, field, spec, conversion in parts:
        if field is None:
            continue
        if field not in PLACEHOLDERS or spec or conversion:
            raise InvalidInput("topic", f"{template!r} has an unknown placeholder {{{field}}}", TOPICS_ACCEPTED)
        fields.append(field)
    return fields
