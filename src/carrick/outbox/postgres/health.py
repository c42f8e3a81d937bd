"""Asks a PostgreSQL server how it is, on a connection of its own. Changes nothing, and needs no schema."""

from __future__ import annotations

from typing import Any

import psycopg

from carrick.outbox.health import DeadRows, Health, Holder
from carrick.outbox.postgres.failures import map_errors
from carrick.outbox.postgres.putting import PACKAGE
from carrick.outbox.statement import query

CONNECT_SECONDS = 5


def look(dsn: str) -> Health:
    """How the database is now. Raises a StoreError when it does not answer."""
    with map_errors(), psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
        connection.execute("set statement_timeout = '10s'")
        number = connection.info.server_version
        holders = _rows(connection, "health_holder")
        tables = _rows(connection, "health_dead_rows")
        return Health(
            version=f"PostgreSQL {connection.info.parameter_status('server_version')}",
            number=number,
            indexes=frozenset(name for (name,) in _rows(connection, "health_indexes")),
            holder=_holder(*holders[0]) if holders else None,
            dead_rows=DeadRows(table=tables[0][0], live=tables[0][1], dead=tables[0][2]) if tables else None,
        )


def _holder(who: str, seconds: float | None, transactions: int) -> Holder:
    return Holder(who=who, seconds=None if seconds is None else float(seconds), transactions=transactions)


def _rows(connection: psycopg.Connection[Any], name: str) -> list[tuple[Any, ...]]:
    return connection.execute(query(PACKAGE, name).encode()).fetchall()
