"""Databases with the views of other outboxes in them, and databases that several processes use at once; stories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from carrick.outbox.postgres import hearing
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.wiring import migrate
from tests.conftest import emptied, sweep, sweeper
from tests.phone import Phone
from tests.pooler import pooled
from tests.postgres_server import drop_database, fresh_database, versions
from tests.scenario.leading import KEYS, Hall, Story, Tell
from tests.scenario.queries import Connection
from tests.service import service
from tests.sqlite_file import whole_file

REMEMBER = "create table channels_as_migrated as select * from carrick.channel"
RESTORE = "delete from carrick.channel; insert into carrick.channel select * from channels_as_migrated"
"""The channels as the migrations declare them, whatever a test made of them."""


@pytest.fixture
def plain_url(postgres_version: int) -> Iterator[str]:
    """A database of its own, with the engine's schema only."""
    url = fresh_database(postgres_version)
    yield url
    drop_database(postgres_version, url)


@cache
def with_views(version: int) -> str:
    """One database of this process that tests use one after the other; the server's end is its end."""
    url = fresh_database(version)
    migrate(url, compat=True)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(REMEMBER)
    return url


@pytest.fixture
def compat_url(postgres_version: int) -> str:
    """A database with public.outbox and public.sync_outbox, and nothing in them."""
    url = with_views(postgres_version)
    sweep(url)
    sweeper(url).execute(RESTORE)
    return url


@pytest.fixture
def db(compat_url: str) -> Iterator[Connection]:
    """A connection to that database in which every statement commits."""
    with psycopg.connect(compat_url, autocommit=True) as connection:
        yield connection


class Shared(NamedTuple):
    """One database for many processes."""

    url: str
    clock: Clock


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest) -> Shared:
    """Each kind of database, fresh."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("sqlite_path")
        whole_file(path)
        return Shared(f"sqlite:///{path}", SqliteClock(path))
    dsn = emptied(versions()[0])
    return Shared(dsn, PostgresClock(dsn))


@pytest.fixture(params=["straight", "behind a pooler"])
def postgres_url(request: pytest.FixtureRequest, newest_postgres_dsn: str) -> Iterator[str]:
    """A database on PostgreSQL as services get it: straight, or through a pooler in transaction mode."""
    if request.param == "straight":
        yield newest_postgres_dsn
    else:
        with pooled("small", newest_postgres_dsn) as url:
            yield url


@pytest.fixture(params=["sqlite", "postgres", "behind a pooler"])
def tell(request: pytest.FixtureRequest, sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tell]:
    """Runs a story on that database. Behind a pooler, where nothing is heard, the poll is as rare as it usually is."""
    monkeypatch.setattr(hearing, "PROOF_SECONDS", 0.5)
    poll = "0.2"
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{sqlite_path}"
            clock: Clock = SqliteClock(sqlite_path)
        else:
            url = emptied(versions()[0])
            clock = PostgresClock(url)
        if request.param == "behind a pooler":
            url, poll = stack.enter_context(pooled("small", url)), "30"

        def run(story: Story, **changed: str) -> None:
            async def main() -> None:
                settings = {"SCORE_POLL_SECONDS": poll, **KEYS, **changed}
                async with service(url, state=None, **settings) as running, Phone(running.url) as robin:
                    await robin.sign_in()
                    await story(Hall(running, robin, clock))

            asyncio.run(main())

        yield run
