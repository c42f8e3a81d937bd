"""Lists of entries on SQLite: the rows of entries_*.sql as lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from carrick.entry import Line, State
from carrick.outbox.finding import Pair
from carrick.outbox.paging import Looked, Place, Seen
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.moment import moment_or_none
from carrick.outbox.sqlite.picking import as_json

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
    return Seen(_line(columns) if mine else None, place)


def _line(columns: Sequence[Any]) -> Line:
    known = dict(zip(FIELDS, columns, strict=True))
    times = {field: moment_or_none(known[field]) for field in TIMES}
    return Line(**known | times | {"id": UUID(known["id"]), "state": State(known["state"])})


class Finder:
    """Asks for `finding`, in one view of the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def channels(self) -> list[str]:
        return [row[0] for row in rows(self._connection, "channels")]

    def pairs(self, name: str, most: int) -> list[Pair]:
        return [(channel, tenant_id) for channel, tenant_id in rows(self._connection, name, pairs=most)]

    def among(self, name: str, pairs: Sequence[Pair], text: str, limit: int) -> list[UUID]:
        return self._ids(name, pairs=as_json(pairs), text=text, rows=limit)

    def ids(self, name: str, text: str, tenant: str | None, limit: int) -> list[UUID]:
        return self._ids(name, text=text, tenant=tenant, rows=limit)

    def ended(self, name: str, channel: str, text: str, tenant: str | None, look: int, limit: int) -> list[UUID | None]:
        found = rows(self._connection, name, channel=channel, text=text, tenant=tenant, look=look, rows=limit)
        return [None if found_id is None else UUID(found_id) for (found_id,) in found]

    def lines(self, ids: Sequence[UUID]) -> list[Line]:
        return [_line(row) for row in rows(self._connection, "lines", ids=as_json(map(str, ids)))]

    def _ids(self, name: str, **params: Any) -> list[UUID]:
        return [UUID(found_id) for (found_id,) in rows(self._connection, name, **params)]
