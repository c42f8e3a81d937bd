"""Tells who shows a section when its scores have changed: one subscription for all sections of this process."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager

from carrick.errors import StoreError
from carrick.state.kv import Heard, Kv, Message
from carrick_scoreboard.patrols.shelf import CHANGES

log = logging.getLogger("carrick.scoreboard")

PAUSE_SECONDS = 1.0

Told = Callable[[], None]
Shown = Callable[[Collection[int]], Awaitable[Mapping[int, object]]]
"""What these sections show now. Raises StoreError."""


class Refreshes:
    """One per process. It is subscribed while anybody listens to any section."""

    def __init__(self, kv: Kv, shown: Shown) -> None:
        self._kv = kv
        self._shown = shown
        self._seen: dict[str, object] = {}
        """What was shown when something may have been missed, of sections of which nothing was told since."""
        self._listeners: defaultdict[str, set[Told]] = defaultdict(set)
        self._line: _Line | None = None

    @asynccontextmanager
    async def listening(self, section_id: int, told: Told) -> AsyncIterator[None]:
        """Within it, `told` is called after each change; it begins when nothing can be missed any more."""
        key = str(section_id)
        self._listeners[key].add(told)
        line = self._line
        if line is None:
            line = self._line = _Line(self._kv, self._hear)
        try:
            await line.is_heard.wait()
            yield
        finally:
            self._listeners[key].discard(told)
            if not self._listeners[key]:
                del self._listeners[key]
                self._seen.pop(key, None)
            if not self._listeners and self._line is line:
                self._line = None
                await line.close()

    def tell(self, section_id: int) -> None:
        """This process has changed something: those who show the section here are told, whatever can be heard."""
        self._tell(str(section_id))

    def _tell(self, key: str) -> None:
        self._seen.pop(key, None)
        for told in [*self._listeners.get(key, ())]:
            told()

    async def _hear(self, heard: Heard) -> None:
        if isinstance(heard, Message):
            self._tell(heard.text)
        else:
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Something may have been missed: tell those whose section does not look as it did the last time."""
        keys = [*self._listeners]
        try:
            shown = await self._shown([int(key) for key in keys])
        except StoreError as error:
            log.warning("refreshes.not_looked", extra={"error": str(error)})
            self._seen.clear()
            return
        for key in keys:
            now = shown.get(int(key))
            if key not in self._seen or self._seen[key] != now:
                self._tell(key)
                self._seen[key] = now


class _Line:
    """The subscription. `is_heard` is set from the first word on, which is a gap that nobody has to be told of."""

    def __init__(self, kv: Kv, hear: Callable[[Heard], Awaitable[None]]) -> None:
        self._kv = kv
        self._hear = hear
        self.is_heard = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._hear_for_ever())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _hear_for_ever(self) -> None:
        while True:
            try:
                async with aclosing(self._kv.subscribe(CHANGES)) as words:
                    async for heard in words:
                        if self.is_heard.is_set():
                            await self._hear(heard)
                        self.is_heard.set()
            except Exception:
                log.exception("refreshes.failed")
            await asyncio.sleep(PAUSE_SECONDS)
