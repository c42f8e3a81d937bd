from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from carrick import cli, wiring


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An SQLite file that does not exist yet and is named by DATABASE_URL."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///outbox.db")
    return tmp_path / "outbox.db"


def output(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_migrate_makes_a_database_that_a_store_accepts(database: Path) -> None:
    assert cli.run(["migrate"]) == 0
    store = wiring.open_store(f"sqlite:///{database}")
    store.check_schema()
    store.close()


def test_migrate_again_changes_nothing_and_says_so(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["migrate"])
    first = output(capsys)
    assert cli.run(["migrate"]) == 0
    assert first.startswith("applied: engine/0001_")
    assert output(capsys) == "The schema was up to date already.\n"


def test_check_lists_what_is_pending_with_exit_code_1_and_changes_nothing(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["migrate", "--check"]) == 1
    assert output(capsys).startswith("pending: engine/0001_")
    assert not database.exists()


def test_check_passes_once_migrated(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["migrate"])
    output(capsys)
    assert cli.run(["migrate", "--check"]) == 0
    assert output(capsys) == "The schema is up to date.\n"


def test_json_names_what_was_pending_and_then_the_same_as_applied(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["migrate", "--check", "--json"])
    pending = json.loads(output(capsys))["pending"]
    cli.run(["migrate", "--json"])
    assert json.loads(output(capsys)) == {"applied": pending}
    cli.run(["migrate", "--json"])
    assert json.loads(output(capsys)) == {"applied": []}


def test_the_printed_sql_makes_the_same_schema_as_migrate(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["migrate", "--sql"]) == 0
    assert not database.exists()
    with sqlite3.connect(tmp_path / "by-hand.db") as by_hand:
        by_hand.executescript(output(capsys))
    by_hand.close()
    assert cli.run(["migrate", "--check", "--database", f"sqlite:///{tmp_path / 'by-hand.db'}"]) == 0


def test_sql_stands_alone(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["migrate", "--sql", "--check"]) == 2
    assert "--sql stands alone" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--check"], ["--sql"]])
def test_compat_on_sqlite_is_refused_and_makes_no_file(
    more: list[str], database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["migrate", "--compat", *more]) == 1
    assert capsys.readouterr().err.startswith("carrick: compat: SQLite has no such views")
    assert not database.exists()


def test_a_wrong_variable_is_named_in_the_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://root:secret@h/db")
    assert cli.run(["migrate"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("carrick: DATABASE_URL='mysql://root:***@h/db' is not acceptable; accepted: ")
    assert said.count("\n") == 1
