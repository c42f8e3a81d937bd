"""The examples of the documentation run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from bench import scale

from carrick import State, wiring
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


def test_the_ten_lines_of_the_readme_deliver_their_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wiring.migrate("sqlite:///carrick.db")
    (text,) = examples("README.md", "python")
    assert len([line for line in text.splitlines() if line]) == 10
    run_python(text)
    store = wiring.open_store("sqlite:///carrick.db")
    assert [line.event_type for line in store.entries("mail", state=State.DELIVERED).lines] == ["order.placed"]
    store.close()


def test_the_postgresql_quick_start_delivers_its_entry(postgres: str) -> None:
    run_python(
        examples("docs/how-to/run-on-postgresql.md", "python")[0].replace("postgresql://localhost/shop", postgres)
    )
    with psycopg.connect(postgres) as connection:
        assert connection.execute("select key, state from carrick.entry").fetchall() == [("inv-42", "delivered")]


def test_the_five_minutes_end_with_an_entry_that_is_delivered(tmp_path: Path) -> None:
    shop, order = examples("docs/tutorial/five-minutes.md", "python")
    _, folder, *typed = examples("docs/tutorial/five-minutes.md", "sh")
    assert folder.startswith("mkdir shop && cd shop\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "shop.py").write_text(shop)
    (tmp_path / "shop" / "order.py").write_text(order)
    script = "\n".join(["set -e", folder.replace("mkdir shop && ", ""), *typed])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'sent: {"order":"o-1"}\nmail: claimed 1, delivered 1,' in done.stdout


def test_the_figures_about_scale_are_those_of_the_model() -> None:
    (table,) = examples("docs/explanation/scale.md", "text")
    assert table == f"{scale.report()}\n"


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
