"""A store of each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from tests.conftest import emptied
from tests.postgres_server import versions
from tests.sqlite_file import engine_file


@pytest.fixture
def file_store(sqlite_path: Path) -> Iterator[Store]:
    """A store on SQLite, for what does not depend on the database."""
    engine_file(sqlite_path)
    with closing(SqliteStore(sqlite_path)) as opened:
        yield opened


@pytest.fixture(params=["sqlite", *(f"postgres{version or ''}" for version in versions())])
def store(request: pytest.FixtureRequest, sqlite_path: Path) -> Iterator[Store]:
    """A store with nothing in it."""
    if request.param == "sqlite":
        engine_file(sqlite_path)
        with closing(SqliteStore(sqlite_path)) as opened:
            yield opened
        return
    with closing(PostgresStore(emptied(int(request.param.removeprefix("postgres") or 0)))) as other:
        yield other
