"""The examples of the documentation run as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from carrick import wiring
from tests import postgres_server

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [found["text"] for found in EXAMPLE.finditer(text) if found["language"] == language]


@pytest.fixture(params=postgres_server.versions())
def postgres(request: pytest.FixtureRequest) -> Iterator[str]:
    url = postgres_server.fresh_database(request.param)
    yield url
    postgres_server.drop_database(request.param, url)


def run_python(text: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(text, "example", "exec"), names)
    return names


def test_the_sqlite_quick_start_delivers_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wiring.migrate("sqlite:///carrick.db")
    run_python(examples("README.md", "python")[0])
    assert capsys.readouterr().out.startswith("invoice.paid b'{")
    store = wiring.open_store("sqlite:///carrick.db")
    assert [(stats.pending_count, stats.claimed_count, stats.dead_count) for stats in store.stats()] == [(0, 0, 0)]
    store.close()


def test_the_postgresql_quick_start_delivers_its_entry(postgres: str) -> None:
    run_python(examples("README.md", "python")[1].replace("postgresql://localhost/shop", postgres))
    with psycopg.connect(postgres) as connection:
        assert connection.execute("select key, state from carrick.entry").fetchall() == [("inv-42", "delivered")]


def test_the_sql_quick_start_delivers_its_entry(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(examples("README.md", "sql")[0].encode())
        assert connection.execute("select key, state from carrick.entry").fetchall() == [("p-1", "delivered")]


def test_the_tutorial_ends_with_an_entry_that_will_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wiring.migrate("sqlite:///shop.db")
    run_python("\n".join(examples("docs/tutorial/first-outbox.md", "python")))
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("welcome b'{")
    assert "try later" in shown[1]


def test_the_page_about_dead_entries_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wiring.migrate("sqlite:///carrick.db")
    run_python("\n".join(examples("docs/how-to/dead-entries-and-gates.md", "python")))


def test_every_statement_of_the_sql_page_runs(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for text in examples("docs/how-to/use-sql.md", "sql"):
            connection.execute(text.encode())
        assert connection.execute("select key, state from carrick.entry").fetchall() == [("inv-42", "delivered")]
