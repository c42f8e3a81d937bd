"""The line before the inbox: batches that wait go in together, and each is answered for itself.

Nothing sleeps to collect more: while groups are under way, the next gathers. Eight batches of a hundred events cost
PostgreSQL half as much in one call as in eight.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from carrick.errors import twin
from carrick.ingest.store import Groups, Offer, Outcome, Taken
from carrick.relay.threads import Threads

MOST = 64
"""Batches of a group, so that a statement stays of a usual size."""

TakeAll = Callable[[Sequence[Offer]], Sequence[Outcome]]


class _Place(NamedTuple):
    offer: Offer
    answer: asyncio.Future[Taken]


class Line:
    """Small batches on their way into one inbox, by its `take_all`. Used from one event loop."""

    def __init__(self, take_all: TakeAll, groups: Groups, threads: Threads) -> None:
        self._take_all = take_all
        self._groups = groups
        self._threads = threads
        self._waiting: deque[_Place] = deque()
        self._serving: set[asyncio.Task[None] | None] = set()
        self._under_way = 0

    async def take(self, offer: Offer) -> Taken:
        """What became of a batch. Raises BatchRefused or CarrickError; then nothing is stored."""
        loop = asyncio.get_running_loop()
        place = _Place(offer, loop.create_future())
        self._waiting.append(place)
        if len(self._serving) < self._groups.at_once:
            self._serving.add(loop.create_task(self._serve()))
        return await place.answer

    async def _serve(self) -> None:
        """Group after group until nobody waits. Then it counts no longer, at once: whoever comes next needs another."""
        try:
            await self._serve_all()
        finally:
            self._serving.discard(asyncio.current_task())

    async def _serve_all(self) -> None:
        while group := self._next_group():
            self._under_way += len(group)
            outcomes = await self._outcomes([place.offer for place in group])
            self._under_way -= len(group)
            for place, outcome in zip(group, outcomes, strict=True):
                if place.answer.done():  # who asked has gone
                    continue
                if isinstance(outcome, Taken):
                    place.answer.set_result(outcome)
                else:
                    place.answer.set_exception(outcome)

    def _next_group(self) -> list[_Place]:
        """Those that came first, up to its share of all: while one group is stored, another is made ready."""
        share = ceil((len(self._waiting) + self._under_way) / self._groups.at_once)
        group: list[_Place] = []
        events = 0
        while self._waiting and len(group) < min(share, MOST) and events < self._groups.events:
            place = self._waiting.popleft()
            events += len(place.offer.batch.arrivals)
            group.append(place)
        return group

    async def _outcomes(self, offers: Sequence[Offer]) -> Sequence[Outcome]:
        try:
            return await self._threads.call(self._take_all, offers)
        except Exception as error:  # noqa: BLE001  everybody who waits for it gets it
            return [twin(error) for _ in offers]
