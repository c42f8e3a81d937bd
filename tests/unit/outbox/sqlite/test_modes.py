"""Who may open the files of an embedded database: their owner, unless somebody decides otherwise."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrick import Outbox
from carrick.cli import run


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A shell that lets everybody do everything."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Each file of the folder with its mode."""
    return {file.name: f"{stat.S_IMODE(file.stat().st_mode):04o}" for file in folder.iterdir()}


def put(path: Path) -> Outbox:
    """An outbox at work on the file, so that its WAL is there."""
    outbox = Outbox.connect(f"sqlite:///{path}")
    outbox.channel("things")
    outbox.put(channel="things", event_type="e", payload=1)
    return outbox


def test_a_database_its_wal_and_its_index_are_created_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "carrick.db"
    assert run(["migrate", "--database", f"sqlite:///{path}"]) == 0
    with put(path):
        assert modes(tmp_path) == {"carrick.db": "0600", "carrick.db-shm": "0600", "carrick.db-wal": "0600"}


def test_a_rollback_journal_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "carrick.db"
    assert run(["migrate", "--database", f"sqlite:///{path}"]) == 0
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = delete")
        connection.execute("begin immediate")
        connection.execute("create table mine (a)")
        assert modes(tmp_path) == {"carrick.db": "0600", "carrick.db-journal": "0600"}


@pytest.mark.parametrize("mode", ["0640", "0644", "0666"])
def test_the_mode_of_a_file_that_is_there_is_left_as_it_is(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "carrick.db"
    assert run(["migrate", "--database", f"sqlite:///{path}"]) == 0
    path.chmod(int(mode, 8))
    assert run(["migrate", "--database", f"sqlite:///{path}"]) == 0
    with put(path):
        assert set(modes(tmp_path).values()) == {mode}


def test_a_place_where_no_file_can_be_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "--database", f"sqlite:///{tmp_path}/nowhere/carrick.db"]) == 1
    assert "nowhere/carrick.db" in capsys.readouterr().err
