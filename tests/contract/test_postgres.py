"""The store contract on PostgreSQL, every supported version that the tests have."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from carrick.outbox.outbox import Outbox
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, StoreContract
from carrick.testing.contract.caller import Connect


class TestPostgres(StoreContract):
    """Every guarantee on PostgreSQL."""

    @pytest.fixture
    def store(self, postgres_dsn: str) -> Iterator[Store]:
        store = PostgresStore(postgres_dsn)
        yield store
        store.close()

    @pytest.fixture
    def clock(self, postgres_dsn: str) -> Clock:
        return PostgresClock(postgres_dsn)

    @pytest.fixture
    def outbox(self, store: Store) -> Outbox:
        return Outbox(store, dialect="postgresql")

    @pytest.fixture
    def connect(self, postgres_dsn: str) -> Connect:
        return lambda: psycopg.connect(postgres_dsn)
