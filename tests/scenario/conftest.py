"""Databases that several processes use at once, by URL."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from carrick.outbox.sqlite.migrate import migrate
from carrick.testing import Clock, PostgresClock, SqliteClock


class Shared(NamedTuple):
    """One database for many processes."""

    url: str
    clock: Clock


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest) -> Shared:
    """Each kind of database, fresh."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("sqlite_path")
        migrate(path)
        return Shared(f"sqlite:///{path}", SqliteClock(path))
    dsn: str = request.getfixturevalue("newest_postgres_dsn")
    return Shared(dsn, PostgresClock(dsn))
