"""A SQLite file with the schema, and a store on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.store import SqliteStore
from tests.sqlite_file import engine_file


@pytest.fixture
def path(sqlite_path: Path) -> Path:
    """A file with the schema and nothing in it."""
    engine_file(sqlite_path)
    return sqlite_path


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """A store with the channel `things`."""
    store = SqliteStore(path)
    store.declare(Channel(name="things"))
    yield store
    store.close()
