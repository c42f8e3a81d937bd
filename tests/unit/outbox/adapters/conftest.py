"""Databases with the schema, the channel `billing` and the caller's own table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache, cached_property
from pathlib import Path

import psycopg
import pytest

from tests.conftest import sweep, sweeper
from tests.postgres_server import fresh_database, versions
from tests.sqlite_file import engine_file
from tests.unit.outbox.adapters.shop import CREATE_INVOICE, Committed, in_postgres, in_sqlite


@cache
def with_invoices() -> str:
    """One database of this process that tests use one after the other; the server's end is its end."""
    url = fresh_database(versions()[0])
    with psycopg.connect(url) as connection:
        connection.execute(CREATE_INVOICE)
    return url


class Databases:
    """A database of each kind with nothing in it, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def postgres_url(self) -> str:
        url = with_invoices()
        sweep(url)
        sweeper(url).execute("delete from invoice")
        sweeper(url).execute("select carrick.declare_channel('billing', '{\"max_payload_bytes\": 1000}')")
        return url

    @cached_property
    def sqlite_file(self) -> Path:
        path = self._folder / "app.db"
        engine_file(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(CREATE_INVOICE)
            connection.execute("insert into carrick_channel (name, max_payload_bytes) values ('billing', 1000)")
        return path

    def committed(self, driver: str) -> Committed:
        """What another connection sees in the database of that driver."""
        return in_sqlite(self.sqlite_file) if driver.startswith("sqlite") else in_postgres(self.postgres_url)


@pytest.fixture
def databases(tmp_path: Path) -> Databases:
    return Databases(tmp_path)


@pytest.fixture
def postgres_url(databases: Databases) -> str:
    return databases.postgres_url


@pytest.fixture
def sqlite_file(databases: Databases) -> Path:
    return databases.sqlite_file
