"""Tells who shows a section when its scores have changed: one subscription for all of them in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from carrick.state.kv import Kv
from carrick_scoreboard.patrols.shelf import topic_of

log = logging.getLogger("carrick.scoreboard")

PAUSE_SECONDS = 1.0

Told = Callable[[], None]


class _Section:
    """Who listens to one section, and the task that hears for them."""

    def __init__(self) -> None:
        self.listeners: set[Told] = set()
        self.listening = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Refreshes:
    """The subscriptions of this process."""

    def __init__(self, kv: Kv) -> None:
        self._kv = kv
        self._sections: dict[int, _Section] = {}

    @asynccontextmanager
    async def listening(self, section_id: int, told: Told) -> AsyncIterator[None]:
        """Within it, `told` is called after each change; it begins when nothing can be missed any more."""
        section = self._sections.setdefault(section_id, _Section())
        section.listeners.add(told)
        if section.task is None:
            section.task = asyncio.get_running_loop().create_task(self._hear_for_ever(section_id, section))
        try:
            await section.listening.wait()
            yield
        finally:
            section.listeners.discard(told)
            if not section.listeners and self._sections.get(section_id) is section:
                del self._sections[section_id]
                await _ended(section)

    async def _hear_for_ever(self, section_id: int, section: _Section) -> None:
        """A gap counts as a change: something may have been missed. Only the first one does not."""
        while True:
            try:
                async with aclosing(self._kv.subscribe(topic_of(section_id))) as heard:
                    async for _ in heard:
                        self._tell(section)
            except Exception:
                log.exception("refreshes.failed", extra={"section_id": section_id})
            await asyncio.sleep(PAUSE_SECONDS)

    def _tell(self, section: _Section) -> None:
        if not section.listening.is_set():
            section.listening.set()
            return
        for told in tuple(section.listeners):
            told()


async def _ended(section: _Section) -> None:
    if section.task is not None:
        section.task.cancel()
        await asyncio.gather(section.task, return_exceptions=True)
