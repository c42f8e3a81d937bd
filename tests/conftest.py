"""Fixtures that every kind of test shares: fresh databases of each backend, and their clocks."""

from __future__ import annotations

import atexit
import gc
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres_server import drop_database, fresh_database, versions

Sweeper = psycopg.Connection[tuple[Any, ...]]

pytest.register_assert_rewrite("carrick.testing")


def pytest_collection_finish() -> None:
    """What was loaded by now stays: the collector need not look at it again, and a test that collects is quick."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=versions(), ids=lambda version: f"postgres{version or ''}")
def postgres_version(request: pytest.FixtureRequest) -> int:
    """Each PostgreSQL version that the tests run on."""
    version: int = request.param
    return version


EMPTY = """
do $$
declare
  t text;
begin
  perform pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid();
  set local session_replication_role = replica;  -- in any order, whatever refers to what
  for t in select tablename from pg_tables
            where schemaname = 'carrick'
              and tablename not in ('migration', 'transition', 'channel', 'turn') loop
    -- after a storm the dead rows would be read again and again
    if pg_relation_size(format('carrick.%I', t)) > 1000000 then
      execute format('truncate carrick.%I cascade', t);
    else
      execute format('delete from carrick.%I', t);
    end if;
  end loop;
  set local session_replication_role = origin;
  delete from carrick.channel where name <> 'outbox';
  delete from carrick.turn where channel <> 'outbox';
end $$;
create or replace function carrick.clock() returns timestamptz language sql volatile parallel safe
  as 'select clock_timestamp()';
"""
"""Brings a database back to how the migrations left it, much faster than making a new one."""

ANALYZE = "select 'analyze ' || string_agg('carrick.' || tablename, ', ') from pg_tables where schemaname = 'carrick'"


@cache
def used_again(version: int) -> str:
    """One database of this process that tests use one after the other; the server's end is its end."""
    return fresh_database(version)


_sweepers: dict[str, Sweeper] = {}


def sweeper(dsn: str) -> Sweeper:
    """The session that empties this database. It stays: what it has read about the tables is most of the work."""
    if dsn not in _sweepers or _sweepers[dsn].closed:
        _sweepers[dsn] = psycopg.connect(dsn, autocommit=True)
        atexit.register(_sweepers[dsn].close)
    return _sweepers[dsn]


def sweep(dsn: str) -> None:
    """Take everything out of a database that is used again."""
    try:
        sweeper(dsn).execute(EMPTY)
    except psycopg.OperationalError:  # a test has ended every session; this one is closed by now
        sweeper(dsn).execute(EMPTY)


def emptied(version: int) -> str:
    """The database that is used again, with the schema and nothing in it.

    The older server has just analysed its empty tables: statistics that lie must change nothing but speed.
    """
    dsn = used_again(version)
    sweep(dsn)
    if version != versions()[0]:
        for (analyze,) in sweeper(dsn).execute(ANALYZE).fetchall():
            sweeper(dsn).execute(analyze)
    return dsn


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """A command sets logging up for its process; that ends with the test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def postgres_dsn(postgres_version: int) -> str:
    """A PostgreSQL database with the schema and nothing in it. For tests that leave the functions as they are."""
    return emptied(postgres_version)


@pytest.fixture
def newest_postgres_dsn() -> Iterator[str]:
    """A database of its own on the newest PostgreSQL: the test may replace functions in it."""
    dsn = fresh_database(versions()[0])
    yield dsn
    drop_database(versions()[0], dsn)


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Where a fresh SQLite file may be."""
    return tmp_path / "outbox.db"
