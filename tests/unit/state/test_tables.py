"""The tables of shared state on both databases: who waits for whom, what is read, and which queries there are."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from carrick.errors import SchemaMissing
from carrick.outbox.statement import query
from carrick.state.postgres.tables import PACKAGE
from carrick.state.sqlite.tables import SqliteTables
from carrick.testing.interleaving import Session
from tests.unit.outbox.test_sql_twins import without_reason

REASONS_FOR_SQLITE_ALONE = {
    "count": "PostgreSQL's increment is one statement",
    "messages": "PostgreSQL has LISTEN and NOTIFY",
    "newest_message": "PostgreSQL has LISTEN and NOTIFY",
    "prune_messages": "PostgreSQL has LISTEN and NOTIFY",
}
REASONS_FOR_POSTGRES_ALONE = {
    "compare_and_set": "SQLite has one writer: it looks, then writes with set.sql",
    "increment": "SQLite has one writer: it looks, then writes with set.sql or count.sql",
    "set_if_absent": "SQLite has one writer: it looks, then writes with set.sql",
}


def test_tables_of_a_database_without_the_schema_say_so(tmp_path: Path) -> None:
    tables = SqliteTables(tmp_path / "empty.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaMissing):
        tables.check_schema()
    tables.close()


@pytest.mark.parametrize(("ending", "taken"), [("commit", []), ("rollback", [(True,)])])
def test_who_waits_for_another_who_takes_a_lock_gets_it_only_if_that_one_gives_up(
    newest_postgres_dsn: str, ending: str, taken: list[tuple[bool]]
) -> None:
    params = {"key": "lock", "value": b"x", "ttl": 60}
    with Session(newest_postgres_dsn) as first, Session(newest_postgres_dsn) as second:
        take = psycopg.ClientCursor(first.connection).mogrify(query(PACKAGE, "set_if_absent").encode(), params)
        first.begin()
        assert first.run(take) == [(True,)]
        waiting = second.start(take)
        waiting.until_it_waits(newest_postgres_dsn)
        first.run(ending)
        assert waiting.result() == taken


def test_pruning_reads_the_index_and_not_the_table(newest_postgres_dsn: str) -> None:
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute(
            "insert into carrick.state_item select 'k' || n, '', carrick.clock() + interval '1 hour' "
            "from generate_series(1, 20000) n"
        )
        connection.execute("analyze carrick.state_item")
        plan = connection.execute(
            b"explain (analyze, buffers off) " + query(PACKAGE, "prune").encode(), {"max_rows": 1000}
        ).fetchall()
    text = "\n".join(row[0] for row in plan)
    assert "Index Cond: (ends_at <=" in text
    assert "Seq Scan on state_item" not in text


def names(backend: str) -> set[str]:
    folder = files(f"carrick.state.{backend}") / "queries"
    return {file.name.removesuffix(".sql") for file in folder.iterdir() if file.name.endswith(".sql")}


def test_the_query_folders_differ_only_for_a_listed_reason() -> None:
    sqlite, postgres = names("sqlite"), names("postgres")
    assert without_reason(sqlite - postgres, REASONS_FOR_SQLITE_ALONE) == []
    assert without_reason(postgres - sqlite, REASONS_FOR_POSTGRES_ALONE) == []
    assert set(REASONS_FOR_SQLITE_ALONE) | set(REASONS_FOR_POSTGRES_ALONE) == sqlite ^ postgres


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_every_query_opens_with_a_comment_that_says_what_it_does(backend: str) -> None:
    folder = files(f"carrick.state.{backend}") / "queries"
    assert [file.name for file in folder.iterdir() if not file.read_text().startswith("-- ")] == []
