"""An inbox of an earlier release: its events stay, and are still known."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from carrick import wiring
from carrick.ingest.postgres.store import PART as POSTGRES_PART
from carrick.ingest.sqlite.store import PART
from carrick.outbox.postgres.migrate import migrate as migrate_postgres
from carrick.outbox.sqlite.migrate import migrate, statements
from tests.batches import checked, numbered, take
from tests.postgres_server import drop_database, fresh_database, versions

STORED = """
insert into carrick_inbox (tenant_id, event_id, event_type, received_at, payload)
select 'farm-1', 'e-' || value, 'reading.taken', value, '{"n": 1}' from json_each('[0, 1, 2]')
"""


def test_events_that_were_stored_with_checks_stay_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    with _file_before(path, 1) as file, file:
        file.execute(STORED)
    assert "ingest/0002_unchecked" in wiring.migrate(f"sqlite:///{path}")
    with closing(wiring.open_inbox(f"sqlite:///{path}")) as inbox:
        assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["e-2", "e-1", "e-0"]
        taken = take(inbox, checked(*numbered(4)))
    assert (taken.accepted, taken.duplicated) == (1, 3)


def _file_before(path: Path, steps: int) -> closing[sqlite3.Connection]:
    """A file with so many of the inbox's migrations."""
    migrate(path)
    file = sqlite3.connect(path)
    with file:
        for step in PART.steps[:steps]:
            for statement in statements(step.sql):
                file.execute(statement)
            file.execute("insert into carrick_migration (part, number, name) values ('ingest', ?, ?)", step[:2])
    return closing(file)


MIXED = [("farm-2", "a", 30), ("farm-1", "b", 20), ("farm-1", "c", 30), ("farm-2", "d", 10), ("farm-1", "a", 20)]
"""Tenants, ids and seconds since 1970, not in the order of their arrival."""


def _check_upgraded(url: str, look: Callable[[str], list[tuple[Any, ...]]]) -> None:
    with closing(wiring.open_inbox(url)) as inbox:
        assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["c", "b", "a"]
        assert [seen.event_id for seen in inbox.recent("farm-2", 9)] == ["a", "d"]
        assert inbox.prune(1, max_rows=1) == 1
        assert look("d") == []
        assert inbox.prune(1, max_rows=2) == 2
        assert look("b") == []
        assert len(look("a")) == 1
        assert [inbox.prune(1, max_rows=9) for _ in range(2)] == [2, 0]


def test_events_of_a_file_without_an_intake_are_listed_and_forgotten_by_their_time(tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    with _file_before(path, 2) as file, file:
        file.execute("create index carrick_inbox_received on carrick_inbox (tenant_id, received_at)")
        for tenant_id, event_id, seconds in MIXED:
            row = (tenant_id, event_id, "x", seconds * 1_000_000, "1")
            file.execute(
                "insert into carrick_inbox (tenant_id, event_id, event_type, received_at, payload) "
                "values (?, ?, ?, ?, ?)",
                row,
            )
    assert "ingest/0003_intake" in wiring.migrate(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("select sum(last_place - first_place + 1) from carrick_intake").fetchone() == (len(MIXED),)
        _check_upgraded(
            f"sqlite:///{path}",
            lambda name: file.execute("select 1 from carrick_inbox where event_id = ?", (name,)).fetchall(),
        )
        assert not file.execute("select 1 from sqlite_schema where name = 'carrick_inbox_received'").fetchall()


@pytest.mark.parametrize("is_secured", [False, True])
def test_events_of_a_database_without_an_intake_are_listed_and_forgotten_by_their_time(is_secured: bool) -> None:
    dsn = fresh_database(versions()[0], migrated=False)
    migrate_postgres(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(POSTGRES_PART.steps[0].sql.encode())
        connection.execute("insert into carrick.migration (part, number, name) values ('ingest', 1, 'inbox')")
        connection.execute("create index inbox_received on carrick.inbox (tenant_id, received_at)")
        if is_secured:
            connection.execute("alter table carrick.inbox enable row level security")
        for row in MIXED:
            connection.execute(
                "insert into carrick.inbox (tenant_id, event_id, event_type, received_at, payload) "
                "values (%s, %s, 'x', to_timestamp(%s), '1')",
                row,
            )
        assert "ingest/0002_intake" in wiring.migrate(dsn)
        _check_upgraded(
            dsn,
            lambda name: connection.execute("select 1 from carrick.inbox where event_id = %s", (name,)).fetchall(),
        )
        assert connection.execute("select to_regclass('carrick.inbox_received')").fetchall() == [(None,)]
        ((secured,),) = connection.execute(
            "select relrowsecurity from pg_class where oid = 'carrick.intake'::regclass"
        ).fetchall()
        assert secured is is_secured
    drop_database(versions()[0], dsn)
