"""Listens for news on the WebSocket, and comes back when the connection ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import aiohttp
import msgspec

from carrick_device.answers import decoded
from carrick_device.client import Server
from carrick_device.clock import Clock
from carrick_device.plan import backoff

log = logging.getLogger("carrick.device")

REFRESH = "refresh-scores"
STEADY_SECONDS = 60.0
"""A connection that held this long was a good one: the next attempt is a first one again."""
REFUSED = (401, 403)


class Message(msgspec.Struct, frozen=True):
    """What the server sends; other fields are for others."""

    type: str


class News:
    """The listener of one token. `tell` is called for each piece of news, and when the server refuses the token."""

    def __init__(self, server: Server, token: str, clock: Clock, tell: Callable[[], None]) -> None:
        self._server = server
        self._token = token
        self._clock = clock
        self._tell = tell
        self._task: asyncio.Task[None] | None = None

    def want(self, wanted: bool) -> None:
        """Listen from now on, or no longer."""
        if wanted and self._task is None:
            self._task = asyncio.create_task(self._listen())
        elif not wanted and self._task is not None:
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """No longer listen; return when the connection is gone."""
        task = self._task
        self.want(False)
        if task is not None:
            await asyncio.wait([task])

    async def _listen(self) -> None:
        failures = 0
        while True:
            began = self._clock.seconds()
            await self._connected()
            failures = 0 if self._clock.seconds() - began >= STEADY_SECONDS else failures + 1
            await self._clock.sleep(backoff(max(0, failures - 1), self._clock.chance()))

    async def _connected(self) -> None:
        """Listen until the connection ends, or there is none."""
        try:
            async with self._server.listening(self._token) as socket:
                async for message in socket:
                    self._hear(message)
        except aiohttp.WSServerHandshakeError as error:
            log.info("the server refused the connection for news: %s", error.status)
            if error.status in REFUSED:
                self._tell()
        except (aiohttp.ClientError, TimeoutError) as error:
            log.info("no connection for news: %s", type(error).__name__)

    def _hear(self, message: aiohttp.WSMessage) -> None:
        is_data = message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY)
        heard = decoded(message.data, Message) if is_data else None
        if heard is not None and heard.type == REFRESH:
            self._tell()
        else:
            log.info("heard something else than news")
