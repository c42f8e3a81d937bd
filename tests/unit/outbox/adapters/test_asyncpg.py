"""Puts in the transaction of an asyncpg connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest

from carrick.errors import CarrickError, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.statement import Statement, Steps
from tests.unit.outbox.adapters.shop import TOO_LONG, Committed, billing, in_postgres, put, put_many, recover, run

Story = Callable[[Any], Awaitable[None]]


def test_an_entry_is_there_when_the_transaction_commits(postgres_url: str) -> None:
    async def story(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute("insert into invoice values ('1')")
            answer = await put(connection, "paid", key="inv-1")
            assert answer.created
            assert isinstance(answer.id, UUID)
            assert in_postgres(postgres_url) == Committed([], [])

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed(["1"], ["paid"])


def test_no_entry_is_there_when_the_transaction_rolls_back(postgres_url: str) -> None:
    async def story(connection: Any) -> None:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("insert into invoice values ('1')")
        await put(connection, "paid")
        await put_many(connection, billing("a"), billing("b"))
        await transaction.rollback()

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed([], [])


def test_a_nested_transaction_that_rolls_back_takes_only_its_entries(postgres_url: str) -> None:
    async def story(connection: Any) -> None:
        async with connection.transaction():
            await put(connection, "outer")
            inner = connection.transaction()
            await inner.start()
            await connection.execute("insert into invoice values ('inner')")
            await put_many(connection, billing("inner"), billing("inner too"))
            await inner.rollback()
            await connection.execute("insert into invoice values ('outer')")

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed(["outer"], ["outer"])


def test_outside_a_transaction_a_put_is_one_of_its_own(postgres_url: str) -> None:
    async def story(connection: Any) -> None:
        await put(connection, "paid")
        assert in_postgres(postgres_url).entries == ["paid"]
        with pytest.raises(asyncpg.DivisionByZeroError):
            await run(connection, _writes_then_fails())
        assert not connection.is_in_transaction()

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed([], ["paid"])


def test_a_connection_from_a_pool_is_a_connection(postgres_url: str) -> None:
    async def story() -> None:
        async with (
            asyncpg.create_pool(postgres_url, min_size=1, max_size=1) as pool,
            pool.acquire() as connection,
            connection.transaction(),
        ):
            await connection.execute("insert into invoice values ('1')")
            await put(connection, "paid")
            await put_many(connection, billing("a"), billing("b"))

    asyncio.run(story())
    assert in_postgres(postgres_url) == Committed(["1"], ["a", "b", "paid"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"key": "used"}, KeyReused), ({"channel": "nowhere"}, UnknownChannel), ({"payload": TOO_LONG}, PayloadTooLarge)],
)
def test_a_refused_entry_leaves_the_transaction_usable(
    postgres_url: str, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    async def story(connection: Any) -> None:
        async with connection.transaction():
            await put(connection, "first", key="used")
            with pytest.raises(expected):
                await put(connection, "refused", **fields)
            with pytest.raises(expected):
                await put_many(connection, billing("fine"), billing("refused", **fields))
            await put(connection, "second")

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed([], ["first", "second"])


def test_a_drivers_error_is_raised_inside_the_operation(postgres_url: str) -> None:
    async def story(connection: Any) -> None:
        async with connection.transaction():
            assert await recover(connection) == ("23505", "UniqueViolationError")
            await put(connection, "after")

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed([], ["after"])


@pytest.mark.parametrize("many", [False, True])
def test_every_field_arrives_as_given_though_the_caller_has_codecs_for_its_types(postgres_url: str, many: bool) -> None:
    occurred = datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC)
    fields: dict[str, Any] = {
        "payload": b'{"a":  "tab\\t and \\u0000 and \xc3\xa9 \\\\N"}',
        "headers": {"h": [1, "x"]},
        "priority": -5,
        "occurred_at": occurred,
        "delay": timedelta(seconds=1.5),
        "max_wait": 60,
        "tenant_id": "t\t\n\r\\",
    }

    async def story(connection: Any) -> None:
        for name in ("json", "jsonb"):
            await connection.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        async with connection.transaction():
            if many:
                await put_many(connection, billing("all", **fields), billing("plain"))
            else:
                await put(connection, "all", **fields)

    _run(postgres_url, story)
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute(
            "select payload::text, headers, priority, occurred_at, delay_seconds, max_wait_seconds, tenant_id"
            " from carrick.record where event_type = 'all'"
        ).fetchone()
    assert row == (fields["payload"].decode(), {"h": [1, "x"]}, -5, occurred, 1.5, 60.0, "t\t\n\r\\")


def test_an_own_record_class_of_the_caller_does_not_matter(postgres_url: str) -> None:
    class Upside(asyncpg.Record):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return reversed(list(super().__iter__()))

    async def story() -> None:
        connection = await asyncpg.connect(postgres_url, record_class=Upside)
        try:
            assert (await put(connection, "paid")).created
        finally:
            await connection.close()

    asyncio.run(story())
    assert in_postgres(postgres_url).entries == ["paid"]


def test_a_cancelled_put_leaves_no_transaction_behind(postgres_url: str) -> None:
    async def story(connection: Any) -> None:
        putting = asyncio.create_task(run(connection, _writes_then_hangs()))
        await _until_it_hangs(postgres_url)
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        assert not connection.is_in_transaction()
        await put(connection, "after")

    _run(postgres_url, story)
    assert in_postgres(postgres_url) == Committed([], ["after"])


def _run(url: str, story: Story) -> None:
    async def connected() -> None:
        connection = await asyncpg.connect(url)
        try:
            await story(connection)
        finally:
            await connection.close()

    asyncio.run(connected())


async def _until_it_hangs(url: str) -> None:
    watcher = await asyncpg.connect(url)
    try:
        while not await watcher.fetchval("select count(*) from pg_stat_activity where wait_event = 'PgSleep'"):
            """Asking again is the wait."""
    finally:
        await watcher.close()


def _writes_then_fails() -> Steps[None]:
    yield Statement("insert into invoice values ('half')", {})
    yield Statement("select 1 / %(zero)s::int", {"zero": 0})


def _writes_then_hangs() -> Steps[None]:
    yield Statement("insert into invoice values ('half')", {})
    yield Statement("select pg_sleep(%(seconds)s::double precision)", {"seconds": 60})
