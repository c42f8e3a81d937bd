"""One overview for all who watch, taken while somebody does, as server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from carrick.errors import StoreError
from carrick.web.problems import Problem

log = logging.getLogger("carrick.console")

EVERY_SECONDS = 2.0
REST_PER_LOOK = 10
"""It rests so many times as long as a look took: a slow database is not kept busy by it."""
MOST_WATCHERS = 20
PATIENCE_SECONDS = 20.0
"""A browser that takes nothing for so long is let go."""
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Broadcast:
    """Takes an overview every two seconds (slower where it costs much) while somebody watches, and none otherwise."""

    def __init__(self, take: Callable[[], Awaitable[msgspec.Struct]], *, most: int = MOST_WATCHERS) -> None:
        self._take = take
        self._most = most
        self._watchers: set[asyncio.Event] = set()
        self._latest = b""
        self._taking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def watching(self) -> int:
        """How many watch now."""
        return len(self._watchers)

    async def serve(self, request: web.Request, check: Callable[[web.Request], None]) -> web.StreamResponse:
        """Send what is new until the browser goes, or `check` raises Problem. Raises Problem when too many watch."""
        if self._closed or len(self._watchers) >= self._most:
            raise Problem(503, "too_many", f"{self._most} browsers watch already; close one", retry_after=10)
        response = web.StreamResponse(headers=HEADERS)
        news = asyncio.Event()
        self._watchers.add(news)
        if self._taking is None:
            self._taking = asyncio.create_task(self._keep_taking())
        try:
            await response.prepare(request)
            await self._send(response, news, lambda: check(request))
        except (ConnectionError, TimeoutError, Problem) as ended:
            log.debug("console.watcher_gone", extra={"said": str(ended)})
        finally:
            self._watchers.discard(news)
            if not self._watchers:
                await self._stop()
        return response

    async def _send(self, response: web.StreamResponse, news: asyncio.Event, check: Callable[[], None]) -> None:
        while not self._closed:
            await news.wait()
            news.clear()
            check()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await response.write(self._latest)

    async def _keep_taking(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                self._latest = _event("overview", await self._take())
            except StoreError as error:
                self._latest = _event("trouble", {"message": str(error)})
            except Exception:
                log.exception("console.look_failed")
                self._latest = _event("trouble", {"message": "something went wrong here; the log has the details"})
            for news in self._watchers:
                news.set()
            await asyncio.sleep(max(EVERY_SECONDS, REST_PER_LOOK * (clock() - began)))

    async def close(self) -> None:
        """Let all who watch go."""
        self._closed = True
        for news in self._watchers:
            news.set()
        await self._stop()

    async def _stop(self) -> None:
        taking, self._taking = self._taking, None
        if taking is not None:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)


def _event(name: str, value: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))
