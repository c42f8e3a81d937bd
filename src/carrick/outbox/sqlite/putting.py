"""Puts on SQLite, as statements for whichever connection the caller has.

A put is one INSERT that does nothing when there is a problem, so it is whole or nothing in any transaction or none, and
an error leaves the caller's transaction usable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from carrick.entry import NewEntry, Put, State
from carrick.errors import BacklogFull, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.ids import hyphenated, new_id, new_ids
from carrick.outbox.sqlite.content import content_hash, same_json
from carrick.outbox.sqlite.database import PACKAGE
from carrick.outbox.sqlite.failures import named
from carrick.outbox.sqlite.moment import microseconds
from carrick.outbox.statement import Row, Statement, Steps, query

SAVEPOINT = Statement("savepoint carrick_put", {})
ROLLBACK = Statement("rollback to savepoint carrick_put", {})
RELEASE = Statement("release savepoint carrick_put", {})

CHUNK_ROWS = 5_000
CHUNK_BYTES = 32 * 1024 * 1024
"""How much goes into one statement of a bulk put."""


def put_steps(entry: NewEntry) -> Steps[Put]:
    """Put one entry. Raises UnknownChannel, PayloadTooLarge, KeyReused, BacklogFull; then nothing was written."""
    return (yield from named(_put(entry)))


def put_many_steps(entries: Sequence[NewEntry], *, can_copy: bool = False) -> Steps[list[Put]]:
    """Put all entries or none, in bulk unless a bounded channel has to look at each. Raises as put_steps.

    Several statements stand in a savepoint. An error of the driver has to be raised in here to be undone in there.
    `can_copy` is there for PostgreSQL; SQLite has no COPY.
    """
    return (yield from named(_put_many(entries)))


def _put(entry: NewEntry) -> Steps[Put]:
    params = _params(entry, new_id())
    while True:
        rows = yield Statement(query(PACKAGE, "put"), params)
        if rows:
            return (yield from _created(rows[0]))
        known = yield from _known(entry, params)
        if known is not None:
            return known
        # what was in the way has gone meanwhile: outside a transaction another process may write between two statements


def _put_many(entries: Sequence[NewEntry]) -> Steps[list[Put]]:
    if not entries:
        return []
    bounded = yield from _before_bulk(entries)
    chunks = list(_chunks(entries))
    if not bounded and len(chunks) == 1 and all(entry.key is None for entry in entries):
        return (yield from _put_chunk(entries))
    yield SAVEPOINT
    try:
        puts = yield from (_put_each(entries) if bounded else _put_chunks(chunks))
    except GeneratorExit:
        raise  # the connection is not ours to use any more
    except BaseException:
        yield ROLLBACK
        yield RELEASE
        raise
    yield RELEASE
    return puts


def _created(row: Row) -> Steps[Put]:
    entry_id, seq, bounded = row
    if bounded:
        dead = yield Statement(query(PACKAGE, "put_state"), {"seq": seq})
        if dead:
            return Put(_uuid(entry_id), True, State.DEAD)
    return Put(_uuid(entry_id), True, State.PENDING)


def _known(entry: NewEntry, params: dict[str, Any]) -> Steps[Put | None]:
    """The entry that the key belongs to, when it is the same. Raises what is wrong, else."""
    rows = yield Statement(query(PACKAGE, "put_problem"), params)
    name, max_payload_bytes, _, *known, full = rows[0]
    if name is None:
        yield from _unknown_channel(entry)
    if len(entry.payload) > max_payload_bytes:
        raise _too_large(entry)
    found = _same_entry(entry, known[:6]) or _same_memory(entry, known[6:])
    if found is None and full:
        raise BacklogFull(entry.channel)
    return found


def _same_entry(entry: NewEntry, columns: Sequence[Any]) -> Put | None:
    entry_id, event_type, group_key, principal, payload, state = columns
    if entry_id is None:
        return None
    same = (event_type, group_key, principal) == (entry.event_type, entry.group_key, entry.principal)
    if not same or not same_json(payload, entry.payload.decode()):
        raise KeyReused(entry.channel, entry.tenant_id, entry.key or "")
    return Put(_uuid(entry_id), False, State(state))


def _same_memory(entry: NewEntry, columns: Sequence[Any]) -> Put | None:
    entry_id, remembered, state = columns
    if entry_id is None:
        return None
    if bytes(remembered) != content_hash(entry.event_type, entry.payload.decode(), entry.group_key, entry.principal):
        raise KeyReused(entry.channel, entry.tenant_id, entry.key or "")
    return Put(_uuid(entry_id), False, State(state))


def _before_bulk(entries: Sequence[NewEntry]) -> Steps[bool]:
    """Whether a bounded channel is among the entries'; refuses what cannot be put."""
    names = sorted({entry.channel for entry in entries})
    rows = yield Statement(query(PACKAGE, "before_bulk"), {"channels": _json(names)})
    largest = {name: max_payload_bytes for name, max_payload_bytes, _ in rows}
    for entry in entries:
        if entry.channel not in largest:
            yield from _unknown_channel(entry)
        if len(entry.payload) > largest[entry.channel]:
            raise _too_large(entry)
    return any(bounded for _, _, bounded in rows)


def _put_each(entries: Sequence[NewEntry]) -> Steps[list[Put]]:
    puts: list[Put] = []
    for entry in entries:
        puts += [(yield from _put(entry))]
    return puts


def _put_chunks(chunks: Sequence[Sequence[NewEntry]]) -> Steps[list[Put]]:
    puts: list[Put] = []
    for chunk in chunks:
        if all(entry.key is None for entry in chunk):
            puts += yield from _put_chunk(chunk)
        else:
            puts += yield from _put_keyed(chunk)
    return puts


def _put_chunk(chunk: Sequence[NewEntry]) -> Steps[list[Put]]:
    """Entries that need no look at others."""
    made = map(hyphenated, new_ids(datetime.now(UTC), len(chunk)))  # much faster than one by one
    entries = [_bulk_row(entry, entry_id) for entry, entry_id in zip(chunk, made, strict=True)]
    yield Statement(query(PACKAGE, "put_many"), {"entries": _json(entries)})
    return [Put(entry_id, True, State.PENDING) for entry_id in msgspec.convert([e[-1] for e in entries], list[UUID])]


def _put_keyed(chunk: Sequence[NewEntry]) -> Steps[list[Put]]:
    """Entries whose key is new in bulk; then those whose key is known or comes twice, one by one."""
    keys = [(entry.channel, entry.tenant_id, entry.key) for entry in chunk]
    rows = yield Statement(query(PACKAGE, "known_keys"), {"keys": _json(keys)})
    later = {place for (place,) in rows}
    seen: set[tuple[str, str, str | None]] = set()
    for place, key in enumerate(keys):
        if key[2] is not None and key in seen:
            later.add(place)
        seen.add(key)
    fresh = [place for place in range(len(chunk)) if place not in later]
    new = (yield from _put_chunk([chunk[place] for place in fresh])) if fresh else []
    puts = dict(zip(fresh, new, strict=True))
    for place in sorted(later):
        puts[place] = yield from _put(chunk[place])
    return [puts[place] for place in range(len(chunk))]


def _chunks(entries: Sequence[NewEntry]) -> Iterator[Sequence[NewEntry]]:
    start = size = 0
    for place, entry in enumerate(entries):
        if place > start and (place - start >= CHUNK_ROWS or size + len(entry.payload) > CHUNK_BYTES):
            yield entries[start:place]
            start, size = place, 0
        size += len(entry.payload)
    yield entries[start:]


def _params(entry: NewEntry, made: str) -> dict[str, Any]:
    """`made` is the id of an entry that comes without one."""
    return {
        "channel": entry.channel,
        "tenant_id": entry.tenant_id,
        "principal": entry.principal,
        "group_key": entry.group_key,
        "event_type": entry.event_type,
        "key": entry.key,
        "payload": entry.payload.decode(),
        "headers": None if entry.headers is None else entry.headers.decode(),
        "priority": entry.priority,
        "traceparent": entry.traceparent,
        "occurred_at": None if entry.occurred_at is None else microseconds(entry.occurred_at),
        "delay_seconds": entry.delay_seconds,
        "max_wait_seconds": entry.max_wait_seconds,
        "id": made if entry.id is None else str(entry.id),
        "size": len(entry.payload),
    }


def _bulk_row(entry: NewEntry, made: str) -> list[Any]:
    return list(_params(entry, made).values())[:-1]


def _uuid(text: str) -> UUID:
    return msgspec.convert(text, UUID)  # ten times as fast as UUID(text)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _unknown_channel(entry: NewEntry) -> Steps[None]:
    rows = yield Statement(query(PACKAGE, "channels"), {})
    raise UnknownChannel(entry.channel, [row[0] for row in rows])


def _too_large(entry: NewEntry) -> PayloadTooLarge:
    return PayloadTooLarge(
        "payload", f"has {len(entry.payload)} bytes", f"max_payload_bytes of channel {entry.channel!r}"
    )
