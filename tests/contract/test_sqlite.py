"""The store contract on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrick.outbox.outbox import Outbox
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.testing import Clock, SqliteClock, StoreContract
from carrick.testing.contract.caller import Connect
from tests.sqlite_file import engine_file


class TestSqlite(StoreContract):
    """Every guarantee on SQLite."""

    @pytest.fixture
    def path(self, sqlite_path: Path) -> Path:
        engine_file(sqlite_path)
        return sqlite_path

    @pytest.fixture
    def store(self, path: Path) -> Iterator[Store]:
        store = SqliteStore(path)
        yield store
        store.close()

    @pytest.fixture
    def clock(self, path: Path) -> Clock:
        return SqliteClock(path)

    @pytest.fixture
    def outbox(self, store: Store) -> Outbox:
        return Outbox(store, dialect="sqlite")

    @pytest.fixture
    def connect(self, path: Path) -> Connect:
        return lambda: sqlite3.connect(path)
