"""Lists of entries on SQLite: the rows of entries_*.sql as lines."""

from __future__ import annotations

import sqlite3
from typing import Any
from uuid import UUID

from carrick.entry import Line, State
from carrick.outbox.paging import Looked, Place, Seen
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.moment import moment_or_none

FIELDS = Line.__struct_fields__
TIMES = [field for field in FIELDS if field.endswith("_at")]
LOWEST = -(2**63)


def look(connection: sqlite3.Connection, wanted: Looked) -> list[Seen]:
    """The entries of one state behind a place."""
    names = {
        State.PENDING: "entries_pending",
        State.CLAIMED: "entries_claimed",
        State.DEAD: "entries_dead",
        State.DELIVERED: "entries_delivered",
    }
    found = rows(
        connection,
        names[wanted.section],
        channel=wanted.channel,
        tenant=wanted.tenant,
        after_at=LOWEST if wanted.after.at is None else wanted.after.at,
        after_seq=wanted.after.seq,
        rows=wanted.rows,
        look=wanted.look,
    )
    return [_seen(row) for row in found]


def _seen(row: tuple[Any, ...]) -> Seen:
    *columns, at, mine = row
    known = dict(zip(FIELDS, columns, strict=True))
    place = Place(known["tenant_id"], at, known["seq"])
    if not mine:
        return Seen(None, place)
    times = {field: moment_or_none(known[field]) for field in TIMES}
    return Seen(Line(**known | times | {"id": UUID(known["id"]), "state": State(known["state"])}), place)
