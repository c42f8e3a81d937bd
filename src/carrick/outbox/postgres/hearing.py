"""Hears notifications on a connection of its own, and proves that it does.

Behind a pooler in transaction mode LISTEN succeeds, and nothing ever comes. So whoever listens notifies itself by
another connection, at the beginning and after every long silence.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Self
from uuid import uuid4

import psycopg

from carrick.errors import NothingHeard
from carrick.outbox.postgres.connections import set_loaders
from carrick.outbox.postgres.failures import map_errors

PROOFS = "carrick_proof"
"""What is listened to beside the channel that is asked for; the payload says whose proof it is."""
PROOF_SECONDS = 5.0
"""How long one's own notification may take."""
SILENCE_SECONDS = 300.0
"""After so long without a word it is proved again."""
DEAF_SECONDS = 600.0
"""So long this process does not listen where nothing was heard: what is tried behind a pooler stays in its sessions."""
KEEPALIVE = {"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
"""A connection that has died without a word is noticed within a minute."""

_deaf_until: dict[str, float] = {}
"""By DSN, on the clock of this process."""


async def check(dsn: str) -> None:
    """Raise NothingHeard where no notification would be heard, a StoreError where it cannot be tried."""
    with map_errors():
        ears = await Ears.open(dsn, PROOFS)
        await ears.close()


class Ears:
    """One connection that listens. Raises psycopg's errors when it is lost, NothingHeard when it hears nothing.

    The event loop watches its socket all the time: asking psycopg for each notification would begin and end that for
    every one of them, before the relay that is to be woken gets its turn.
    """

    def __init__(self, connection: psycopg.AsyncConnection, dsn: str) -> None:
        self.connection = connection
        self._dsn = dsn
        self._socket = connection.fileno()
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self._fault: psycopg.Error | None = None
        self._kept: deque[str] = deque()
        set_loaders(connection)
        self._loop.add_reader(self._socket, self._read)

    @classmethod
    async def open(cls, dsn: str, channel: str) -> Self:
        """Listen to that channel."""
        if time.monotonic() < _deaf_until.get(dsn, -1.0):
            raise NothingHeard
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, **KEEPALIVE)  # type: ignore[arg-type]
        try:
            await connection.execute(f"listen {channel}; listen {PROOFS}".encode())
            ears = cls(connection, dsn)
        except BaseException:
            await connection.close()
            raise
        try:
            await ears._prove()
        except BaseException:
            await ears.close()
            raise
        return ears

    async def hear(self) -> str:
        """The payload of the next notification."""
        while not self._kept:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    await self._next()
            except TimeoutError:
                await self._prove()
        return self._kept.popleft()

    async def close(self) -> None:
        self._fail(psycopg.OperationalError("the connection was closed"))
        await self.connection.close()

    async def _prove(self) -> None:
        """Hear a notification of one's own; what is heard meanwhile is kept."""
        proof = str(uuid4())
        async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as other:
            await other.execute("select pg_notify(%s, %s)", (PROOFS, proof))
        try:
            async with asyncio.timeout(PROOF_SECONDS):
                while await self._next() != proof:
                    pass
        except TimeoutError:
            _deaf_until[self._dsn] = time.monotonic() + DEAF_SECONDS
            raise NothingHeard from None

    async def _next(self) -> str | None:
        """The next proof, whosever it is; None for another notification, which is kept."""
        while (heard := self.connection.pgconn.notifies()) is None:
            await self._stir()
        if heard.relname.decode() == PROOFS:
            return heard.extra.decode()
        self._kept.append(heard.extra.decode())
        return None

    async def _stir(self) -> None:
        """Return when something has come. Raises the fault of the connection."""
        if self._fault is None:
            self._stirred.clear()
            await self._stirred.wait()
        if self._fault is not None:
            raise self._fault

    def _read(self) -> None:
        try:
            self.connection.pgconn.consume_input()
        except psycopg.Error as error:
            self._fail(error)
        self._stirred.set()

    def _fail(self, fault: psycopg.Error) -> None:
        """Nothing more is read; whoever waits is told."""
        if self._fault is None:
            self._fault = fault
            self._loop.remove_reader(self._socket)
        self._stirred.set()
