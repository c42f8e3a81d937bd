"""Databases with the schema, the channel `billing` and the caller's own table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path

import psycopg
import pytest

from carrick.outbox.sqlite.migrate import migrate
from tests.postgres_server import drop_database, fresh_database, versions
from tests.unit.outbox.adapters.shop import CREATE_INVOICE, Committed, in_postgres, in_sqlite


class Databases:
    """One fresh database of each kind, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._version = versions()[0]

    @cached_property
    def postgres_url(self) -> str:
        url = fresh_database(self._version)
        with psycopg.connect(url) as connection:
            connection.execute(CREATE_INVOICE)
            connection.execute("select carrick.declare_channel('billing', '{\"max_payload_bytes\": 1000}')")
        return url

    @cached_property
    def sqlite_file(self) -> Path:
        path = self._folder / "app.db"
        migrate(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(CREATE_INVOICE)
            connection.execute("insert into carrick_channel (name, max_payload_bytes) values ('billing', 1000)")
        return path

    def committed(self, driver: str) -> Committed:
        """What another connection sees in the database of that driver."""
        return in_sqlite(self.sqlite_file) if driver.startswith("sqlite") else in_postgres(self.postgres_url)

    def drop(self) -> None:
        if "postgres_url" in self.__dict__:
            drop_database(self._version, self.postgres_url)


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Databases]:
    databases = Databases(tmp_path)
    yield databases
    databases.drop()


@pytest.fixture
def postgres_url(databases: Databases) -> str:
    return databases.postgres_url


@pytest.fixture
def sqlite_file(databases: Databases) -> Path:
    return databases.sqlite_file
