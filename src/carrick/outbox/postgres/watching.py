"""Tells when something was put, through LISTEN on a connection of its own.

Behind a pooler in transaction mode nothing is ever heard; then the relay finds entries when its poll comes round.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import psycopg

from carrick.outbox.postgres.failures import map_errors

NOTIFICATIONS = "carrick_put"
"""What puts notify while a relay rests (0002_put.sql); the payload is the channel's name."""


class PostgresWatch:
    """Listens on one connection; opened at the first wait and after every loss of it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.AsyncConnection | None = None
        self._heard: AsyncGenerator[psycopg.Notify, None] | None = None

    async def next(self) -> str | None:
        """The channel that somebody put into. A new connection may have missed something: then it may be any."""
        with map_errors():
            if self._connection is None or self._connection.closed:
                await self.close()
                self._connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
                await self._connection.execute(f"listen {NOTIFICATIONS}")
                self._heard = self._connection.notifies()
                return None
            assert self._heard is not None
            return (await anext(self._heard)).payload

    async def close(self) -> None:
        if self._heard is not None:
            await self._heard.aclose()
            self._heard = None
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
