"""Lists of entries on PostgreSQL: the rows of entries_*.sql as lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from carrick.entry import Line, State
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
    return Seen(Line(**known | {"state": State(known["state"])}) if mine else None, place)


def _microseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - EPOCH) // MICROSECOND
