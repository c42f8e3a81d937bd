"""Bulk puts by COPY: one into `record`, one into `work`. The rules are those of `carrick._put`, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from carrick.entry import NewEntry, Put
from carrick.outbox.ids import new_ids
from carrick.outbox.puts import Puts
from carrick.outbox.statement import Copy, Steps

NULL = r"\N"
TEN_MINUTES = timedelta(minutes=10)
NOTHING_GIVEN = NewEntry(channel="", event_type="", payload=b"")
CHUNK_ROWS = 250
"""Rows sent at once: the server reads them while the next are made."""


class Chunk(NamedTuple):
    """Some of the entries of a bulk put, with what the database gave for them."""

    entries: Sequence[NewEntry]
    ids: Sequence[str]
    seqs: Sequence[str]
    now: datetime
    plain: bool
    """Whether no entry at all has a delay or a priority: then all are due now."""


Column = Callable[[Chunk], Sequence[str]]


def _all(field: str, text: Callable[[Any], str] = str) -> Column:
    """The field of each entry as text."""
    value = attrgetter(field)
    return lambda chunk: [text(value(entry)) for entry in chunk.entries]


def _some(field: str, text: Callable[[Any], str] = str) -> Column:
    """The same, where an entry may have none."""
    value = attrgetter(field)

    def column(chunk: Chunk) -> list[str]:
        return [NULL if given is None else text(given) for given in map(value, chunk.entries)]

    return column


def _escaped(text: str) -> str:
    """Text as COPY's text format wants it."""
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")


def _json(text: bytes) -> str:
    return _escaped(text.decode())


def _size(chunk: Chunk) -> list[str]:
    return [str(len(entry.payload)) for entry in chunk.entries]


def _due(chunk: Chunk) -> list[str]:
    if chunk.plain:
        return [chunk.now.isoformat()] * len(chunk.entries)
    return [due_at(entry, chunk.now).isoformat() for entry in chunk.entries]


def _rank(chunk: Chunk) -> list[str]:
    if chunk.plain:
        return _due(chunk)
    return [(due_at(entry, chunk.now) - entry.priority * TEN_MINUTES).isoformat() for entry in chunk.entries]


def _max_wait_at(chunk: Chunk) -> list[str]:
    column = _some("max_wait_seconds", lambda seconds: (chunk.now + timedelta(seconds=seconds)).isoformat())
    return list(column(chunk))


def due_at(entry: NewEntry, now: datetime) -> datetime:
    """When the entry is due: max_wait cuts a longer delay short."""
    waits = [seconds for seconds in (entry.delay_seconds, entry.max_wait_seconds) if seconds is not None]
    return now + timedelta(seconds=min(waits, default=0.0))


RECORD: dict[str, Column] = {
    "id": lambda chunk: chunk.ids,
    "seq": lambda chunk: chunk.seqs,
    "channel": _all("channel"),
    "event_type": _all("event_type", _escaped),
    "payload": _all("payload", _json),
    "payload_size_bytes": _size,
    "created_at": lambda chunk: [chunk.now.isoformat()] * len(chunk.entries),
}
RECORD_GIVEN: dict[str, tuple[str, Column]] = {
    "tenant_id": ("tenant_id", _all("tenant_id", _escaped)),
    "principal": ("principal", _some("principal", _escaped)),
    "group_key": ("group_key", _some("group_key", _escaped)),
    "headers": ("headers", _some("headers", _json)),
    "priority": ("priority", _all("priority")),
    "traceparent": ("traceparent", _some("traceparent", _escaped)),
    "occurred_at": ("occurred_at", _some("occurred_at", datetime.isoformat)),
    "delay_seconds": ("delay_seconds", _some("delay_seconds")),
    "max_wait_seconds": ("max_wait_seconds", _some("max_wait_seconds")),
}
"""Columns that are left to their default when no entry has the field: name -> (field, column)."""

WORK: dict[str, Column] = {
    "seq": lambda chunk: chunk.seqs,
    "id": lambda chunk: chunk.ids,
    "channel": _all("channel"),
    "tenant_id": _all("tenant_id", _escaped),
    "size": _size,
    "priority": _all("priority"),
    "due": _due,
    "rank": _rank,
}
WORK_GIVEN: dict[str, tuple[str, Column]] = {
    "principal": RECORD_GIVEN["principal"],
    "group_key": RECORD_GIVEN["group_key"],
    "max_wait_at": ("max_wait_seconds", _max_wait_at),
    "delayed": ("delay_seconds", lambda chunk: ["f" if e.delay_seconds is None else "t" for e in chunk.entries]),
}


def copy_steps(entries: Sequence[NewEntry], now: datetime, seqs: Sequence[int]) -> Steps[Sequence[Put]]:
    """Put entries that need no look at others: no keys, no bounded channel. `now` and `seqs` are the database's."""
    given = {field for field, _ in RECORD_GIVEN.values() if not _is_default(entries, field)}
    ids = new_ids(now, len(entries))
    whole = Chunk(entries, ids, [str(seq) for seq in seqs], now, given.isdisjoint({"delay_seconds", "priority"}))
    yield _copy("carrick.record", RECORD | _chosen(RECORD_GIVEN, given), whole)
    yield _copy("carrick.work", WORK | _chosen(WORK_GIVEN, given), whole)
    return Puts(ids)


def _is_default(entries: Sequence[NewEntry], field: str) -> bool:
    return set(map(attrgetter(field), entries)) == {getattr(NOTHING_GIVEN, field)}


def _chosen(columns: Mapping[str, tuple[str, Column]], given: set[str]) -> dict[str, Column]:
    return {name: column for name, (field, column) in columns.items() if field in given}


def _copy(table: str, columns: Mapping[str, Column], whole: Chunk) -> Copy:
    return Copy(table, tuple(columns), _texts(list(columns.values()), whole))


def _texts(columns: Sequence[Column], whole: Chunk) -> Iterator[bytes]:
    for start in range(0, len(whole.entries), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        chunk = whole._replace(entries=whole.entries[part], ids=whole.ids[part], seqs=whole.seqs[part])
        rows = map("\t".join, zip(*(column(chunk) for column in columns), strict=True))
        yield ("\n".join(rows) + "\n").encode()
