"""Puts in the transaction of a psycopg connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row, namedtuple_row

from carrick.errors import CarrickError, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.adapters import adapter_for
from carrick.outbox.statement import Statement, Steps
from tests.unit.outbox.adapters.shop import TOO_LONG, Committed, billing, in_postgres, put, put_many, recover, run

Async = psycopg.AsyncConnection[Any]

REFUSED = [
    ({"key": "used"}, KeyReused),
    ({"channel": "nowhere"}, UnknownChannel),
    ({"payload": TOO_LONG}, PayloadTooLarge),
]


def test_an_entry_is_there_when_the_transaction_commits(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("insert into invoice values ('1')")
        answer = put(connection, "paid", key="inv-1")
        assert in_postgres(postgres_url) == Committed([], [])
    assert answer.created
    assert in_postgres(postgres_url) == Committed(["1"], ["paid"])


def test_no_entry_is_there_when_the_transaction_rolls_back(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("insert into invoice values ('1')")
        put(connection, "paid")
        connection.rollback()
    assert in_postgres(postgres_url) == Committed([], [])


def test_a_nested_transaction_that_rolls_back_takes_only_its_entries(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection, connection.transaction():
        put(connection, "outer")
        with connection.transaction(force_rollback=True):
            connection.execute("insert into invoice values ('inner')")
            put(connection, "inner")
        connection.execute("insert into invoice values ('outer')")
    assert in_postgres(postgres_url) == Committed(["outer"], ["outer"])


@pytest.mark.parametrize("commit", [True, False])
def test_many_entries_share_the_fate_of_the_transaction(postgres_url: str, commit: bool) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert adapter_for(connection).can_bulk
        connection.execute("insert into invoice values ('1')")
        answers = put_many(connection, billing("a"), billing("b", tenant_id="t\t\\"), billing("c", priority=3))
        connection.commit() if commit else connection.rollback()
    assert len(answers) == 3
    assert in_postgres(postgres_url) == (Committed(["1"], ["a", "b", "c"]) if commit else Committed([], []))


@pytest.mark.parametrize(("fields", "expected"), REFUSED)
def test_a_refused_entry_leaves_the_transaction_usable(
    postgres_url: str, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("insert into invoice values ('1')")
        put(connection, "first", key="used")
        with pytest.raises(expected):
            put(connection, "refused", **fields)
        with pytest.raises(expected):
            put_many(connection, billing("fine"), billing("refused", **fields))
        put(connection, "second")
    assert in_postgres(postgres_url) == Committed(["1"], ["first", "second"])


@pytest.mark.parametrize("row_factory", [dict_row, namedtuple_row])
@pytest.mark.parametrize("cursor_factory", [psycopg.ClientCursor, psycopg.RawCursor, psycopg.Cursor])
def test_the_callers_row_and_cursor_factories_do_not_matter(
    postgres_url: str, row_factory: Any, cursor_factory: Any
) -> None:
    with psycopg.connect(postgres_url, row_factory=row_factory, cursor_factory=cursor_factory) as connection:
        assert put(connection, "one", key="k").created
        assert not put(connection, "one", key="k").created
        put_many(connection, billing("two"), billing("three", key="k3"))
        assert connection.row_factory is row_factory
    assert in_postgres(postgres_url).entries == ["one", "three", "two"]


def test_in_autocommit_mode_a_put_is_a_transaction_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        put(connection, "paid")
        assert in_postgres(postgres_url).entries == ["paid"]
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_in_autocommit_mode_a_failed_operation_leaves_nothing_and_no_transaction(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            run(connection, _writes_then_fails())
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert in_postgres(postgres_url) == Committed([], [])


def test_in_autocommit_mode_a_put_joins_the_transaction_block(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        with connection.transaction(force_rollback=True):
            put(connection, "gone")
            put_many(connection, billing("gone too"))
        with connection.transaction():
            connection.execute("insert into invoice values ('1')")
            put(connection, "paid")
    assert in_postgres(postgres_url) == Committed(["1"], ["paid"])


def test_in_pipeline_mode_entries_are_put_without_copy(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection, connection.pipeline():
        connection.execute("insert into invoice values ('1')")
        assert not adapter_for(connection).can_bulk
        put_many(connection, billing("a"), billing("b"))
        put(connection, "c")
        connection.commit()
    assert in_postgres(postgres_url) == Committed(["1"], ["a", "b", "c"])


def test_a_drivers_error_is_raised_inside_the_operation(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert recover(connection) == ("23505", "UniqueViolation")
        put(connection, "after")
    assert in_postgres(postgres_url) == Committed([], ["after"])


def test_an_async_entry_shares_the_fate_of_its_transaction(postgres_url: str) -> None:
    async def story(connection: Async) -> None:
        await connection.execute("insert into invoice values ('1')")
        assert (await put(connection, "paid", key="k")).created
        await connection.commit()
        await connection.execute("insert into invoice values ('2')")
        await put(connection, "unpaid")
        await connection.rollback()

    asyncio.run(_with(postgres_url, story))
    assert in_postgres(postgres_url) == Committed(["1"], ["paid"])


def test_async_entries_by_copy_share_the_fate_of_nested_transactions(postgres_url: str) -> None:
    async def story(connection: Async) -> None:
        async with connection.transaction():
            await put_many(connection, billing("a"), billing("b"))
            async with connection.transaction(force_rollback=True):
                await connection.execute("insert into invoice values ('inner')")
                await put_many(connection, billing("c"), billing("d"))
            await connection.execute("insert into invoice values ('outer')")

    asyncio.run(_with(postgres_url, story))
    assert in_postgres(postgres_url) == Committed(["outer"], ["a", "b"])


@pytest.mark.parametrize(("fields", "expected"), REFUSED)
def test_a_refused_async_entry_leaves_the_transaction_usable(
    postgres_url: str, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    async def story(connection: Async) -> None:
        await put(connection, "first", key="used")
        with pytest.raises(expected):
            await put(connection, "refused", **fields)
        with pytest.raises(expected):
            await put_many(connection, billing("fine"), billing("refused", **fields))
        assert await recover(connection) == ("23505", "UniqueViolation")
        await put(connection, "second")
        await connection.commit()

    asyncio.run(_with(postgres_url, story, row_factory=dict_row))
    assert in_postgres(postgres_url) == Committed([], ["first", "second"])


def test_an_async_put_in_autocommit_mode_is_its_own_transaction_unless_in_a_block(postgres_url: str) -> None:
    async def story(connection: Async) -> None:
        await put(connection, "alone")
        assert in_postgres(postgres_url).entries == ["alone"]
        async with connection.transaction(force_rollback=True):
            await put(connection, "gone")
        with pytest.raises(psycopg.errors.DivisionByZero):
            await run(connection, _writes_then_fails())

    asyncio.run(_with(postgres_url, story, autocommit=True))
    assert in_postgres(postgres_url) == Committed([], ["alone"])


async def _with(url: str, story: Callable[[Async], Awaitable[None]], **options: Any) -> None:
    connection = await psycopg.AsyncConnection.connect(url, **options)
    async with connection:
        await story(connection)


def _writes_then_fails() -> Steps[None]:
    yield Statement("insert into invoice values ('half')", {})
    yield Statement("select 1 / %(zero)s::int", {"zero": 0})


def _echo(text: bytes) -> Steps[str]:
    rows = yield Statement("select (%(text)s::json)::text", {"text": text})
    return str(rows[0][0])
