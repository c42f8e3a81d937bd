"""The scoreboard's tables on either database: queries by name, rows as values. The clock is the database's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from uuid import UUID

import msgspec

T = TypeVar("T")

Row = Mapping[str, Any]
"""One row by the names of its columns. Times (`…_at`, `…_expiry`) are datetimes in UTC on both databases."""


class Ask(Protocol):
    """Runs queries/<name>.sql in one transaction; its rows. Times are given as datetimes.

    `connection` is the driver's own, for the outbox to put into the same transaction.
    """

    connection: Any

    def __call__(self, name: str, /, **params: Any) -> list[Row]:
        """The rows of that query."""
        ...

    def redrive(self, channel: str, entry_id: UUID) -> None:
        """That entry, if it is dead, goes round again, in this transaction."""
        ...

    def discard(self, channel: str, entry_id: UUID) -> None:
        """That entry, if it is dead, is removed, in this transaction."""
        ...


class Tables(Protocol):
    """One database. Every operation blocks: call it in a thread. Raises StoreError, or InvalidInput for a value that
    the database cannot hold."""

    def reading(self) -> AbstractContextManager[Ask]:
        """To look, without waiting for anybody. Each query may see a moment of its own."""
        ...

    def writing(self) -> AbstractContextManager[Ask]:
        """A transaction: durable when it ends, undone whole when something fails."""
        ...

    def check_schema(self) -> None:
        """Raise SchemaMissing, SchemaOutdated or SchemaTooNew unless the tables are those of this release."""
        ...

    def close(self) -> None:
        """End the connections, after what is under way."""
        ...


def fitting(text: str, longest: int) -> str:
    """Text from outside as either database can hold it: without NUL and lone surrogates, at most so long."""
    return text.encode(errors="replace").decode().replace("\0", "?")[:longest]


def value_of(row: Row, kind: type[T]) -> T:
    """The row as a value with fields of the same names."""
    return msgspec.convert(row, kind, strict=False)


def first_of(rows: list[Row], kind: type[T]) -> T | None:
    """The first row as a value, None where there is none."""
    return value_of(rows[0], kind) if rows else None
