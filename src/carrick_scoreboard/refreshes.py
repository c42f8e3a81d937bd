"""Tells who shows a section when its scores have changed: one subscription for all sections of this process."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from carrick.state.kv import Heard, Kv, Message
from carrick_scoreboard.patrols.shelf import CHANGES

log = logging.getLogger("carrick.scoreboard")

PAUSE_SECONDS = 1.0

Told = Callable[[], None]


class Refreshes:
    """One per process. It is subscribed while anybody listens to any section."""

    def __init__(self, kv: Kv) -> None:
        self._kv = kv
        self._listeners: defaultdict[str, set[Told]] = defaultdict(set)
        self._line: _Line | None = None

    @asynccontextmanager
    async def listening(self, section_id: int, told: Told) -> AsyncIterator[None]:
        """Within it, `told` is called after each change; it begins when nothing can be missed any more."""
        key = str(section_id)
        self._listeners[key].add(told)
        line = self._line
        if line is None:
            line = self._line = _Line(self._kv, self._tell)
        try:
            await line.is_heard.wait()
            yield
        finally:
            self._listeners[key].discard(told)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners and self._line is line:
                self._line = None
                await line.close()

    def _tell(self, heard: Heard) -> None:
        """A gap counts as a change of every section: something may have been missed."""
        keys = (heard.text,) if isinstance(heard, Message) else tuple(self._listeners)
        for told in [told for key in keys for told in self._listeners.get(key, ())]:
            told()


class _Line:
    """The subscription. `is_heard` is set from the first word on, which is a gap that nobody has to be told of."""

    def __init__(self, kv: Kv, tell: Callable[[Heard], None]) -> None:
        self._kv = kv
        self._tell = tell
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
                            self._tell(heard)
                        self.is_heard.set()
            except Exception:
                log.exception("refreshes.failed")
            await asyncio.sleep(PAUSE_SECONDS)
