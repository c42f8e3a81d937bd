"""Wakes the relays of one database when something was put. Only a hint: a relay that nobody wakes looks by itself."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict

from carrick.entry import Batch
from carrick.errors import NothingHeard, StoreError
from carrick.outbox.store import Store, Watch

log = logging.getLogger("carrick.relay")

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
DEAF_POLL_SECONDS = 1.0
"""Where nothing can be heard, relays look so often."""


class Bells:
    """One bell per channel, rung by puts: those of this process directly, those of others through the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bells: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._watch: Watch | None = None
        self._failures = 0
        self.problem = ""
        """Why nothing can be heard; empty while it can."""

    def of(self, channel: str) -> asyncio.Event:
        """The bell that the channel's relay listens to."""
        return self._bells[channel]

    def ring(self, channel: str | None = None) -> None:
        """Wake the relay of that channel, or all of them."""
        for name, bell in self._bells.items():
            if channel is None or name == channel:
                bell.set()

    async def claim(
        self, channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: float | None
    ) -> Batch | None:
        """What a relay that was just woken claims where the bell was heard; None where that cannot be done now."""
        if self._watch is None:
            return None
        return await self._watch.claim(
            channel, owner, max_rows=max_rows, max_bytes=max_bytes, fresh_seconds=fresh_seconds
        )

    async def listen(self) -> None:
        """Ring for every put, until cancelled. Where nothing can be heard, ring often, so that relays look."""
        loop = asyncio.get_running_loop()

        def ring(channel: str) -> None:
            loop.call_soon_threadsafe(self.ring, channel)

        with self._store.waking(ring):
            await self._listen()

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except NothingHeard as error:
                if not self.problem:
                    log.warning(
                        "relay.hears_nothing",
                        extra={"error": str(error), "looks_every_seconds": DEAF_POLL_SECONDS},
                    )
                self.problem = str(error)
                self.ring()
                await asyncio.sleep(DEAF_POLL_SECONDS)
            except (StoreError, OSError) as error:
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._failures, 10))
                pause *= random.uniform(0.5, 1.0)  # noqa: S311  no secret
                self._failures += 1
                log.warning("relay.not_listening", extra={"error": str(error), "again_in_seconds": round(pause, 1)})
                await asyncio.sleep(pause)

    async def _hear(self) -> None:
        """Ring for every put, until that fails."""
        self._watch = watch = self._store.watch()
        try:
            while True:
                self.ring(await watch.next())
                self._failures, self.problem = 0, ""
        finally:
            self._watch = None
            await watch.close()
