"""Wakes the relays of one database when something was put. Only a hint: a relay that nobody wakes looks by itself."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict

from carrick.entry import Batch
from carrick.errors import StoreError
from carrick.outbox.store import Store, Watch

log = logging.getLogger("carrick.relay")

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class Bells:
    """One bell per channel, rung by puts wherever they happen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bells: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._watch: Watch | None = None

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
        """Ring for every put, until cancelled; a database that cannot be heard is asked again, ever less often."""
        failures = 0
        while True:
            try:
                self._watch = watch = self._store.watch()
                while True:
                    self.ring(await watch.next())
                    failures = 0
            except (StoreError, OSError) as error:
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures, 10))
                pause *= random.uniform(0.5, 1.0)  # noqa: S311  no secret
                failures += 1
                log.warning("relay.not_listening", extra={"error": str(error), "again_in_seconds": round(pause, 1)})
                await asyncio.sleep(pause)
            finally:
                opened, self._watch = self._watch, None
                if opened is not None:
                    await opened.close()
