"""Puts on PostgreSQL, as statements for whichever connection the caller has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from carrick.entry import NewEntry, Put, State
from carrick.errors import BacklogFull, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.postgres.failures import carrick_error
from carrick.outbox.statement import Copy, Row, Statement, Steps, query

T = TypeVar("T")

PACKAGE = "carrick.outbox.postgres"

FIELDS = tuple(name for name in NewEntry.__struct_fields__)
ALWAYS_COPIED = ("channel", "event_type", "payload")
TEXT_FIELDS = ("payload", "headers")
DEFAULTS = dict(zip(reversed(FIELDS), reversed(NewEntry.__struct_defaults__), strict=False))


def put_steps(entry: NewEntry) -> Steps[Put]:
    """Put one entry. Raises UnknownChannel, PayloadTooLarge, KeyReused, BacklogFull; then nothing was written."""
    return (yield from _named(_put(entry)))


def put_many_steps(entries: Sequence[NewEntry], *, can_copy: bool) -> Steps[list[Put]]:
    """Put all entries or none, by COPY where the driver can and no entry needs a look at others."""
    return (yield from _named(_put_many(entries, can_copy)))


def _named(steps: Steps[T]) -> Steps[T]:
    """The driver's errors by their Carrick names, whoever's connection it is."""
    try:
        return (yield from steps)
    except Exception as error:
        mapped = carrick_error(error)
        if mapped is None:
            raise
        raise mapped from error


def _put(entry: NewEntry) -> Steps[Put]:
    rows = yield Statement(query(PACKAGE, "put"), {field: column[0] for field, column in _columns([entry]).items()})
    entry_id, created, state, problem = rows[0]
    if problem is not None:
        yield from _raise_problem(problem, entry)
    return Put(entry_id, created, State(state))


def _put_many(entries: Sequence[NewEntry], can_copy: bool) -> Steps[list[Put]]:
    if not entries:
        return []
    now, bounded = yield from _before_bulk(entries)
    if can_copy and not bounded and all(entry.key is None for entry in entries):
        return (yield from _copy(entries, now))
    rows = yield Statement(query(PACKAGE, "put_many"), _columns(entries))
    _, _, _, problem, problem_at = rows[0]
    if problem is not None:
        yield from _raise_problem(problem, entries[problem_at])
    return [Put(entry_id, created, State(state)) for entry_id, created, state, _, _ in rows]


def _before_bulk(entries: Sequence[NewEntry]) -> Steps[tuple[datetime, bool]]:
    """The database's clock and whether a bounded channel is among the entries'; refuses what cannot be put."""
    names = sorted({entry.channel for entry in entries})
    rows = yield Statement(query(PACKAGE, "before_bulk"), {"channels": names})
    largest = {channel: max_payload_bytes for _, channel, max_payload_bytes, _ in rows}
    for entry in entries:
        if entry.channel not in largest:
            yield from _raise_problem("unknown_channel", entry)
        if len(entry.payload) > largest[entry.channel]:
            raise _too_large(entry)
    return rows[0][0], any(row[3] for row in rows)


def _copy(entries: Sequence[NewEntry], now: datetime) -> Steps[list[Put]]:
    ids = new_ids(now, len(entries))
    columns = _columns(entries)
    fields = [field for field in FIELDS if field in ALWAYS_COPIED or columns[field].count(DEFAULTS[field]) < len(ids)]
    yield Copy("carrick.record", ("id", *fields), list(zip(ids, *(columns[field] for field in fields), strict=True)))
    return [Put(entry_id, True, State.PENDING) for entry_id in ids]


def _columns(entries: Sequence[NewEntry]) -> dict[str, list[Any]]:
    """The entries' fields, field by field; JSON as text."""
    columns = dict(zip(FIELDS, map(list, zip(*map(msgspec.structs.astuple, entries), strict=True)), strict=True))
    for field in TEXT_FIELDS:
        columns[field] = [value if value is None else value.decode() for value in columns[field]]
    return columns


def new_ids(now: datetime, count: int) -> list[UUID]:
    """UUIDv7s of that moment of the database's clock."""
    stamp = int(now.timestamp() * 1000) << 80
    noise = os.urandom(10 * count)
    return [
        UUID(int=stamp | _version7(int.from_bytes(noise[start : start + 10]))) for start in range(0, 10 * count, 10)
    ]


def _version7(noise: int) -> int:
    """80 random bits with version 7 and variant 10 set in their places."""
    return (noise & ~(0xF << 76) & ~(0x3 << 62)) | (0x7 << 76) | (0x2 << 62)


def _raise_problem(problem: str, entry: NewEntry) -> Steps[None]:
    match problem:
        case "unknown_channel":
            rows = yield Statement(query(PACKAGE, "channels"), {})
            raise UnknownChannel(entry.channel, _names(rows))
        case "payload_too_large":
            raise _too_large(entry)
        case "key_reused":
            raise KeyReused(entry.channel, entry.tenant_id, entry.key or "")
        case "backlog_full":
            raise BacklogFull(entry.channel)
        case _:
            raise RuntimeError(f"the database reports an unknown problem: {problem}")


def _names(rows: Iterable[Row]) -> list[str]:
    return [row[0] for row in rows]


def _too_large(entry: NewEntry) -> PayloadTooLarge:
    return PayloadTooLarge(
        "payload", f"has {len(entry.payload)} bytes", f"max_payload_bytes of channel {entry.channel!r}"
    )
