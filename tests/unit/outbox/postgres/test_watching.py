"""A watch hears what puts notify, on a connection of its own."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from carrick.errors import StoreUnavailable
from carrick.outbox.postgres.watching import PostgresWatch


def ask(dsn: str, *statements: str) -> None:
    """In one transaction, on another connection."""
    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement.encode())


END_THE_OTHERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid()"
)


def test_notifications_that_come_together_are_heard_one_by_one(newest_postgres_dsn: str) -> None:
    async def main() -> list[str | None]:
        watch = PostgresWatch(newest_postgres_dsn)
        assert await watch.next() is None  # whatever was missed before it listened
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'", "notify carrick_put, 'b'")
        heard = [await waiting, await watch.next()]
        await watch.close()
        return heard

    assert asyncio.run(main()) == ["a", "b"]


def test_a_wait_that_was_cancelled_loses_no_notification(newest_postgres_dsn: str) -> None:
    async def main() -> str | None:
        watch = PostgresWatch(newest_postgres_dsn)
        await watch.next()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'")
        heard = await watch.next()
        await watch.close()
        return heard

    assert asyncio.run(main()) == "a"


def test_a_lost_connection_is_told_and_the_next_wait_listens_anew(newest_postgres_dsn: str) -> None:
    async def main() -> str | None:
        watch = PostgresWatch(newest_postgres_dsn)
        await watch.next()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(ask, newest_postgres_dsn, END_THE_OTHERS)
        with pytest.raises(StoreUnavailable):
            await waiting
        assert await watch.next() is None
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'")
        heard = await watch.next()
        await watch.close()
        return heard

    assert asyncio.run(main()) == "a"
