"""psycopg 3: Connection and AsyncConnection, with autocommit or without, inside transaction() blocks or not."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final, Literal, TypeVar

import psycopg
from psycopg.pq import PipelineStatus
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composed, Identifier

from carrick.outbox.adapters.adapter import Step, drive, drive_async
from carrick.outbox.adapters.transaction import in_postgres_transaction
from carrick.outbox.statement import Copy, Row, Steps

T = TypeVar("T")


class PsycopgAdapter:
    """A psycopg Connection. Cursors are Carrick's own, whatever cursor and row factories the caller has set."""

    is_async: Final[Literal[False]] = False
    dialect: Final[Literal["postgresql"]] = "postgresql"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    @property
    def can_copy(self) -> bool:
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
    def can_copy(self) -> bool:
        """COPY does not go together with pipeline mode."""
        return not in_pipeline(self._connection)

    async def run(self, steps: Steps[T]) -> T:
        """Run the operation in the connection's transaction."""
        steps = in_postgres_transaction(steps, self._connection, autocommit=self._connection.autocommit)
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            return await drive_async(steps, lambda step: _perform_async(cursor, step))


def perform(cursor: psycopg.Cursor[tuple[Any, ...]], step: Step) -> list[Row]:
    """One step on a cursor; its rows."""
    if isinstance(step, Copy):
        with cursor.copy(_copy_sql(step)) as copy:
            copy.write(step.text)
        return []
    with cursor.connection.pipeline() if in_pipeline(cursor.connection) else nullcontext():
        cursor.execute(step.sql.encode(), step.params)  # leaving the inner pipeline waits for the answer
    return [] if cursor.rownumber is None else [*cursor.fetchall()]


async def _perform_async(cursor: psycopg.AsyncCursor[tuple[Any, ...]], step: Step) -> list[Row]:
    if isinstance(step, Copy):
        async with cursor.copy(_copy_sql(step)) as copy:
            await copy.write(step.text)
        return []
    async with cursor.connection.pipeline() if in_pipeline(cursor.connection) else nullcontext():
        await cursor.execute(step.sql.encode(), step.params)  # leaving the inner pipeline waits for the answer
    return [] if cursor.rownumber is None else [*await cursor.fetchall()]


def _copy_sql(step: Copy) -> Composed:
    columns = SQL(", ").join(map(Identifier, step.columns))
    return SQL("copy {} ({}) from stdin").format(Identifier(*step.table.split(".")), columns)


def in_pipeline(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether answers come only when the pipeline is waited for."""
    return connection.pgconn.pipeline_status != PipelineStatus.OFF
