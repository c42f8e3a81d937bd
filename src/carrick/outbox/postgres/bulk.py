"""Bulk puts by COPY: one into `record`, one into `work`. The rules are those of `carrick._put`, column by column."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, overload
from uuid import UUID

from carrick.entry import NewEntry, Put, State
from carrick.outbox.statement import Copy, Steps

NULL = r"\N"
RECORD = (
    "id",
    "seq",
    "channel",
    "tenant_id",
    "principal",
    "group_key",
    "event_type",
    "payload",
    "payload_size_bytes",
    "headers",
    "priority",
    "traceparent",
    "occurred_at",
    "created_at",
    "delay_seconds",
    "max_wait_seconds",
)
WORK = (
    "seq",
    "id",
    "channel",
    "tenant_id",
    "principal",
    "group_key",
    "size",
    "priority",
    "due",
    "rank",
    "max_wait_at",
    "delayed",
)
TEN_MINUTES = timedelta(minutes=10)


class Puts(Sequence[Put]):
    """The answers of a bulk put of new entries, made when looked at: most callers never do."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> Put: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Put]: ...
    def __getitem__(self, index: int | slice) -> Put | Sequence[Put]:
        if isinstance(index, slice):
            return Puts(self._ids[index])
        return Put(UUID(self._ids[index]), True, State.PENDING)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def copy_steps(entries: Sequence[NewEntry], now: datetime, seqs: Sequence[int]) -> Steps[Sequence[Put]]:
    """Put entries that need no look at others: no keys, no bounded channel. `now` and `seqs` are the database's."""
    ids = new_ids(now, len(entries))
    numbers = [str(seq) for seq in seqs]
    yield _copy("carrick.record", RECORD, _record_columns(entries, now, ids, numbers))
    yield _copy("carrick.work", WORK, _work_columns(entries, now, ids, numbers))
    return Puts(ids)


def new_ids(now: datetime, count: int) -> list[str]:
    """UUIDv7s of that moment of the database's clock, as hexadecimal text."""
    stamp = f"{int(now.timestamp() * 1000):012x}7"
    noise = os.urandom(10 * count).hex()
    variants = "89ab"
    return [
        stamp + noise[at : at + 3] + variants[int(noise[at + 3], 16) & 3] + noise[at + 4 : at + 19]
        for at in range(0, 20 * count, 20)
    ]


def _record_columns(
    entries: Sequence[NewEntry], now: datetime, ids: list[str], seqs: list[str]
) -> list[list[str] | None]:
    """Column by column in the order of RECORD; None where every entry has the column's default."""
    return [
        ids,
        seqs,
        [entry.channel for entry in entries],
        *_names(entries),
        [_escaped(entry.event_type) for entry in entries],
        [_escaped(entry.payload.decode()) for entry in entries],
        [str(len(entry.payload)) for entry in entries],
        _given(entries, "headers", lambda headers: _escaped(headers.decode())),
        _priorities(entries),
        _given(entries, "traceparent", _escaped),
        _given(entries, "occurred_at", datetime.isoformat),
        [now.isoformat()] * len(entries),
        _given(entries, "delay_seconds", str),
        _given(entries, "max_wait_seconds", str),
    ]


def _work_columns(
    entries: Sequence[NewEntry], now: datetime, ids: list[str], seqs: list[str]
) -> list[list[str] | None]:
    """Column by column in the order of WORK."""
    usual = now.isoformat()
    plain = all(entry.delay_seconds is None and entry.priority == 0 for entry in entries)
    dues = [now] * len(entries) if plain else [_due(entry, now) for entry in entries]
    ranks = (
        [due - entry.priority * TEN_MINUTES for entry, due in zip(entries, dues, strict=True)] if not plain else dues
    )
    return [
        seqs,
        ids,
        [entry.channel for entry in entries],
        *(
            column or ([""] * len(entries) if name == "tenant_id" else None)
            for name, column in zip(NAMES, _names(entries), strict=True)
        ),
        [str(len(entry.payload)) for entry in entries],
        _priorities(entries) or ["0"] * len(entries),
        [usual] * len(entries) if plain else [due.isoformat() for due in dues],
        [usual] * len(entries) if plain else [rank.isoformat() for rank in ranks],
        _given(entries, "max_wait_seconds", lambda seconds: (now + timedelta(seconds=seconds)).isoformat()),
        None if plain else ["f" if entry.delay_seconds is None else "t" for entry in entries],
    ]


NAMES = ("tenant_id", "principal", "group_key")


def _names(entries: Sequence[NewEntry]) -> list[list[str] | None]:
    tenants = [_escaped(entry.tenant_id) for entry in entries] if any(entry.tenant_id for entry in entries) else None
    return [tenants, _given(entries, "principal", _escaped), _given(entries, "group_key", _escaped)]


def _priorities(entries: Sequence[NewEntry]) -> list[str] | None:
    return [str(entry.priority) for entry in entries] if any(entry.priority for entry in entries) else None


def _given(entries: Sequence[NewEntry], field: str, text: Any) -> list[str] | None:
    """An optional field of all entries as text; None when no entry has it."""
    values = [getattr(entry, field) for entry in entries]
    if values.count(None) == len(values):
        return None
    return [NULL if value is None else text(value) for value in values]


def _due(entry: NewEntry, now: datetime) -> datetime:
    waits = [seconds for seconds in (entry.delay_seconds, entry.max_wait_seconds) if seconds is not None]
    return now + timedelta(seconds=min(waits, default=0.0))


def _escaped(text: str) -> str:
    """Text as COPY's text format wants it."""
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")


def _copy(table: str, names: Sequence[str], columns: Sequence[list[str] | None]) -> Copy:
    used = [(name, column) for name, column in zip(names, columns, strict=True) if column is not None]
    rows = map("\t".join, zip(*(column for _, column in used), strict=True))
    return Copy(table, tuple(name for name, _ in used), ("\n".join(rows) + "\n").encode())
