"""Puts in the transaction of an aiosqlite connection."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from carrick.errors import CarrickError, KeyReused, PayloadTooLarge, UnknownChannel
from tests.unit.outbox.adapters.shop import TOO_LONG, Committed, billing, in_sqlite, put, put_many, recover

AUTOCOMMIT: list[dict[str, Any]] = [{"isolation_level": None}]
if sys.version_info >= (3, 12):
    AUTOCOMMIT.append({"autocommit": True})


def test_an_entry_shares_the_fate_of_the_transaction(sqlite_file: Path) -> None:
    async def story(connection: aiosqlite.Connection) -> None:
        assert (await put(connection, "paid", key="k")).created
        await put_many(connection, billing("a"), billing("b", key="kb"))
        await connection.execute("insert into invoice values ('1')")
        assert in_sqlite(sqlite_file) == Committed([], [])
        await connection.commit()
        await connection.execute("insert into invoice values ('2')")
        await put(connection, "unpaid")
        await connection.rollback()

    _run(sqlite_file, story)
    assert in_sqlite(sqlite_file) == Committed(["1"], ["a", "b", "paid"])


def test_a_savepoint_that_rolls_back_takes_only_its_entries(sqlite_file: Path) -> None:
    async def story(connection: aiosqlite.Connection) -> None:
        await put(connection, "outer")
        await connection.execute("savepoint inner_one")
        await connection.execute("insert into invoice values ('inner')")
        await put(connection, "inner")
        await connection.execute("rollback to inner_one")
        await connection.commit()

    _run(sqlite_file, story)
    assert in_sqlite(sqlite_file) == Committed([], ["outer"])


@pytest.mark.parametrize("options", AUTOCOMMIT, ids=str)
def test_in_autocommit_mode_a_put_is_a_transaction_of_its_own(sqlite_file: Path, options: dict[str, Any]) -> None:
    async def story(connection: aiosqlite.Connection) -> None:
        await put(connection, "paid")
        assert in_sqlite(sqlite_file).entries == ["paid"]
        await connection.execute("begin")
        await put(connection, "gone")
        await connection.execute("rollback")

    _run(sqlite_file, story, **options)
    assert in_sqlite(sqlite_file) == Committed([], ["paid"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"key": "used"}, KeyReused), ({"channel": "nowhere"}, UnknownChannel), ({"payload": TOO_LONG}, PayloadTooLarge)],
)
def test_a_refused_entry_leaves_the_transaction_usable(
    sqlite_file: Path, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    async def story(connection: aiosqlite.Connection) -> None:
        await put(connection, "first", key="used")
        with pytest.raises(expected):
            await put(connection, "refused", **fields)
        with pytest.raises(expected):
            await put_many(connection, billing("fine"), billing("refused", **fields))
        assert await recover(connection) == (None, "IntegrityError")
        await put(connection, "second")
        await connection.commit()

    _run(sqlite_file, story)
    assert in_sqlite(sqlite_file) == Committed([], ["first", "second"])


def test_the_callers_row_factory_does_not_matter(sqlite_file: Path) -> None:
    async def story(connection: aiosqlite.Connection) -> None:
        connection.row_factory = sqlite3.Row
        assert (await put(connection, "paid", key="k")).created
        assert not (await put(connection, "paid", key="k")).created
        await connection.commit()

    _run(sqlite_file, story)
    assert in_sqlite(sqlite_file).entries == ["paid"]


def test_puts_of_two_tasks_over_one_connection_do_not_mix(sqlite_file: Path) -> None:
    async def story(connection: aiosqlite.Connection) -> None:
        await asyncio.gather(*[put_many(connection, billing(f"{n}a"), billing(f"{n}b", key=f"k{n}")) for n in range(5)])
        await connection.commit()

    _run(sqlite_file, story)
    assert in_sqlite(sqlite_file).entries == sorted(f"{n}{half}" for n in range(5) for half in "ab")


def _run(path: Path, story: Callable[[aiosqlite.Connection], Awaitable[None]], **options: Any) -> None:
    async def connected() -> None:
        async with aiosqlite.connect(path, **options) as connection:
            await story(connection)

    asyncio.run(connected())
