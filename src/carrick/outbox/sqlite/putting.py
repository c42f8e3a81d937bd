"""Puts on SQLite, as statements for whichever connection the caller has.

A put is one INSERT that does nothing when there is a problem, so it is whole or nothing in any transaction or none, and
an error leaves the caller's transaction usable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from carrick.entry import NewEntry, Put, State
from carrick.errors import BacklogFull, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.ids import new_id
from carrick.outbox.puts import Puts
from carrick.outbox.sqlite.bulk import chunks, put_new, together
from carrick.outbox.sqlite.content import content_hash, same_json
from carrick.outbox.sqlite.database import PACKAGE
from carrick.outbox.sqlite.failures import named
from carrick.outbox.sqlite.moment import microseconds
from carrick.outbox.statement import Row, Statement, Steps, query

SAVEPOINT = Statement("savepoint carrick_put", {})
ROLLBACK = Statement("rollback to savepoint carrick_put", {})
RELEASE = Statement("release savepoint carrick_put", {})


def put_steps(entry: NewEntry) -> Steps[Put]:
    """Put one entry. Raises UnknownChannel, PayloadTooLarge, KeyReused, BacklogFull; then nothing was written."""
    return (yield from named(_put(entry)))


def put_many_steps(entries: Sequence[NewEntry], *, can_bulk: bool) -> Steps[Sequence[Put]]:
    """Put all entries or none, in bulk unless a bounded channel has to look at each. Raises as put_steps.

    They stand in a savepoint. An error of the driver has to be raised in here to be undone in there.
    """
    return (yield from named(_put_many(entries, can_bulk)))


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


def _put_many(entries: Sequence[NewEntry], can_bulk: bool) -> Steps[Sequence[Put]]:
    if not entries:
        return []
    before = yield from _before_bulk(entries)
    yield SAVEPOINT
    try:
        puts = yield from (_put_each(entries) if before.bounded else _put_chunks(entries, before, can_bulk))
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
        raise _too_large(entry, max_payload_bytes)
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


class _Before(NamedTuple):
    """What a bulk put knows before it starts."""

    now: int
    bounded: bool
    remembers: bool
    """Whether keys of delivered entries are remembered that are there no more."""


def _before_bulk(entries: Sequence[NewEntry]) -> Steps[_Before]:
    """The database's clock, and what the entries' channels are like; refuses what cannot be put."""
    names = sorted({entry.channel for entry in entries})
    rows = yield Statement(query(PACKAGE, "before_bulk"), {"channels": _json(names)})
    largest = {name: max_payload_bytes for name, max_payload_bytes, *_ in rows}
    for entry in entries:
        if entry.channel not in largest:
            yield from _unknown_channel(entry)
        if len(entry.payload) > largest[entry.channel]:
            raise _too_large(entry, largest[entry.channel])
    *_, now = rows[0]
    return _Before(now, any(row[2] for row in rows), any(row[3] for row in rows))


def _put_each(entries: Sequence[NewEntry]) -> Steps[list[Put]]:
    puts: list[Put] = []
    for entry in entries:
        puts += [(yield from _put(entry))]
    return puts


def put_together(entries: Sequence[NewEntry]) -> Steps[list[Put]]:
    """Put entries without keys by one statement. An error of the driver says that one of them cannot be put."""
    ids, step = together(entries)
    puts: dict[str, Put] = {}
    for row in (yield step):
        puts[row[0]] = yield from _created(row)
    return [puts[entry_id] for entry_id in ids]


def _put_chunks(entries: Sequence[NewEntry], before: _Before, can_bulk: bool) -> Steps[Sequence[Put]]:
    """Entries whose key is new in bulk; then those whose key is known or comes twice, one by one."""
    made: list[str | None] = []
    for chunk in chunks(entries):
        made += yield from put_new(chunk, before.now, binds=can_bulk and not before.remembers)
    new = [entry_id for entry_id in made if entry_id is not None]
    if len(new) == len(entries):
        return Puts(new)
    puts: list[Put] = []
    for entry, entry_id in zip(entries, made, strict=True):
        puts.append((yield from _put(entry)) if entry_id is None else Put(_uuid(entry_id), True, State.PENDING))
    return puts


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


def _uuid(text: str) -> UUID:
    return msgspec.convert(text, UUID)  # ten times as fast as UUID(text)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _unknown_channel(entry: NewEntry) -> Steps[None]:
    rows = yield Statement(query(PACKAGE, "channels"), {})
    raise UnknownChannel(entry.channel, [row[0] for row in rows])


def _too_large(entry: NewEntry, most: int) -> PayloadTooLarge:
    accepted = f"at most {most} bytes (max_payload_bytes of channel {entry.channel!r})"
    return PayloadTooLarge("payload", f"has {len(entry.payload)} bytes", accepted)
