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
    "newest": "PostgreSQL's ingest_batch finds out what is new by itself",
    "prune_signatures": "PostgreSQL's prune_inbox forgets signatures, too",
    "remember_signature": "PostgreSQL's ingest_batch does it",
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
    walks = [
        line for line in plan if line.startswith("SCAN") and re.search(r"\b(x|i|carrick_inbox|carrick_ingest)", line)
    ]
    assert all("USING COVERING INDEX" in line for line in walks), plan  # the first tenant: one step of an index


RECENT = "select event_id from carrick.inbox where tenant_id = 't' order by received_at desc, event_id desc limit 10"
OLDEST = """
select x.ctid from carrick.inbox x where x.tenant_id = 't' and x.received_at < now() order by x.received_at limit 10"""


@pytest.mark.parametrize("query", [RECENT, OLDEST])
def test_lists_and_retention_on_postgresql_walk_the_index_of_arrivals(query: str, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(
            "insert into carrick.inbox (tenant_id, event_id, event_type, received_at, payload) "
            "select 't' || n % 7, n::text, 'x', now() - n * interval '1 second', '1' from generate_series(1, 20000) n"
        )
        connection.execute("analyze carrick.inbox")
        plan = "\n".join(row[0] for row in connection.execute(f"explain {query}".encode()).fetchall())
        connection.rollback()
    assert "inbox_received" in plan
    assert "Seq Scan" not in plan
