"""Lists of entries on PostgreSQL: the rows of entries_*.sql as lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from carrick.entry import Line, State
from carrick.outbox.finding import Pair
from carrick.outbox.paging import EPOCH, MICROSECOND, Looked, Place, Seen

FIELDS = Line.__struct_fields__
Rows = Callable[..., list[tuple[Any, ...]]]


def look(rows: Rows, wanted: Looked) -> list[Seen]:
    """The entries of one state behind a place; `rows` runs a query by name."""
    found = rows(
        f"entries_{wanted.section.value}",
        channel=wanted.channel,
        tenant=wanted.tenant,
        after_tenant=wanted.after.tenant_id,
        after_at=wanted.after.moment,
        after_seq=wanted.after.seq,
        rows=wanted.rows,
        look=wanted.look,
    )
    return [_seen(row) for row in found]


def _seen(row: tuple[Any, ...]) -> Seen:
    *columns, at, mine = row
    known = dict(zip(FIELDS, columns, strict=True))
    place = Place(known["tenant_id"], _microseconds(at), known["seq"])
    return Seen(_line(columns) if mine else None, place)


def _line(columns: Sequence[Any]) -> Line:
    known = dict(zip(FIELDS, columns, strict=True))
    return Line(**known | {"state": State(known["state"])})


def _microseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - EPOCH) // MICROSECOND


class Finder:
    """Asks for `finding`; `rows` runs queries by name in one transaction with its plans pinned."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def channels(self) -> list[str]:
        return [row[0] for row in self._rows("channels")]

    def pairs(self, name: str, most: int) -> list[Pair]:
        return [(channel, tenant_id) for channel, tenant_id in self._rows(name, pairs=most)]

    def among(self, name: str, pairs: Sequence[Pair], text: str, limit: int) -> list[UUID]:
        channels, tenants = [channel for channel, _ in pairs], [tenant_id for _, tenant_id in pairs]
        found = self._rows(name, channels=channels, tenants=tenants, text=text, rows=limit)
        return [found_id for (found_id,) in found]

    def ids(self, name: str, text: str, tenant: str | None, limit: int) -> list[UUID]:
        return [found_id for (found_id,) in self._rows(name, text=text, tenant=tenant, rows=limit)]

    def ended(self, name: str, channel: str, text: str, tenant: str | None, look: int, limit: int) -> list[UUID | None]:
        found = self._rows(name, channel=channel, text=text, tenant=tenant, look=look, rows=limit)
        return [found_id for (found_id,) in found]

    def lines(self, ids: Sequence[UUID]) -> list[Line]:
        return [_line(row) for row in self._rows("lines", ids=list(ids))]
