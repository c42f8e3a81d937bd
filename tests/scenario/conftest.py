"""Databases with the views of other outboxes in them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from carrick.outbox.postgres.migrate import migrate
from tests.postgres_server import drop_database, fresh_database
from tests.scenario.queries import Connection


@pytest.fixture
def plain_url(postgres_version: int) -> Iterator[str]:
    """A database of its own, with the engine's schema only."""
    url = fresh_database(postgres_version)
    yield url
    drop_database(postgres_version, url)


@pytest.fixture
def compat_url(plain_url: str) -> str:
    """A database of its own, with public.outbox and public.sync_outbox."""
    migrate(plain_url, compat=True)
    return plain_url


@pytest.fixture
def db(compat_url: str) -> Iterator[Connection]:
    """A connection to that database in which every statement commits."""
    with psycopg.connect(compat_url, autocommit=True) as connection:
        yield connection
