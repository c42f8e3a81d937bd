"""Puts in the transaction of a SQLAlchemy connection or session, over each driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, make_url, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from carrick.errors import CarrickError, KeyReused, PayloadTooLarge, UnknownChannel, UnsupportedConnection
from carrick.outbox.adapters import adapter_for
from carrick.outbox.statement import Statement, Steps
from tests.unit.outbox.adapters.conftest import Databases
from tests.unit.outbox.adapters.shop import TOO_LONG, Committed, billing, put, put_many, recover, run

INVOICE = text("insert into invoice (id) values (:id)")

DRIVERS = ["postgresql+psycopg", "sqlite+pysqlite"]
ASYNC_DRIVERS = ["postgresql+psycopg", "postgresql+asyncpg", "sqlite+aiosqlite"]
KINDS = ["connection", "session", "scoped_session"]

REFUSED = [
    ({"key": "used"}, KeyReused),
    ({"channel": "nowhere"}, UnknownChannel),
    ({"payload": TOO_LONG}, PayloadTooLarge),
]

every_driver = pytest.mark.parametrize("driver", DRIVERS)
every_async_driver = pytest.mark.parametrize("driver", ASYNC_DRIVERS)
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@every_driver
def test_an_entry_shares_the_fate_of_the_transaction(databases: Databases, driver: str, kind: str) -> None:
    with _opened(databases, driver, kind) as target:
        target.execute(INVOICE, {"id": "1"})
        assert put(target, "paid", key="k").created
        assert not put(target, "paid", key="k").created
        assert databases.committed(driver) == Committed([], [])
        target.commit()
        target.execute(INVOICE, {"id": "2"})
        put(target, "unpaid")
        target.rollback()
    assert databases.committed(driver) == Committed(["1"], ["paid"])


@every_kind
@every_driver
def test_a_put_that_comes_first_begins_the_transaction(databases: Databases, driver: str, kind: str) -> None:
    with _opened(databases, driver, kind) as target:
        put(target, "gone")
        put_many(target, billing("gone too", key="g"), billing("gone as well"))
        target.execute(INVOICE, {"id": "gone"})
        target.rollback()
        put(target, "paid")
        target.execute(INVOICE, {"id": "1"})
        target.commit()
    assert databases.committed(driver) == Committed(["1"], ["paid"])


@every_kind
@every_driver
def test_a_savepoint_that_rolls_back_takes_only_its_entries(databases: Databases, driver: str, kind: str) -> None:
    with _opened(databases, driver, kind) as target:
        target.execute(INVOICE, {"id": "outer"})
        put(target, "outer")
        savepoint = target.begin_nested()
        target.execute(INVOICE, {"id": "inner"})
        put(target, "inner")
        put_many(target, billing("inner a"), billing("inner b", key="k"))
        savepoint.rollback()
        with target.begin_nested():
            put(target, "kept")
        target.commit()
    assert databases.committed(driver) == Committed(["outer"], ["kept", "outer"])


@pytest.mark.parametrize(("fields", "expected"), REFUSED)
@every_driver
def test_a_refused_entry_leaves_the_transaction_usable(
    databases: Databases, driver: str, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    with _opened(databases, driver, "session") as session:
        session.execute(INVOICE, {"id": "1"})
        put(session, "first", key="used")
        with pytest.raises(expected):
            put(session, "refused", **fields)
        with pytest.raises(expected):
            put_many(session, billing("fine"), billing("refused", **fields))
        put(session, "second")
        session.commit()
    assert databases.committed(driver) == Committed(["1"], ["first", "second"])


@every_driver
def test_a_drivers_error_is_raised_inside_the_operation(databases: Databases, driver: str) -> None:
    expected = (None, "IntegrityError") if driver.startswith("sqlite") else ("23505", "UniqueViolation")
    with _opened(databases, driver, "connection") as connection:
        put(connection, "before")
        assert recover(connection) == expected
        put(connection, "after")
        connection.commit()
    assert databases.committed(driver) == Committed([], ["after", "before"])


@every_driver
def test_in_autocommit_mode_a_put_is_a_transaction_of_its_own(databases: Databases, driver: str) -> None:
    engine = create_engine(_url(databases, driver), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        put(connection, "paid")
        assert databases.committed(driver).entries == ["paid"]
        with pytest.raises(UnknownChannel):
            run(connection, _writes_then_fails())
        put_many(connection, billing("a"), billing("b", key="k"))
        assert databases.committed(driver) == Committed([], ["a", "b", "paid"])


def test_sqlite_with_begin_sent_by_an_event_hook_is_joined(databases: Databases) -> None:
    engine = create_engine(_url(databases, "sqlite+pysqlite"), poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def leave_begin_to_us(dbapi_connection: Any, _: object) -> None:
        dbapi_connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("begin")

    with engine.connect() as connection:
        put(connection, "gone")
        connection.rollback()
        with connection.begin():
            with connection.begin_nested():
                put(connection, "paid")
            connection.execute(INVOICE, {"id": "1"})
    assert databases.committed("sqlite") == Committed(["1"], ["paid"])


@every_driver
def test_a_session_is_not_flushed(databases: Databases, driver: str) -> None:
    flushed: list[object] = []
    with _opened(databases, driver, "session") as session:
        event.listen(session, "before_flush", lambda *given: flushed.append(given))
        put(session, "paid")
        assert flushed == []


def test_a_session_with_several_binds_is_refused_with_what_to_pass(databases: Databases) -> None:
    with Session() as session, pytest.raises(UnsupportedConnection, match=r"session\.connection"):
        _ = adapter_for(session).dialect


def test_another_database_is_refused_by_its_name() -> None:
    class Elsewhere(Connection):
        def __init__(self) -> None:
            from sqlalchemy.dialects.mysql.base import MySQLDialect

            self.dialect = MySQLDialect()

    with pytest.raises(UnsupportedConnection, match="mysql"):
        _ = adapter_for(Elsewhere()).dialect


@every_kind
@every_async_driver
def test_an_async_entry_shares_the_fate_of_the_transaction(databases: Databases, driver: str, kind: str) -> None:
    async def story(target: Any) -> None:
        assert (await put(target, "paid", key="k")).created
        assert not (await put(target, "paid", key="k")).created
        await target.execute(INVOICE, {"id": "1"})
        assert databases.committed(driver) == Committed([], [])
        await target.commit()
        await target.execute(INVOICE, {"id": "2"})
        await put(target, "unpaid")
        await put_many(target, billing("a"), billing("b", key="kb"))
        await target.rollback()

    _run(databases, driver, kind, story)
    assert databases.committed(driver) == Committed(["1"], ["paid"])


@every_kind
@every_async_driver
def test_an_async_savepoint_that_rolls_back_takes_only_its_entries(
    databases: Databases, driver: str, kind: str
) -> None:
    async def story(target: Any) -> None:
        await target.execute(INVOICE, {"id": "outer"})
        await put_many(target, billing("outer a", priority=2), billing("outer b", key="k", delay=1.5))
        savepoint = await target.begin_nested()
        await target.execute(INVOICE, {"id": "inner"})
        await put(target, "inner")
        await savepoint.rollback()
        await target.commit()

    _run(databases, driver, kind, story)
    assert databases.committed(driver) == Committed(["outer"], ["outer a", "outer b"])


@pytest.mark.parametrize(("fields", "expected"), REFUSED)
@every_async_driver
def test_a_refused_async_entry_leaves_the_transaction_usable(
    databases: Databases, driver: str, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    async def story(session: Any) -> None:
        await put(session, "first", key="used")
        with pytest.raises(expected):
            await put(session, "refused", **fields)
        with pytest.raises(expected):
            await put_many(session, billing("fine"), billing("refused", **fields))
        state, _ = await recover(session)
        assert state == (None if driver.startswith("sqlite") else "23505")
        await put(session, "second")
        await session.commit()

    _run(databases, driver, "session", story)
    assert databases.committed(driver) == Committed([], ["first", "second"])


@every_async_driver
def test_an_async_put_in_autocommit_mode_is_a_transaction_of_its_own(databases: Databases, driver: str) -> None:
    async def story(connection: Any) -> None:
        await put(connection, "paid")
        assert databases.committed(driver).entries == ["paid"]
        with pytest.raises(UnknownChannel):
            await run(connection, _writes_then_fails())

    _run(databases, driver, "connection", story, isolation_level="AUTOCOMMIT")
    assert databases.committed(driver) == Committed([], ["paid"])


def _writes_then_fails() -> Steps[None]:
    yield Statement("insert into invoice (id) values ('half')", {})
    raise UnknownChannel("nowhere", [])


def _url(databases: Databases, driver: str) -> Any:
    if driver.startswith("sqlite"):
        return make_url(f"{driver}:///{databases.sqlite_file}")
    return make_url(databases.postgres_url).set(drivername=driver)


@contextmanager
def _opened(databases: Databases, driver: str, kind: str) -> Iterator[Any]:
    engine = create_engine(_url(databases, driver), poolclass=NullPool)
    match kind:
        case "connection":
            with engine.connect() as connection:
                yield connection
        case "session":
            with Session(engine) as session:
                yield session
        case _:
            registry = scoped_session(sessionmaker(engine))
            yield registry
            registry.remove()


@asynccontextmanager
async def _opened_async(databases: Databases, driver: str, kind: str, **options: Any) -> AsyncIterator[Any]:
    engine = create_async_engine(_url(databases, driver), poolclass=NullPool, **options)
    match kind:
        case "connection":
            async with engine.connect() as connection:
                yield connection
        case "session":
            async with AsyncSession(engine) as session:
                yield session
        case _:
            registry = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
            yield registry
            await registry.remove()


def _run(databases: Databases, driver: str, kind: str, story: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    async def opened() -> None:
        async with _opened_async(databases, driver, kind, **options) as target:
            await story(target)

    asyncio.run(opened())
