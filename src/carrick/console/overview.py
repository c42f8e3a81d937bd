"""Everything at a glance. It asks for counts, gates and signs of life: nothing that reads through retained entries."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from carrick.console.answers import ChannelLook, Overview, Replica, TenantLook
from carrick.console.history import SLOT_SECONDS, History
from carrick.entry import ChannelStats, Gate, Sign
from carrick.errors import StoreError
from carrick.outbox.channel import Channel
from carrick.outbox.store import MOST_COUNTED, Store
from carrick.relay.threads import Threads

log = logging.getLogger("carrick.console")

TENANTS_EVERY_SECONDS = 10.0
REST_PER_LOOK = 100
MOST_CHANNELS = 20
"""Tenants are looked at in so many channels, those with the most waiting."""
MOST_ROWS = 12


class _Found(NamedTuple):
    """What the database told."""

    now: datetime
    stats: list[ChannelStats]
    channels: dict[str, Channel]
    gates: list[Gate]
    signs: list[Sign]
    tenants: list[TenantLook]


class Looker:
    """Makes overviews. Tenants are counted anew every ten seconds at most."""

    def __init__(
        self,
        store: Store,
        threads: Threads,
        history: History,
        instance: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._threads = threads
        self._history = history
        self._instance = instance
        self._clock = clock
        self._tenants: list[TenantLook] = []
        self._tenants_at: float | None = None

    async def look(self) -> Overview:
        """How it stands now. Raises StoreError."""
        found = await self._threads.call(self._read)
        self._history.depths(found.stats)
        return Overview(
            at=found.now,
            instance=self._instance,
            channels=[self._channel(stats, found.channels) for stats in found.stats],
            gates=found.gates,
            replicas=replicas(found.signs),
            tenants=found.tenants,
            counted_up_to=MOST_COUNTED,
        )

    async def keep_measuring(self) -> None:
        """Note depths once in every slot of the history, so that its charts begin before somebody watches.

        It rests much longer than it looked: counting millions of waiting entries takes a hundredth of the time at most.
        """
        while True:
            began = self._clock()
            try:
                self._history.depths(await self._threads.call(self._store.stats))
            except StoreError as error:
                log.warning("console.depths_unknown", extra={"error": str(error)})
            await asyncio.sleep(max(SLOT_SECONDS, REST_PER_LOOK * (self._clock() - began)))

    def _read(self) -> _Found:
        """In a thread."""
        stats = self._store.stats()
        now = self._clock()
        if self._tenants_at is None or now - self._tenants_at >= TENANTS_EVERY_SECONDS:
            self._tenants, self._tenants_at = self._waiting(stats), now
        store = self._store
        return _Found(store.now(), stats, store.channels(), store.gates(), store.signs(), self._tenants)

    def _waiting(self, stats: Sequence[ChannelStats]) -> list[TenantLook]:
        deepest = sorted(stats, key=lambda channel: -channel.pending_count)[:MOST_CHANNELS]
        found = [
            TenantLook(channel=channel.channel, tenant_id=one.tenant_id, waiting=one.waiting)
            for channel in deepest
            if channel.pending_count
            for one in self._store.tenants(channel.channel, max_rows=MOST_ROWS)
        ]
        return sorted(found, key=lambda one: -one.waiting)[:MOST_ROWS]

    def _channel(self, stats: ChannelStats, known: dict[str, Channel]) -> ChannelLook:
        name = stats.channel
        return ChannelLook(
            stats=stats,
            mode=known[name].mode.value if name in known else "",
            lately=self._history.lately(name),
            series=self._history.series(name),
        )


def replicas(signs: Sequence[Sign]) -> list[Replica]:
    """Signs of life by whose they are, the liveliest first."""
    by_owner: defaultdict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        by_owner[sign.owner].append(sign)
    found = [
        Replica(owner=owner, alive_until=max(sign.until for sign in own), signs=own) for owner, own in by_owner.items()
    ]
    return sorted(found, key=lambda replica: replica.alive_until, reverse=True)
