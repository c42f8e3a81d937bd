"""Messages through LISTEN on a connection of its own. Behind a pooler in transaction mode nothing is ever heard."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import psycopg
from psycopg import sql

from carrick.outbox.postgres.failures import map_errors

KEEPALIVE = {"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
"""A connection that has died without a word is noticed within a minute."""


def channel_of(topic: str) -> str:
    """PostgreSQL's name for a topic: its own names are short."""
    return "carrick_state_" + hashlib.sha256(topic.encode()).hexdigest()[:40]


async def listen(dsn: str, topic: str) -> AsyncGenerator[str | None, None]:
    """None once it listens, then the topic's messages. Raises StoreUnavailable when the connection is lost."""
    with map_errors():
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, **KEEPALIVE)  # type: ignore[arg-type]
        async with connection:
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel_of(topic))))
            yield None
            async with aclosing(connection.notifies()) as notifies:
                async for notify in notifies:
                    yield notify.payload
