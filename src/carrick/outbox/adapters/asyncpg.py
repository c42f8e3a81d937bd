"""asyncpg: Connection, and the proxy that a pool hands out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, Literal, TypeVar

import asyncpg  # type: ignore[import-untyped]

from carrick.outbox.adapters.adapter import drive_async, statement_only
from carrick.outbox.adapters.placeholders import numbered
from carrick.outbox.adapters.transaction import BEGIN, in_postgres_transaction
from carrick.outbox.statement import Copy, Row, Step, Steps

T = TypeVar("T")

ROWS_PER_CHUNK = 500


class AsyncpgAdapter:
    """An asyncpg connection. Values go as text, so type codecs that the caller has set change nothing.

    No statement gets a name in the session: behind a pooler in transaction mode the next transaction meets another.
    """

    is_async: Final[Literal[True]] = True
    dialect: Final[Literal["postgresql"]] = "postgresql"
    can_bulk: Final[Literal[True]] = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, steps: Steps[T]) -> T:
        """Run the operation in the connection's transaction; outside one, in a transaction of its own."""
        steps = in_postgres_transaction(steps, self._connection, autocommit=True)
        return await drive_async(steps, self._perform)

    async def _perform(self, step: Step) -> list[Row]:
        if isinstance(step, Copy):
            await self._copy(step)
            return []
        statement = statement_only(step)
        if statement is BEGIN:  # before it a pooler may have another session for each message
            await self._connection.execute(statement.sql)
            return []
        sql, slots = numbered(statement.sql)
        values = [slot.value(statement.params) for slot in slots]
        prepared = await self._connection.prepare(sql, name="", record_class=asyncpg.Record)
        return [tuple(record) for record in await prepared.fetch(*values)]

    async def _copy(self, step: Copy) -> None:
        schema, _, table = step.table.rpartition(".")
        await self._connection.copy_to_table(
            table, source=_each(step.texts), columns=step.columns, schema_name=schema or None, format="text"
        )


async def _each(texts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """What asyncpg takes as a source: a path, a file, or an asynchronous iterator."""
    for text in texts:
        yield text
