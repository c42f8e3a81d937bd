"""The contract of contacts on both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from carrick.contacts.contacts import Contacts, open_contact_store
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.testing.contact_contract import ContactContract
from carrick.testing.contract.caller import Connect
from tests.sqlite_file import whole_file


class TestOnSqlite(ContactContract):
    """Every rule on SQLite."""

    @pytest.fixture
    def url(self, sqlite_path: Path) -> str:
        url = f"sqlite:///{sqlite_path}"
        whole_file(sqlite_path)
        return url

    @pytest.fixture
    def store(self, url: str, sqlite_path: Path) -> Iterator[Store]:
        store = SqliteStore(sqlite_path)
        yield store
        store.close()

    @pytest.fixture
    def contacts(self, url: str) -> Iterator[Contacts]:
        with Contacts(open_contact_store(url), dialect="sqlite") as contacts:
            yield contacts

    @pytest.fixture
    def connect(self, url: str, sqlite_path: Path) -> Connect:
        return lambda: sqlite3.connect(sqlite_path)


class TestOnPostgres(ContactContract):
    """Every rule on PostgreSQL."""

    @pytest.fixture
    def store(self, postgres_dsn: str) -> Iterator[Store]:
        store = PostgresStore(postgres_dsn)
        yield store
        store.close()

    @pytest.fixture
    def contacts(self, postgres_dsn: str) -> Iterator[Contacts]:
        with Contacts(open_contact_store(postgres_dsn), dialect="postgresql") as contacts:
            yield contacts

    @pytest.fixture
    def connect(self, postgres_dsn: str) -> Connect:
        return lambda: psycopg.connect(postgres_dsn)
