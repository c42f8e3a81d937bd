"""SQL as a test writes it down: no parameters, the rows as they come."""

from __future__ import annotations

import psycopg
import pytest

Connection = psycopg.Connection[tuple[object, ...]]


def rows(db: Connection, query: str) -> list[tuple[object, ...]]:
    return db.execute(query.encode()).fetchall()


def column(db: Connection, query: str) -> list[object]:
    """The first column of every row."""
    return [row[0] for row in rows(db, query)]


def run(db: Connection, statement: str) -> int:
    """How many rows the statement says it changed."""
    return db.execute(statement.encode()).rowcount


def refusal(db: Connection, statement: str) -> str:
    """The message and the hint of a statement that is refused as bad input."""
    with pytest.raises(psycopg.Error) as raised:
        db.execute(statement.encode())
    assert raised.value.sqlstate == "CK004"
    return f"{raised.value.diag.message_primary}; {raised.value.diag.message_hint}"
