"""Leases that have ended: a worker died, perhaps because of one entry."""

from __future__ import annotations

import sqlite3
from typing import Any
from uuid import uuid4

import msgspec

from carrick.outbox.channel import Channel, Mode
from carrick.outbox.sqlite.database import PACKAGE, rows
from carrick.outbox.sqlite.picking import as_json
from carrick.outbox.statement import query
from carrick.outbox.transitions import CRASHES_UNTIL_DEAD


def return_expired(connection: sqlite3.Connection, channel: Channel, now: int, before: int) -> int:
    """Entries of leases that ended until then wait again, in batches at most half as large; how many.

    One that was alone counts a crash, and dies of the fifth. What a coalesced delivery had noted is frozen: it may have
    happened.
    """
    returned = 0
    for batch_id, units, intent, noted in rows(connection, "expired", channel=channel.name, before=before):
        held = rows(connection, "finish_held", batch_id=batch_id)
        rows(connection, "expire_trouble", batch_id=batch_id, units=units, intent=intent, noted=noted)
        if channel.mode is Mode.COALESCE and intent is not None:
            about = [row for row in held if is_noted(noted, row[1])]
            frozen = frozen_units([(row[0], row[2], row[3] or row[1]) for row in about])
            connection.executemany(query(PACKAGE, "expire_freeze"), frozen)
        rows(connection, "expire_return", batch_id=batch_id)
        rows(connection, "finish_lease", batch_id=batch_id)
        seqs = as_json(row[0] for row in held)
        dead = rows(connection, "expire_dead", seqs=seqs, crashes=CRASHES_UNTIL_DEAD)
        if dead:
            end_waiting(connection, channel, [seq for (seq,) in dead], "crash_loop", now)
        returned += len(held)
    return returned


def is_noted(noted: str | None, entry_id: str) -> bool:
    """Whether an intent is about that entry."""
    return noted is None or entry_id in msgspec.json.decode(noted)


def frozen_units(held: list[tuple[int, str, str]]) -> list[dict[str, Any]]:
    """A name for each (tenant, group) among entries that are frozen group by group; per entry the one of its group."""
    names: dict[tuple[str, str], str] = {}
    return [{"seq": seq, "frozen_batch": names.setdefault((tenant, unit), str(uuid4()))} for seq, tenant, unit in held]


def end_waiting(connection: sqlite3.Connection, channel: Channel, seqs: list[int], reason: str, now: int) -> None:
    """Waiting entries become dead without a delivery."""
    ended = as_json(seqs)
    ((size,),) = rows(connection, "sizes", seqs=ended)
    rows(connection, "end_waiting", seqs=ended, reason=reason, now=now)
    rows(connection, "finish_heal", seqs=ended)
    rows(connection, "finish_drop", seqs=ended)
    rows(connection, "count_backlog", channel=channel.name, bytes=-size)
