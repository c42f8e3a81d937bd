"""psycopg 3: Connection and AsyncConnection, with autocommit or without, inside transaction() blocks or not."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, TypeVar, cast

import psycopg
from psycopg.pq import PipelineStatus
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composed, Identifier

from carrick.outbox.adapters.adapter import drive, drive_async, statement_only
from carrick.outbox.adapters.transaction import in_postgres_transaction
from carrick.outbox.statement import Copy, Row, Step, Steps

T = TypeVar("T")


class PsycopgAdapter:
    """A psycopg Connection. Cursors are Carrick's own, whatever cursor and row factories the caller has set."""

    is_async: Final[Literal[False]] = False
    dialect: Final[Literal["postgresql"]] = "postgresql"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    @property
    def can_bulk(self) -> bool:
        """COPY does not go together with pipeline mode."""
        return not in_pipeline(self._connection)

    def run(self, steps: Steps[T]) -> T:
        """Run the operation in the connection's transaction."""
        steps = in_postgres_transaction(steps, self._connection, autocommit=self._connection.autocommit)
        with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
            return drive(steps, lambda step: perform(cursor, step))


class PsycopgAsyncAdapter:
    """A psycopg AsyncConnection."""

    is_async: Final[Literal[True]] = True
    dialect: Final[Literal["postgresql"]] = "postgresql"

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    @property
    def can_bulk(self) -> bool:
        """COPY does not go together with pipeline mode."""
        return not in_pipeline(self._connection)

    async def run(self, steps: Steps[T]) -> T:
        """Run the operation in the connection's transaction."""
        steps = in_postgres_transaction(steps, self._connection, autocommit=self._connection.autocommit)
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            return await drive_async(steps, lambda step: _perform_async(cursor, step))


def perform(cursor: psycopg.Cursor[tuple[Any, ...]], step: Step) -> list[Row]:
    """One step on a cursor; its rows. Never prepared: a pooler in transaction mode may have another session next."""
    if isinstance(step, Copy):
        with cursor.copy(_copy_sql(step)) as copy:
            for text in step.texts:
                copy.write(text)
        return []
    sql, params = statement_only(step)
    if in_pipeline(cursor.connection):
        with cursor.connection.pipeline():  # leaving the inner pipeline waits for the answer
            cursor.execute(_encoded(sql), params, prepare=False)
    else:
        cursor.execute(_encoded(sql), params, prepare=False)
    return [] if cursor.rownumber is None else cast(list[Row], cursor.fetchall())


async def _perform_async(cursor: psycopg.AsyncCursor[tuple[Any, ...]], step: Step) -> list[Row]:
    if isinstance(step, Copy):
        async with cursor.copy(_copy_sql(step)) as copy:
            for text in step.texts:
                await copy.write(text)
        return []
    sql, params = statement_only(step)
    if in_pipeline(cursor.connection):
        async with cursor.connection.pipeline():  # leaving the inner pipeline waits for the answer
            await cursor.execute(_encoded(sql), params, prepare=False)
    else:
        await cursor.execute(_encoded(sql), params, prepare=False)
    return [] if cursor.rownumber is None else cast(list[Row], await cursor.fetchall())


def _copy_sql(step: Copy) -> Composed:
    columns = SQL(", ").join(map(Identifier, step.columns))
    return SQL("copy {} ({}) from stdin").format(Identifier(*step.table.split(".")), columns)


@cache
def _encoded(sql: str) -> bytes:
    """Always the same object for the same text: psycopg looks statements up by their hash, which bytes keep."""
    return sql.encode()


def in_pipeline(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether answers come only when the pipeline is waited for."""
    return connection.pgconn.pipeline_status != PipelineStatus.OFF
