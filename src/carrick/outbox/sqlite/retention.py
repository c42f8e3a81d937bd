"""Sending dead entries round again, and removing ended entries: those past their retention, or dead ones by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from uuid import UUID

from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.content import content_hash
from carrick.outbox.sqlite.database import PACKAGE, rows
from carrick.outbox.sqlite.declaring import known_channel
from carrick.outbox.sqlite.moment import FOREVER, PER_SECOND, span
from carrick.outbox.sqlite.picking import as_json
from carrick.outbox.statement import query
from carrick.outbox.store import RECEIPT_DAYS

DAY_SECONDS = 86_400


def dead_entries(
    connection: sqlite3.Connection,
    name: str,
    ids: Sequence[UUID] | None,
    reason: str | None,
    max_rows: int | None,
) -> list[int]:
    """The dead entries that a redrive would take, the oldest first. Raises UnknownChannel."""
    known_channel(connection, name)
    most = -1 if max_rows is None else max_rows
    if ids is None:
        found = rows(connection, "redrive_all", channel=name, reason=reason, max_rows=most)
    else:
        wanted = as_json(map(str, ids))
        found = rows(connection, "redrive_ids", channel=name, reason=reason, max_rows=most, ids=wanted)
    return [seq for (seq,) in found]


def redrive(connection: sqlite3.Connection, name: str, seqs: list[int], spread_seconds: float) -> None:
    """Let dead entries wait again, spread evenly over the seconds."""
    if not seqs:
        return
    chosen = as_json(seqs)
    ((now,),) = rows(connection, "now")
    rows(connection, "redrive", seqs=chosen, now=now, step=spread_seconds * PER_SECOND / len(seqs))
    rows(connection, "redrive_forget", seqs=chosen)
    ((size,),) = rows(connection, "sizes", seqs=chosen)
    rows(connection, "count_backlog", channel=name, bytes=size)


def prune(connection: sqlite3.Connection, name: str, max_rows: int) -> int:
    """Remove delivered and dead entries past their retention, at most so many; how many. Raises UnknownChannel."""
    channel = known_channel(connection, name)
    ((now,),) = rows(connection, "now")
    rows(connection, "prune_forget", channel=name, now=now)
    rows(connection, "prune_gates", channel=name, now=now)
    seqs: list[int] = []
    kept_days = {"prune_delivered": channel.retention_days, "prune_dead": channel.dead_retention_days}
    for due, days in kept_days.items():
        before = now - span(days * DAY_SECONDS)
        found = rows(connection, due, channel=name, before=before, max_rows=max_rows - len(seqs))
        seqs += [seq for (seq,) in found]
    rows(connection, "prune_receipts", age=span(RECEIPT_DAYS * DAY_SECONDS))
    _remove(connection, channel, seqs, now)
    return len(seqs)


def discard(connection: sqlite3.Connection, name: str, ids: Sequence[UUID]) -> int:
    """Remove those of the named entries that are dead, for good; how many. Raises UnknownChannel."""
    channel = known_channel(connection, name)
    ((now,),) = rows(connection, "now")
    seqs = [seq for (seq,) in rows(connection, "discard", channel=name, ids=as_json(map(str, ids)))]
    _remove(connection, channel, seqs, now)
    return len(seqs)


def discard_all(
    connection: sqlite3.Connection, name: str, reason: str | None, died_by: int | None, max_rows: int
) -> int:
    """Remove dead entries for good, the oldest first; how many. Raises UnknownChannel."""
    channel = known_channel(connection, name)
    ((now,),) = rows(connection, "now")
    last = FOREVER if died_by is None else died_by
    found = rows(connection, "discard_all", channel=name, reason=reason, died_by=last, max_rows=max_rows)
    seqs = [seq for (seq,) in found]
    _remove(connection, channel, seqs, now)
    return len(seqs)


def _remove(connection: sqlite3.Connection, channel: Channel, seqs: list[int], now: int) -> None:
    """Remove ended entries; keys that the channel remembers outlive them."""
    chosen = as_json(seqs)
    if channel.remember_keys_days > 0:
        _remember(connection, channel, chosen, now)
    rows(connection, "prune_emptied")
    rows(connection, "prune_endings", seqs=chosen)
    rows(connection, "prune", seqs=chosen)
    rows(connection, "prune_newest", seqs=chosen)


def _remember(connection: sqlite3.Connection, channel: Channel, seqs: str, now: int) -> None:
    """Keep keys beyond their entries, with a hash of the content: SQLite has no hash, so it is made here."""
    keys = [
        {
            "channel": channel.name,
            "tenant_id": tenant_id,
            "key": key,
            "id": entry_id,
            "state": state,
            "content_hash": content_hash(event_type, payload, group_key, principal),
            "forget_at": now + span(channel.remember_keys_days * DAY_SECONDS),
        }
        for tenant_id, key, entry_id, state, event_type, payload, group_key, principal in rows(
            connection, "prune_keys", seqs=seqs
        )
    ]
    connection.executemany(query(PACKAGE, "prune_remember"), keys)
