"""What replicas tell each other: that the scores of a section have changed, and that a device has connected.

One subscription for everything that this process listens to.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager

from carrick.errors import StoreError
from carrick.state.kv import Gap, Kv, Message
from carrick_scoreboard.patrols.shelf import CHANGES

log = logging.getLogger("carrick.scoreboard")

PAUSE_SECONDS = 1.0

Heard = Callable[[str], None]
"""Is called with what was said after the key."""
Shown = Callable[[Collection[int]], Awaitable[Mapping[int, object]]]
"""What these sections show now. Raises StoreError."""


class Refreshes:
    """One per process. It is subscribed while anybody listens to anything. `clock`: seconds since 1970."""

    def __init__(self, kv: Kv, shown: Shown, *, clock: Callable[[], float] = time.time) -> None:
        self._kv = kv
        self._shown = shown
        self._clock = clock
        self._seen: dict[int, object] = {}
        """What was shown when something may have been missed, of sections of which nothing was told since."""
        self._listeners: defaultdict[str, set[Heard]] = defaultdict(set)
        self._line: _Line | None = None

    @asynccontextmanager
    async def listening(self, section_id: int, told: Callable[[], None]) -> AsyncIterator[None]:
        """Within it, `told` is called after each change; it begins when nothing can be missed any more."""
        async with self._hearing(str(section_id), lambda _: told()):
            yield

    @asynccontextmanager
    async def connected(self, device_id: int, replaced: Callable[[], None]) -> AsyncIterator[None]:
        """Within it the device is connected here; `replaced` is called when it connects anew, on any replica.

        Replicas with different clocks may end the wrong one of two connections of one moment; its device comes again.
        """
        since = self._clock()

        def heard(moment: str) -> None:
            if float(moment) > since:
                replaced()

        async with self._hearing(f"device:{device_id}", heard):
            word = f"device:{device_id} {since!r}"
            self._tell(word)
            await self._kv.publish(CHANGES, word)
            yield

    @asynccontextmanager
    async def _hearing(self, key: str, heard: Heard) -> AsyncIterator[None]:
        self._listeners[key].add(heard)
        line = self._line
        if line is None:
            line = self._line = _Line(self._kv, self._hear)
        try:
            await line.is_heard.wait()
            yield
        finally:
            self._listeners[key].discard(heard)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners and self._line is line:
                self._line = None
                await line.close()

    def tell(self, section_id: int) -> None:
        """This process has changed something: those who show the section here are told, whatever can be heard."""
        self._tell(str(section_id))

    def _tell(self, word: str) -> None:
        """To those who listen to its key."""
        key, _, rest = word.partition(" ")
        if key.isdecimal():
            self._seen.pop(int(key), None)
        for heard in [*self._listeners.get(key, ())]:
            heard(rest)

    async def _hear(self, heard: Message | Gap) -> None:
        if isinstance(heard, Message):
            self._tell(heard.text)
        else:
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Something may have been missed: tell those whose section does not look as it did the last time."""
        sections = [int(key) for key in self._listeners if key.isdecimal()]
        try:
            shown = await self._shown(sections)
        except StoreError as error:
            log.warning("refreshes.not_looked", extra={"error": str(error)})
            self._seen.clear()
            return
        before, self._seen = self._seen, {}
        for section_id in sections:
            now = shown.get(section_id)
            if section_id not in before or before[section_id] != now:
                self.tell(section_id)
            self._seen[section_id] = now


class _Line:
    """The subscription. `is_heard` is set from the first word on, which is a gap that nobody has to be told of."""

    def __init__(self, kv: Kv, hear: Callable[[Message | Gap], Awaitable[None]]) -> None:
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
