"""A caller's own table, `invoice`, beside the outbox: what the tests write, and what another connection sees."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from carrick.entry import NewEntry
from carrick.outbox.adapters import adapter_for
from carrick.outbox.adapters.adapter import driver_error, sqlstate_of
from carrick.outbox.postgres import putting as postgres_putting
from carrick.outbox.producing import new_entry
from carrick.outbox.sqlite import putting as sqlite_putting
from carrick.outbox.statement import Statement, Steps

CREATE_INVOICE = "create table invoice (id text primary key)"
TOO_LONG = "x" * 2000
"""More than `max_payload_bytes` of the channel `billing` allows."""


class Committed(NamedTuple):
    """What was committed: the ids of the invoices, the event types of the entries, each sorted."""

    invoices: list[str]
    entries: list[str]


def in_postgres(url: str) -> Committed:
    """What another connection to the PostgreSQL database sees."""
    with psycopg.connect(url) as connection:
        invoices = connection.execute("select id from invoice order by id").fetchall()
        entries = connection.execute("select event_type from carrick.entry order by event_type").fetchall()
    return Committed([row[0] for row in invoices], [row[0] for row in entries])


def in_sqlite(path: Path) -> Committed:
    """What another connection to the SQLite file sees."""
    with closing(sqlite3.connect(path)) as connection:
        invoices = connection.execute("select id from invoice order by id").fetchall()
        entries = connection.execute("select event_type from carrick_entry order by event_type").fetchall()
    return Committed([row[0] for row in invoices], [row[0] for row in entries])


def billing(event_type: str, **fields: Any) -> NewEntry:
    """An entry for the channel `billing` unless the fields say otherwise."""
    return new_entry(**{"channel": "billing", "event_type": event_type, "payload": {"for": event_type}, **fields})


def put(connection: Any, event_type: str, **fields: Any) -> Any:
    """Put one entry over the caller's connection; to be awaited when the connection is async."""
    adapter = adapter_for(connection)
    putting: Any = postgres_putting if adapter.dialect == "postgresql" else sqlite_putting
    return adapter.run(putting.put_steps(billing(event_type, **fields)))


def put_many(connection: Any, *entries: NewEntry) -> Any:
    """Put entries over the caller's connection; to be awaited when the connection is async."""
    adapter = adapter_for(connection)
    if adapter.dialect == "sqlite":
        return adapter.run(sqlite_putting.put_many_steps(entries, can_bulk=adapter.can_bulk))
    return adapter.run(postgres_putting.put_many_steps(entries, can_bulk=adapter.can_bulk))


def run(connection: Any, steps: Steps[Any]) -> Any:
    """Run an operation over the caller's connection; to be awaited when the connection is async."""
    return adapter_for(connection).run(steps)


def recover(connection: Any) -> Any:
    """An operation that meets a driver's error, goes back to its savepoint and tells what it met."""
    return run(connection, _recovering())


def _recovering() -> Steps[tuple[str | None, str]]:
    yield Statement("savepoint carrick_try", {})
    try:
        yield Statement("insert into invoice (id) values ('twice'), ('twice')", {})
    except Exception as error:  # noqa: BLE001  each library has its own
        yield Statement("rollback to savepoint carrick_try", {})
        return sqlstate_of(error), type(driver_error(error)).__name__
    raise AssertionError("the same id was accepted twice")
