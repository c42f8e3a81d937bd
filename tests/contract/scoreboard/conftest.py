"""The scoreboard's tables on every kind of database, and their clocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.store.tables import Tables
from tests.conftest import emptied
from tests.postgres_server import versions
from tests.sqlite_file import whole_file


@pytest.fixture(params=["sqlite", *(f"postgres{version or ''}" for version in versions())])
def url(request: pytest.FixtureRequest, sqlite_path: Path) -> str:
    """A fresh database of each kind."""
    if request.param == "sqlite":
        whole_file(sqlite_path)
        return f"sqlite:///{sqlite_path}"
    return emptied(int(request.param.removeprefix("postgres") or 0))


def opened(url: str) -> Tables:
    """The tables of that database, as one more process has them."""
    if url.startswith("sqlite"):
        return SqliteTables(url.removeprefix("sqlite:///"))
    return PostgresTables(url)


@pytest.fixture
def tables(url: str) -> Iterator[Tables]:
    with closing(opened(url)) as tables:
        yield tables


@pytest.fixture
def clock(url: str) -> Clock:
    return SqliteClock(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else PostgresClock(url)


@pytest.fixture
def devices(tables: Tables) -> Devices:
    """Devices, with one application that may ask for a sign-in."""
    Clients(tables).add("matrix", "the display in the hall", "ann@example.org", actor="test")
    return Devices(tables)
