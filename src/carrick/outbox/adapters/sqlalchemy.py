"""SQLAlchemy 2.0 and 2.1: connections and sessions, sync and async, over whichever driver they use."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, TypeVar

from sqlalchemy import Connection, Dialect, TextClause, text
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from carrick.errors import UnsupportedConnection
from carrick.outbox.adapters import adapter
from carrick.outbox.adapters.adapter import drive, statement_only
from carrick.outbox.adapters.placeholders import colon_binds, lite_colon_binds
from carrick.outbox.adapters.sqlite_transaction import in_sqlite_transaction
from carrick.outbox.adapters.transaction import in_postgres_transaction, unprepared
from carrick.outbox.statement import Row, Step, Steps

T = TypeVar("T")


class SqlalchemyAdapter:
    """A Connection or a Session. Flushing a session is the caller's business."""

    is_async: Final[Literal[False]] = False
    can_bulk: Final[Literal[False]] = False

    def __init__(self, target: Connection | Session | scoped_session[Any]) -> None:
        self._target: Connection | Session = target() if isinstance(target, scoped_session) else target

    @property
    def dialect(self) -> adapter.Dialect:
        """The database behind the connection, or behind the session's one bind."""
        return _known(_dialect_of(self._target))

    def run(self, steps: Steps[T]) -> T:
        """Run the operation in the transaction of the connection or session, begun as for any other statement."""
        connection = self._target if isinstance(self._target, Connection) else self._target.connection()
        if not connection.in_transaction():
            connection.begin()  # what executing would do; done first, so that its event hooks have run
        lite = _known(connection.dialect) == "sqlite"
        steps = _sqlite(steps, connection) if lite else _postgres(steps, connection)
        with unprepared(connection.connection.driver_connection):
            return drive(steps, lambda step: _perform(connection, step, lite=lite))


class SqlalchemyAsyncAdapter:
    """An AsyncConnection or an AsyncSession."""

    is_async: Final[Literal[True]] = True
    can_bulk: Final[Literal[False]] = False

    def __init__(self, target: AsyncConnection | AsyncSession | async_scoped_session[Any]) -> None:
        self._target: Any = target() if isinstance(target, async_scoped_session) else target

    @property
    def dialect(self) -> adapter.Dialect:
        """The database behind the connection, or behind the session's one bind."""
        session = isinstance(self._target, AsyncSession)
        return _known(_dialect_of(self._target.sync_session) if session else self._target.dialect)

    async def run(self, steps: Steps[T]) -> T:
        """As the sync adapter, inside SQLAlchemy's own bridge."""
        return await self._target.run_sync(lambda target: SqlalchemyAdapter(target).run(steps))  # type: ignore[no-any-return]


def _perform(connection: Connection, step: Step, *, lite: bool) -> list[Row]:
    sql, params = statement_only(step)
    if lite:
        result = connection.execute(_lite_clause(sql), dict(params))
    else:
        clause, slots = _clause(sql)
        result = connection.execute(clause, {bind: slot.value(params) for bind, slot in slots.items()})
    return [tuple(row) for row in result] if result.returns_rows else []


@cache
def _clause(sql: str) -> tuple[TextClause, dict[str, Any]]:
    translated, slots = colon_binds(sql)
    return text(translated), slots


@cache
def _lite_clause(sql: str) -> TextClause:
    return text(lite_colon_binds(sql))


def _sqlite(steps: Steps[T], connection: Connection) -> Steps[T]:
    return in_sqlite_transaction(steps, connection.connection.driver_connection)


def _postgres(steps: Steps[T], connection: Connection) -> Steps[T]:
    pooled = connection.connection
    autocommit = bool(getattr(pooled.dbapi_connection, "autocommit", False))
    return in_postgres_transaction(steps, pooled.driver_connection, autocommit=autocommit)


def _dialect_of(target: Connection | Session) -> Dialect:
    if isinstance(target, Connection):
        return target.dialect
    try:
        return target.get_bind().dialect
    except UnboundExecutionError as error:
        raise UnsupportedConnection(
            "connection", "is a session without one bind for all", "session.connection(...) of the bind that is meant"
        ) from error


def _known(dialect: Dialect) -> adapter.Dialect:
    match dialect.name:
        case "postgresql":
            return "postgresql"
        case "sqlite":
            return "sqlite"
        case other:
            raise UnsupportedConnection("connection", f"SQLAlchemy speaks {other} there", "postgresql, sqlite")
