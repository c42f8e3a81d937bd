"""The SQLite schema: applied once, whoever comes first, and never by a release that is too old."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from carrick.errors import SchemaMissing, SchemaOutdated, SchemaTooNew, StoreUnavailable
from carrick.outbox.sqlite import migrate
from carrick.outbox.sqlite.migrate import ENGINE
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.transitions import TRANSITIONS
from tests.many import many

ALL = [ENGINE.title(migration) for migration in ENGINE.steps]
REPLICAS = 10


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("select name, sql from sqlite_schema order by name").fetchall()


def test_migrate_applies_every_file_once(sqlite_path: Path) -> None:
    assert migrate.pending(sqlite_path) == ALL
    assert migrate.migrate(sqlite_path) == ALL
    assert migrate.migrate(sqlite_path) == []
    assert migrate.pending(sqlite_path) == []


def test_ten_processes_that_start_at_once_apply_every_file_once(sqlite_path: Path) -> None:
    with ProcessPoolExecutor(REPLICAS, mp_context=many()) as replicas:
        applied = [name for names in replicas.map(migrate.migrate, [sqlite_path] * REPLICAS) for name in names]
    assert sorted(applied) == ALL
    SqliteStore(sqlite_path).check_schema()


def test_pending_creates_no_file(sqlite_path: Path) -> None:
    migrate.pending(sqlite_path)
    assert not sqlite_path.exists()


def test_checking_the_schema_of_a_file_that_is_not_there_creates_none(sqlite_path: Path) -> None:
    with pytest.raises(SchemaMissing, match="carrick migrate"):
        SqliteStore(sqlite_path).check_schema()
    assert not sqlite_path.exists()


def test_a_file_without_the_schema_is_missing_it(sqlite_path: Path) -> None:
    execute(sqlite_path, "create table invoice (number int)")
    with pytest.raises(SchemaMissing):
        SqliteStore(sqlite_path).check_schema()
    assert migrate.pending(sqlite_path) == ALL


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        migrate.migrate(tmp_path / "nowhere" / "outbox.db")
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path / "nowhere" / "outbox.db").check_schema()


def test_a_schema_that_is_too_new_is_refused_everywhere(path: Path) -> None:
    execute(path, "insert into carrick_migration (part, number, name) values ('engine', 9999, 'future')")
    with pytest.raises(SchemaTooNew, match="upgrade Carrick"):
        migrate.migrate(path)
    with pytest.raises(SchemaTooNew):
        migrate.pending(path)
    with pytest.raises(SchemaTooNew):
        SqliteStore(path).check_schema()


def test_a_schema_that_is_too_old_is_outdated(path: Path) -> None:
    execute(path, f"delete from carrick_migration where number = {len(ENGINE.steps)}")
    with pytest.raises(SchemaOutdated):
        SqliteStore(path).check_schema()


def test_a_migration_that_fails_leaves_nothing_behind(sqlite_path: Path) -> None:
    execute(sqlite_path, "create table carrick_lease (mine int)")
    before = schema(sqlite_path)
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate.migrate(sqlite_path)
    assert schema(sqlite_path) == before


def test_the_script_makes_the_same_schema(path: Path, tmp_path: Path) -> None:
    by_script = tmp_path / "script.db"
    with closing(sqlite3.connect(by_script)) as connection:
        connection.executescript(migrate.script())
    assert schema(by_script) == schema(path)
    assert migrate.pending(by_script) == []
    SqliteStore(by_script).check_schema()


def test_the_semicolons_of_a_trigger_do_not_end_it() -> None:
    sql = "-- why\ncreate table a (b int);\ncreate trigger t after insert on a begin\n  select 1;\n  select 2;\nend;\n"
    assert len(list(migrate.statements(sql))) == 2


def test_a_file_that_ends_within_a_statement_is_refused() -> None:
    with pytest.raises(ValueError, match="ends within a statement"):
        list(migrate.statements("create table a (b int);\ncreate table c (d int)\n"))


def test_the_table_of_transitions_is_the_one_of_the_library(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select * from carrick_transition").fetchall()
    assert {row[0]: row[1:] for row in rows} == {
        kind.value: (to.next_state.value, int(to.spends_attempt), int(to.freezes)) for kind, to in TRANSITIONS.items()
    }


def test_the_file_is_in_wal_mode(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
