"""The inbox's SQL files: the same names on both databases, a comment each, and no reading through what grows."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from carrick import wiring

REASONS_FOR_SQLITE_ALONE = {
    "known_keys": "PostgreSQL's functions that relay leave out what the outbox knows",
    "newest": "PostgreSQL's ingest_batch finds out what is new by itself",
    "note_intake": "PostgreSQL's functions that store do it",
    "prune_intakes": "PostgreSQL's prune_inbox forgets intakes, too",
    "prune_signatures": "PostgreSQL's prune_inbox forgets signatures, too",
    "take_plain": "only SQLite's driver binds values one by one",
}
REASONS_FOR_POSTGRES_ALONE = {"take_new": "on SQLite batches that come together take the same statements"}


def texts(backend: str) -> dict[str, str]:
    folder = files(f"carrick.ingest.{backend}") / "queries"
    return {file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in folder.iterdir()}


def test_the_folders_differ_only_for_a_listed_reason() -> None:
    assert texts("sqlite").keys() - texts("postgres").keys() == REASONS_FOR_SQLITE_ALONE.keys()
    assert texts("postgres").keys() - texts("sqlite").keys() == REASONS_FOR_POSTGRES_ALONE.keys()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_every_query_opens_with_a_comment_and_is_used(backend: str) -> None:
    source = (files(f"carrick.ingest.{backend}") / "store.py").read_text(encoding="utf-8")
    for name, text in texts(backend).items():
        assert text.startswith("-- "), name
        assert f'"{name}"' in source, name


@pytest.mark.parametrize("name", texts("sqlite"))
def test_no_query_on_sqlite_reads_through_the_inbox(name: str, tmp_path: Path) -> None:
    wiring.migrate(f"sqlite:///{tmp_path}/inbox.db")
    sql = texts("sqlite")[name]
    bare = re.sub(r"--[^\n]*", "", sql)
    names = re.findall(r"(?<![\w:]):(\w+)", bare)
    params = dict.fromkeys(names) if names else [None] * bare.count("?")
    with closing(sqlite3.connect(tmp_path / "inbox.db")) as connection:
        plan = [row[3] for row in connection.execute(f"explain query plan {sql}", params)]
    walks = [line for line in plan if line.startswith("SCAN") and re.search(r"\b(x|i|carrick_in)", line)]
    assert walks == []
    assert not [line for line in plan if "AUTOMATIC" in line or ("(tenant_id=?)" in line and " x " in line)], plan


STORED = """
with event as (
  insert into carrick.inbox (tenant_id, event_id, event_type, received_at, payload)
  select 't' || n %% 7, n::text, 'x', now() - n / 700 * interval '1 hour', '1' from generate_series(%s::int, %s::int) n
  returning tenant_id, event_id, received_at)
insert into carrick.intake (tenant_id, received_at, event_ids)
select tenant_id, received_at, array_agg(event_id) from event group by tenant_id, received_at
"""
"""A hundred events of each of seven tenants in every one of a hundred hours."""
READ = """
select seq_scan, idx_tup_fetch from pg_stat_xact_user_tables
 where schemaname = 'carrick' and relname in ('inbox', 'intake') order by relname
"""


@pytest.mark.parametrize("analysed", ["when it was empty", "when each tenant had one event", "now"])
@pytest.mark.parametrize("query", ["recent", "prune"])
def test_lists_and_retention_on_postgresql_read_what_they_answer_or_remove(
    query: str, analysed: str, postgres_dsn: str
) -> None:
    params = {"tenant_id": "t3", "limit": 150, "days": 97 / 24, "max_rows": 1000, "signature_seconds": 1800}
    with psycopg.connect(postgres_dsn) as connection:
        first = {"when it was empty": 0, "when each tenant had one event": 7, "now": 70_000}[analysed]
        connection.execute(STORED, (0, first - 1))
        connection.execute("analyze carrick.inbox, carrick.intake")
        connection.execute(STORED, (first, 69_999))
        before = connection.execute(READ).fetchall()
        rows = connection.execute(texts("postgres")[query].encode(), params).fetchall()
        after = connection.execute(READ).fetchall()
        connection.rollback()
    assert [now[0] - then[0] for now, then in zip(after, before, strict=True)] == [0, 0], "a table was read through"
    of_inbox, of_intake = (now[1] - then[1] for now, then in zip(after, before, strict=True))
    assert len(rows) == 150 if query == "recent" else rows == [(1000,)]
    assert of_inbox <= (300 if query == "recent" else 1000)
    assert of_intake <= 100


def test_on_sqlite_they_take_no_more_steps_when_more_is_stored(tmp_path: Path) -> None:
    little, much = (_steps(tmp_path / f"{hours}.db", hours) for hours in (10, 100))
    assert much == pytest.approx(little, rel=0.1)


def _steps(path: Path, hours: int) -> list[int]:
    """What a list and retention cost, in steps of SQLite's machine: a hundred events of seven tenants in each hour."""
    wiring.migrate(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection, connection:
        for n in range(hours * 7):
            for place in range(100):
                row = (f"t{n % 7}", f"{n}-{place}", "x", n // 7, "1")
                connection.execute(
                    "insert into carrick_inbox (tenant_id, event_id, event_type, received_at, payload) "
                    "values (?, ?, ?, ?, ?)",
                    row,
                )
            noted = {"tenant_id": f"t{n % 7}", "received_at": n // 7, "stored": 100}
            connection.execute(texts("sqlite")["note_intake"], noted)
        params = {"tenant_id": "t3", "limit": 150, "before": hours // 2, "max_rows": 1000}
        return [_cost(connection, name, params) for name in ("recent", "prune", "prune_intakes")]


def _cost(connection: sqlite3.Connection, name: str, params: dict[str, object]) -> int:
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    connection.set_progress_handler(step, 1)
    connection.execute(texts("sqlite")[name], params).fetchall()
    connection.set_progress_handler(None, 0)
    return steps
