"""A running scoreboard with leaders, their phones and their OSM: what stories about leaders are told in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from carrick.testing import Clock
from tests.phone import Phone
from tests.service import Service

KEYS = {"CARRICK_SECRET_KEYS": "k:" + "A" * 43 + "="}


class Hall:
    """A running scoreboard with one leader signed in."""

    def __init__(self, running: Service, robin: Phone, clock: Clock) -> None:
        self.service = running
        self.osm = running.osm
        self.robin = robin
        self._clock = clock

    async def later(self, seconds: float) -> None:
        """The database's clock goes on; who waits for it looks again."""
        await asyncio.to_thread(self._clock.shift, seconds)

    async def settled(self, phone: Phone | None = None) -> None:
        """Until nothing of the leader is on its way."""
        while await (phone or self.robin).waiting():  # noqa: ASYNC110  a server rings no event
            await asyncio.sleep(0.05)

    async def osm_calls(self) -> list[str]:
        names = {"patrols": "read", "points": "write"}
        return [names[call["endpoint"]] for call in await self.osm.calls() if call.get("endpoint") in names]


Story = Callable[[Hall], Awaitable[None]]
Tell = Callable[..., None]
"""Runs a story on a database; settings of the scoreboard that are not the usual ones are named."""
