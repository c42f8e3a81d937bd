"""Puts on PostgreSQL, as statements for whichever connection the caller has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

import msgspec

from carrick.entry import NewEntry, Put, State
from carrick.errors import BacklogFull, InvalidInput, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.postgres.bulk import copy_steps
from carrick.outbox.postgres.failures import carrick_error
from carrick.outbox.statement import Row, Statement, Steps, query

PACKAGE = "carrick.outbox.postgres"

FIELDS = tuple(name for name in NewEntry.__struct_fields__)
TEXT_FIELDS = ("payload", "headers")


def put_steps(entry: NewEntry) -> Steps[Put]:
    """Put one entry. Raises UnknownChannel, PayloadTooLarge, KeyReused, BacklogFull; then nothing was written."""
    params = msgspec.structs.asdict(entry)
    params["payload"] = entry.payload.decode()
    params["headers"] = entry.headers and entry.headers.decode()
    try:
        rows = yield Statement(query(PACKAGE, "put"), params)
        entry_id, created, state, problem = rows[0][0][1:-1].split(",")
        if problem:
            yield from _raise_problem(problem, entry)
    except Exception as error:  # noqa: BLE001  always raised again
        _raise_named(error)
    return Put(UUID(entry_id), created == "t", State(state))


def put_many_steps(entries: Sequence[NewEntry], *, can_bulk: bool) -> Steps[Sequence[Put]]:
    """Put all entries or none, by COPY where the driver can and no entry needs a look at others."""
    try:
        return (yield from _put_many(entries, can_bulk))
    except Exception as error:  # noqa: BLE001  always raised again
        _raise_named(error)


def _raise_named(error: Exception) -> NoReturn:
    """The driver's errors by their Carrick names, whoever's connection it is."""
    mapped = carrick_error(error)
    if mapped is None:
        raise error
    raise mapped from error


def _put_many(entries: Sequence[NewEntry], can_bulk: bool) -> Steps[Sequence[Put]]:
    if not entries:
        return []
    before = yield from _before_bulk(entries)
    if can_bulk and not before.bounded and all(entry.key is None for entry in entries):
        return (yield from copy_steps(entries, before.now, before.seqs))
    rows = yield Statement(query(PACKAGE, "put_many"), _columns(entries))
    _, _, _, problem, problem_at = rows[0]
    if problem is not None:
        yield from _raise_problem(problem, entries[problem_at])
    return [Put(entry_id, created, State(state)) for entry_id, created, state, _, _ in rows]


class Before(NamedTuple):
    """What a bulk put knows before it starts."""

    now: datetime
    seqs: list[int]
    bounded: bool


def _before_bulk(entries: Sequence[NewEntry]) -> Steps[Before]:
    """The database's clock, sequence numbers, and whether a channel is bounded; refuses what cannot be put."""
    names = sorted({entry.channel for entry in entries})
    rows = yield Statement(query(PACKAGE, "before_bulk"), {"channels": names, "count": len(entries)})
    now, seqs, channels, max_payload_bytes, bounded = rows[0]
    largest = dict(zip(channels or (), max_payload_bytes or (), strict=True))
    for entry in entries:
        if entry.channel not in largest:
            yield from _raise_problem("unknown_channel", entry)
        if len(entry.payload) > largest[entry.channel]:
            raise _too_large(entry, largest[entry.channel])
    return Before(now, seqs, any(bounded or ()))


def _columns(entries: Sequence[NewEntry]) -> dict[str, list[Any]]:
    """The entries' fields, field by field; JSON as text."""
    columns = dict(zip(FIELDS, map(list, zip(*map(msgspec.structs.astuple, entries), strict=True)), strict=True))
    for field in TEXT_FIELDS:
        columns[field] = [value if value is None else value.decode() for value in columns[field]]
    return columns


def _raise_problem(problem: str, entry: NewEntry) -> Steps[None]:
    match problem:
        case "unknown_channel":
            rows = yield Statement(query(PACKAGE, "channels"), {})
            raise UnknownChannel(entry.channel, _names(rows))
        case "payload_too_large":
            rows = yield Statement(query(PACKAGE, "before_bulk"), {"channels": [entry.channel], "count": 0})
            raise _too_large(entry, rows[0][3][0])
        case "id_reused":
            raise InvalidInput("id", "is that of an entry with another key", "a UUID that is new, or none")
        case "key_reused":
            raise KeyReused(entry.channel, entry.tenant_id, entry.key or "")
        case "backlog_full":
            raise BacklogFull(entry.channel)
        case _:
            raise RuntimeError(f"the database reports an unknown problem: {problem}")


def _names(rows: Iterable[Row]) -> list[str]:
    return [row[0] for row in rows]


def _too_large(entry: NewEntry, most: int) -> PayloadTooLarge:
    accepted = f"at most {most} bytes (max_payload_bytes of channel {entry.channel!r})"
    return PayloadTooLarge("payload", f"has {len(entry.payload)} bytes", accepted)
