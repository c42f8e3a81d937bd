"""Puts a screen on the display and turns its pages."""

from __future__ import annotations

import asyncio

from carrick_device.clock import Clock
from carrick_device.screen import Display, Screen

PAGE_SECONDS = 5.0


class Stage:
    """Owns the display. A screen that is shown again as it is goes on at its page."""

    def __init__(self, display: Display, clock: Clock) -> None:
        self._display = display
        self._clock = clock
        self._screen: Screen | None = None
        self._page = 0
        self._changed = asyncio.Event()

    def show(self, screen: Screen) -> None:
        """Show the screen from its first page, or on the page it is on."""
        if screen == self._screen:
            return
        same_kind = type(screen) is type(self._screen)
        self._page = self._page % self._display.pages(screen) if same_kind else 0
        self._screen = screen
        self._display.show(screen, self._page)
        self._changed.set()

    async def turn_pages(self) -> None:
        """Turn pages until cancelled; at rest while there is one page only."""
        while True:
            if self._screen is None or self._display.pages(self._screen) == 1:
                self._changed.clear()
                await self._changed.wait()
            else:
                await self._clock.sleep(PAGE_SECONDS)
                self._next()

    def _next(self) -> None:
        if self._screen is None:
            return
        page = (self._page + 1) % self._display.pages(self._screen)
        if page != self._page:
            self._page = page
            self._display.show(self._screen, page)
