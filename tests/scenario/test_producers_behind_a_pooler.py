"""Producers behind a pooler in transaction mode: their own connections, as their drivers make them, put many times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
import django  # type: ignore[import-untyped]
import psycopg
import pytest
from django.conf import settings  # type: ignore[import-untyped]
from django.db import connections, transaction  # type: ignore[import-untyped]
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from carrick import Outbox
from tests.pooler import pooled, pooler_names
from tests.postgres_server import drop_database, fresh_database, versions

TIMES = 8
"""More often than psycopg executes a statement before it prepares it, and than there are server connections."""
ENTRIES = TIMES * 4

if not settings.configured:
    settings.configure(USE_TZ=True)
    django.setup()


class Shop(NamedTuple):
    """A database as producers reach it, and its outbox."""

    url: str
    outbox: Outbox


@pytest.fixture(scope="module", params=pooler_names())
def behind(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The URLs of a database: behind a pooler, and past it."""
    past = fresh_database(versions()[0])
    with pooled(request.param, past) as url:
        yield url, past
    drop_database(versions()[0], past)


@pytest.fixture
def shop(behind: tuple[str, str]) -> Iterator[Shop]:
    """Afterwards everything that was put must be there."""
    url, past = behind
    with Outbox.connect(url) as outbox, psycopg.connect(past, autocommit=True) as connection:
        outbox.channel("things")
        connection.execute("delete from carrick.record")
        yield Shop(url, outbox)
        assert connection.execute("select count(*) from carrick.entry").fetchone() == (ENTRIES,)


def entry(**fields: Any) -> dict[str, Any]:
    return {"channel": "things", "event_type": "thing.happened", "payload": 1, **fields}


def puts(outbox: Outbox, connection: Any) -> list[Any]:
    """What a producer calls: alone, together, with a key."""
    return [
        outbox.put(connection, **entry()),
        outbox.put_many(connection, [entry(), entry(key=str(uuid4()))]),
        outbox.put(connection, **entry(key=str(uuid4()))),
    ]


async def puts_async(outbox: Outbox, connection: Any) -> None:
    await outbox.put(connection, **entry())
    await outbox.put_many(connection, [entry(), entry(key=str(uuid4()))])
    await outbox.put(connection, **entry(key=str(uuid4())))


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_psycopg_connection_puts_in_every_transaction(shop: Shop, autocommit: bool) -> None:
    with psycopg.connect(shop.url, autocommit=autocommit) as connection:
        for _ in range(TIMES):
            puts(shop.outbox, connection)
            connection.commit()


@pytest.mark.parametrize("autocommit", [False, True])
def test_an_async_psycopg_connection_puts_in_every_transaction(shop: Shop, autocommit: bool) -> None:
    async def story() -> None:
        async with await psycopg.AsyncConnection.connect(shop.url, autocommit=autocommit) as connection:
            for _ in range(TIMES):
                await puts_async(shop.outbox, connection)
                await connection.commit()

    asyncio.run(story())


def test_an_asyncpg_connection_puts_in_every_transaction(shop: Shop) -> None:
    async def story() -> None:
        async with asyncpg.create_pool(shop.url, min_size=1, max_size=1) as pool:
            for _ in range(TIMES // 2):
                async with pool.acquire() as connection:
                    await puts_async(shop.outbox, connection)
                    async with connection.transaction():
                        await puts_async(shop.outbox, connection)

    asyncio.run(story())


def test_a_sqlalchemy_connection_puts_in_every_transaction(shop: Shop) -> None:
    engine = create_engine(shop.url.replace("postgresql:", "postgresql+psycopg:"))
    for _ in range(TIMES):
        with engine.begin() as connection:
            puts(shop.outbox, connection)
    engine.dispose()


@pytest.mark.parametrize(
    ("driver", "options"),
    [
        ("psycopg", {}),
        ("asyncpg", {"prepared_statement_cache_size": 0, "prepared_statement_name_func": lambda: ""}),
    ],
)
def test_an_async_sqlalchemy_connection_puts_in_every_transaction(
    shop: Shop, driver: str, options: dict[str, Any]
) -> None:
    url = shop.url.partition("?")[0].replace("postgresql:", f"postgresql+{driver}:")

    async def story() -> None:
        engine = create_async_engine(url, connect_args=options)
        for _ in range(TIMES):
            async with engine.begin() as connection:
                await puts_async(shop.outbox, connection)
        await engine.dispose()

    asyncio.run(story())


@pytest.mark.parametrize(
    "options", [{}, {"prepare_threshold": 5}, {"server_side_binding": True, "prepare_threshold": 5}]
)
def test_a_django_connection_puts_in_every_transaction(shop: Shop, options: dict[str, Any]) -> None:
    given = conninfo_to_dict(shop.url)
    names = {"NAME": "dbname", "USER": "user", "HOST": "host", "PORT": "port"}
    database = {name: given[there] for name, there in names.items()}
    engine = "django.db.backends.postgresql"
    connections.settings = connections.configure_settings(
        {"default": {"ENGINE": engine, **database, "OPTIONS": {"sslmode": "disable", **options}}}
    )
    connection = connections["default"] = connections.create_connection("default")
    for _ in range(TIMES):
        with transaction.atomic():
            puts(shop.outbox, connection)
    connection.close()
