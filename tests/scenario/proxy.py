"""A bad network on one machine: a TCP proxy that a test tells what to do with what passes through it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from enum import Enum
from types import TracebackType
from typing import Self

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Mood(Enum):
    """What becomes of connections."""

    PASS = "everything passes"
    CUT = "connections are cut, and new ones as soon as they are made"
    SILENT = "nothing passes, nobody is told"
    SLOW = "everything passes late and in small pieces"
    TRUNCATED = "the way back ends in the middle of an answer"


PIECE = 64
LATE_SECONDS = 0.005
LOOK_SECONDS = 0.02


class Proxy:
    """Listens on `port`, in a thread of its own, and passes on to wherever `connect` leads."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._mood = Mood.PASS
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def feel(self, mood: Mood) -> None:
        """From now on."""
        self._mood = mood
        if mood is Mood.CUT:
            self._loop.call_soon_threadsafe(self._cut)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _close(self) -> None:
        self._server.close()
        self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _is_cut(self) -> bool:
        return self._mood is Mood.CUT

    def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut():
            writer.transport.abort()
            return
        try:
            there, back = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        if self._is_cut():  # meanwhile
            writer.transport.abort()
            back.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer, answers=True))
        finally:
            for each in (writer, back):
                each.transport.abort()
                self._writers.discard(each)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False) -> None:
        """One direction, until either side ends it."""
        try:
            while data := await reader.read(65_536):
                while self._mood is Mood.SILENT:  # noqa: ASYNC110  another thread changes its mind
                    await asyncio.sleep(LOOK_SECONDS)
                if self._mood is Mood.TRUNCATED and answers:
                    writer.write(data[: len(data) // 2])
                    await writer.drain()
                    break
                pieces = [data]
                if self._mood is Mood.SLOW:
                    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    if self._mood is Mood.SLOW:
                        await asyncio.sleep(LATE_SECONDS)
        except OSError:
            pass  # the test has cut it, or the other side has gone: both are what this is for
        writer.close()
