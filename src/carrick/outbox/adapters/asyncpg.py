"""asyncpg: Connection, and the proxy that a pool hands out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, Literal, TypeVar

import asyncpg  # type: ignore[import-untyped]

from carrick.outbox.adapters.adapter import Step, drive_async
from carrick.outbox.adapters.placeholders import as_text, numbered
from carrick.outbox.adapters.transaction import in_postgres_transaction
from carrick.outbox.statement import Copy, Row, Steps

T = TypeVar("T")

ROWS_PER_CHUNK = 500


class AsyncpgAdapter:
    """An asyncpg connection. Values go as text, so type codecs that the caller has set change nothing."""

    is_async: Final[Literal[True]] = True
    dialect: Final[Literal["postgresql"]] = "postgresql"
    can_copy: Final[Literal[True]] = True

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
        sql, slots = numbered(step.sql)
        values = [slot.value(step.params) for slot in slots]
        records = await self._connection.fetch(sql, *values, record_class=asyncpg.Record)
        return [tuple(record) for record in records]

    async def _copy(self, step: Copy) -> None:
        schema, _, table = step.table.rpartition(".")
        await self._connection.copy_to_table(
            table, source=_chunks(step.rows), columns=step.columns, schema_name=schema or None, format="text"
        )


async def _chunks(rows: Sequence[tuple[Any, ...]]) -> AsyncIterator[bytes]:
    """COPY's text format: asyncpg's binary one has no encoder for json where the caller has set a codec for it."""
    for start in range(0, len(rows), ROWS_PER_CHUNK):
        yield copy_text(rows[start : start + ROWS_PER_CHUNK])


def copy_text(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Rows in COPY's text format."""
    return "".join(["\t".join([_field(value) for value in row]) + "\n" for row in rows]).encode()


def _field(value: Any) -> str:
    if value is None:
        return r"\N"
    text: str = as_text(value)
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")
