"""Short ways to put and claim entries in tests of a store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from carrick.entry import Batch, Entry, NewEntry, Outcome, State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.store import Store

OWNER = "worker-1"
HOUR = 3600
DAY = 86_400


def sample(channel: str = "things", *, payload: bytes = b'{"n":1}', **fields: Any) -> NewEntry:
    """An entry as a producer gives it; `fields` are those of NewEntry."""
    return NewEntry(channel=channel, event_type=fields.pop("event_type", "thing.happened"), payload=payload, **fields)


def declare(store: Store, name: str = "things", mode: Mode = Mode.STREAM, **options: Any) -> Channel:
    """Declare a channel; `options` are those of Channel."""
    channel = Channel(name=name, mode=mode, **options)
    store.declare(channel)
    return channel


def put(store: Store, channel: str = "things", **fields: Any) -> UUID:
    """Put one entry; its id."""
    return store.put(sample(channel, **fields)).id


def put_run(store: Store, count: int, channel: str = "things", **fields: Any) -> list[UUID]:
    """Put entries in one transaction; their ids in order."""
    return [answer.id for answer in store.put_many([sample(channel, **fields) for _ in range(count)])]


def claim(store: Store, channel: str = "things", **limits: Any) -> Batch:
    """Claim as the usual worker."""
    return store.claim(channel, limits.pop("owner", OWNER), **limits)


def ids(entries: Iterable[Entry]) -> list[UUID]:
    """The ids of entries, in their order."""
    return [entry.id for entry in entries]


def states(store: Store, entry_ids: Iterable[UUID]) -> list[State]:
    """Where the entries are."""
    return [store.standing(entry_id).state for entry_id in entry_ids]


def finish_each(store: Store, batch: Batch, outcome: Outcome) -> dict[UUID, State]:
    """Give every entry of a batch the same outcome."""
    return store.finish(batch.token, dict.fromkeys(ids(batch), outcome))


def drain(store: Store, channel: str = "things", **limits: Any) -> list[list[UUID]]:
    """Claim and deliver until nothing is due; the ids of each batch in order."""
    batches = []
    while batch := claim(store, channel, **limits):
        batches.append(ids(batch))
        store.finish_all(batch.token)
    return batches


def claimed(number: int = 1, *, payload: bytes = b'{"n":1}', **fields: Any) -> Entry:
    """An entry as a sink gets it, without a store; equal numbers make equal ids. `fields` are those of Entry."""
    usual: dict[str, Any] = {
        "id": UUID(int=number),
        "seq": number,
        "channel": "things",
        "tenant_id": "acme",
        "event_type": "thing.happened",
        "payload": payload,
        "payload_size_bytes": len(payload),
        "created_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "priority": 0,
        "attempt_count": 0,
        "crash_count": 0,
    }
    empty = dict.fromkeys(("principal", "group_key", "key", "headers", "traceparent", "occurred_at"))
    return Entry(**{**empty, **usual, **fields})
