"""The store contract on PostgreSQL, every supported version that the tests have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from carrick.outbox.outbox import Outbox
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, StoreContract
from carrick.testing.contract.caller import Connect
from carrick.testing.contract.claim import ClaimContract
from carrick.testing.contract.coalesce import CoalesceContract, DebounceContract
from carrick.testing.contract.expiry import ExpiryContract
from carrick.testing.contract.fresh import FreshContract
from carrick.testing.contract.gate import GateContract
from carrick.testing.contract.half_open import HalfOpenContract
from carrick.testing.contract.ordered import OrderedContract
from carrick.testing.contract.outcome import OutcomeContract
from tests.conftest import emptied
from tests.contract.at_rest import RestingStore
from tests.postgres_server import versions


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


class TestAtRest(
    ClaimContract,
    FreshContract,
    OrderedContract,
    CoalesceContract,
    DebounceContract,
    OutcomeContract,
    ExpiryContract,
    GateContract,
    HalfOpenContract,
):
    """The rules of claims by a relay that was just woken: most are about one entry, which is taken without a choice."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with closing(RestingStore(emptied(versions()[0]))) as store:
            yield store

    @pytest.fixture
    def clock(self, store: RestingStore) -> Clock:
        return PostgresClock(store._dsn)
