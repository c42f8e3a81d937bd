"""Each kind of database, fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrick.testing import PostgresClock, SqliteClock
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from tests.conftest import emptied
from tests.contract.scores.world import Kind
from tests.postgres_server import versions
from tests.sqlite_file import whole_file


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, sqlite_path: Path) -> Kind:
    if request.param == "sqlite":
        url = f"sqlite:///{sqlite_path}"
        whole_file(sqlite_path)
        return Kind(url, lambda: SqliteTables(sqlite_path), SqliteClock(sqlite_path))
    dsn = emptied(versions()[0])
    return Kind(dsn, lambda: PostgresTables(dsn), PostgresClock(dsn))
