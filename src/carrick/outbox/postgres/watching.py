"""Tells when something was put, through LISTEN on a connection of its own.

Behind a pooler in transaction mode nothing is ever heard; then the relay finds entries when its poll comes round.
"""

from __future__ import annotations

import asyncio

import psycopg

from carrick.outbox.postgres.failures import map_errors

NOTIFICATIONS = "carrick_put"
"""What puts notify while a relay rests (0002_put.sql); the payload is the channel's name."""


class PostgresWatch:
    """Listens on one connection; opened at the first wait and after every loss of it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._ears: Ears | None = None

    async def next(self) -> str | None:
        """The channel that somebody put into. A new connection may have missed something: then it may be any."""
        with map_errors():
            if self._ears is None or self._ears.connection.closed:
                await self.close()
                connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
                await connection.execute(f"listen {NOTIFICATIONS}")
                self._ears = Ears(connection)
                return None
            return await self._ears.hear()

    async def close(self) -> None:
        if self._ears is not None:
            await self._ears.close()
            self._ears = None


class Ears:
    """Reads what comes on a connection that does nothing but listen.

    The event loop watches its socket all the time: asking psycopg for each notification would begin and end that for
    every one of them, before the relay that is to be woken gets its turn.
    """

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self.connection = connection
        self._socket = connection.fileno()
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self._fault: psycopg.Error | None = None
        self._loop.add_reader(self._socket, self._read)

    async def hear(self) -> str:
        """The payload of the next notification. Raises psycopg's error when the connection is lost."""
        while (heard := self.connection.pgconn.notifies()) is None:
            if self._fault is not None:
                raise self._fault
            self._stirred.clear()
            await self._stirred.wait()
        return heard.extra.decode()

    async def close(self) -> None:
        self._loop.remove_reader(self._socket)
        await self.connection.close()

    def _read(self) -> None:
        try:
            self.connection.pgconn.consume_input()
        except psycopg.Error as error:
            self._fault = error
            self._loop.remove_reader(self._socket)
        self._stirred.set()
