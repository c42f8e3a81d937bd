"""Databases of every kind for the tests of relays and inboxes, and sessions for the interleaving tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from carrick.ingest.store import Inbox
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.testing.interleaving import Session
from tests.conftest import emptied
from tests.contract.inboxes import Place, postgres_place, sqlite_place
from tests.contract.sessions import Open
from tests.postgres_server import versions
from tests.sqlite_file import engine_file


class Database(NamedTuple):
    """A fresh database: opens one more store of it."""

    open: Callable[[], Store]
    clock: Clock


@pytest.fixture(params=["sqlite", *(f"postgres{version or ''}" for version in versions())])
def database(request: pytest.FixtureRequest, sqlite_path: Path) -> Database:
    """Each kind of database."""
    if request.param == "sqlite":
        engine_file(sqlite_path)
        return Database(lambda: SqliteStore(sqlite_path), SqliteClock(sqlite_path))
    dsn = emptied(int(request.param.removeprefix("postgres") or 0))
    return Database(lambda: PostgresStore(dsn), PostgresClock(dsn))


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with closing(database.open()) as store:
        yield store


@pytest.fixture
def others(database: Database) -> Iterator[Store]:
    """The same database, as another process has it."""
    with closing(database.open()) as store:
        yield store


@pytest.fixture
def clock(database: Database) -> Clock:
    return database.clock


@pytest.fixture
def opened(postgres_dsn: str) -> Iterator[Open]:
    """Opens sessions to one database; all are closed at the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Session(postgres_dsn))


@pytest.fixture(params=["sqlite", "postgres18", "postgres16"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Each kind of database with an inbox."""
    if request.param == "sqlite":
        yield from sqlite_place(tmp_path / "inbox.db")
    else:
        yield from postgres_place(int(request.param.removeprefix("postgres")))


@pytest.fixture
def inbox(place: Place) -> Iterator[Inbox]:
    """An inbox that relays to `events`."""
    with closing(place.inbox("events")) as opened:
        yield opened
