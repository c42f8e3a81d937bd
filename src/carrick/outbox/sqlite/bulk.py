"""Bulk puts: rows of `carrick_record` by as few statements as can be, and one that lets all of them wait."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any

import msgspec

from carrick.entry import NewEntry
from carrick.outbox.ids import hyphenated, new_ids
from carrick.outbox.sqlite.database import PACKAGE
from carrick.outbox.sqlite.moment import microseconds
from carrick.outbox.statement import Statement, Steps, Values, query

FIELDS = NewEntry.__struct_fields__
CHUNK_ROWS = 5_000
CHUNK_BYTES = 32 * 1024 * 1024
"""How much goes into one list of entries."""
AT_ONCE = (500, 100)
"""Entries whose values one statement binds; what is left over has one of its own."""
STATEMENTS = 128
"""Texts of statements that are kept, as many as the driver keeps prepared."""
ROW = re.compile(r"\(:channel,[^)]*\)")
"""What is repeated for each entry in a statement that binds values."""
FIELD = re.compile(r":\w+")

Column = Sequence[Any]


def chunks(entries: Sequence[NewEntry]) -> Iterator[Sequence[NewEntry]]:
    """The entries, in parts that are not too large for one list."""
    start = size = 0
    for place, entry in enumerate(entries):
        if place > start and (place - start >= CHUNK_ROWS or size + len(entry.payload) > CHUNK_BYTES):
            yield entries[start:place]
            start, size = place, 0
        size += len(entry.payload)
    yield entries[start:]


def put_new(chunk: Sequence[NewEntry], now: int, *, binds: bool) -> Steps[Sequence[str | None]]:
    """Put the entries whose key is new; their ids, and None for each whose key is known or comes twice.

    `binds`: the driver binds many values quickly, nothing comes between the steps, and no key is remembered.
    """
    columns = _columns(chunk)
    ids: list[str] = columns[-1]
    new = yield from (_put_bound if binds else _put_listed)(columns, now)
    if len(new) == len(ids):
        return ids
    return list(_once(ids, set(new)))


def _once(ids: Sequence[str], new: set[str]) -> Iterator[str | None]:
    """Each id that is new, where it comes first; who gives the same id twice has put it once."""
    for entry_id in ids:
        yield entry_id if entry_id in new else None
        new.discard(entry_id)


def _put_listed(columns: Sequence[Column], now: int) -> Steps[list[str]]:
    """All of them as one list in JSON; each is admitted by itself. The ids of those that are new."""
    entries = msgspec.json.encode(list(zip(*columns, strict=True))).decode()
    rows = yield Statement(query(PACKAGE, "put_many"), {"entries": entries, "now": now})
    return [entry_id for (entry_id,) in rows]


def _put_bound(columns: Sequence[Column], now: int) -> Steps[list[str]]:
    """Values bound one by one, and all admitted by one more statement. The ids of those that are new."""
    new: list[str] = []
    dated = [*columns, [now] * len(columns[0])]
    start = 0
    while left := len(columns[0]) - start:
        end = start + next((size for size in AT_ONCE if size <= left), left)
        rows = yield _values("put_many_values", [column[start:end] for column in dated])
        new += [entry_id for (entry_id,) in rows]
        start = end
    yield Statement(query(PACKAGE, "admit"), {"count": len(new)})
    yield Statement(query(PACKAGE, "see"), {})
    return new


def together(entries: Sequence[NewEntry]) -> tuple[list[str], Values]:
    """The ids of entries without keys, and the one statement that puts them."""
    columns = _columns(entries)
    return columns[-1], _values("put_together", columns)


def _values(name: str, columns: Sequence[Column]) -> Values:
    """The query with a row for each entry. What all entries have alike is bound once, before the rest."""
    rows = len(columns[0])
    alike = tuple(column.count(column[0]) == rows for column in columns)
    shared = [column[0] for column, is_alike in zip(columns, alike, strict=True) if is_alike]
    own = [column for column, is_alike in zip(columns, alike, strict=True) if not is_alike]
    by_row: list[Any] = [None] * (rows * len(own))
    for place, column in enumerate(own):
        by_row[place :: len(own)] = column
    return Values(_statement(name, rows, alike), shared + by_row)


@lru_cache(maxsize=STATEMENTS)
def _statement(name: str, rows: int, alike: tuple[bool, ...]) -> str:
    numbers = count(1)
    shared = [next(numbers) if is_alike else None for is_alike in alike]

    def row(text: str) -> str:
        known = iter(shared)
        return FIELD.sub(lambda _: f"?{next(known) or next(numbers)}", text)

    return ROW.sub(lambda found: ", ".join(row(found[0]) for _ in range(rows)), query(PACKAGE, name))


def _columns(chunk: Sequence[NewEntry]) -> list[Any]:
    """The entries field by field, in the order of the statements, as the tables hold them. The last are their ids."""
    given = dict(zip(FIELDS, zip(*map(msgspec.structs.astuple, chunk), strict=True), strict=True))
    made = map(hyphenated, new_ids(datetime.now(UTC), len(chunk)))  # much faster than one by one
    return [
        given["channel"],
        given["tenant_id"],
        given["principal"],
        given["group_key"],
        given["event_type"],
        given["key"],
        [payload.decode() for payload in given["payload"]],
        _some(given["headers"], bytes.decode),
        given["priority"],
        given["traceparent"],
        _some(given["occurred_at"], microseconds),
        given["delay_seconds"],
        given["max_wait_seconds"],
        [new if known is None else str(known) for known, new in zip(given["id"], made, strict=True)],
    ]


def _some(column: Column, stored: Callable[[Any], Any]) -> list[Any]:
    """How the values of a column are stored, where there is one."""
    return [None if value is None else stored(value) for value in column]
