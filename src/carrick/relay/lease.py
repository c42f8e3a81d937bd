"""Keeps the lease of a batch while it is on its way, and ends the delivery when the lease is lost."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

from carrick.entry import Batch
from carrick.errors import StoreError
from carrick.sinks.sink import LeaseLost
from carrick.steady import steady_seconds

log = logging.getLogger("carrick.relay")

T = TypeVar("T")

Renew = Callable[[UUID, int], Awaitable[int]]
"""Store.renew, without blocking."""

MARGIN = 0.1
"""The part of a lease at its end in which nothing may be under way any more, at most MARGIN_SECONDS of it."""
MARGIN_SECONDS = 5.0
RETRY_SECONDS = 1.0


class Lease:
    """The lease of one batch by this process's steady clock; `since` is a moment before it was asked for, so it errs
    early. Timers stand still while the machine sleeps: after that a renewal may come late, and then the lease is lost.
    """

    def __init__(self, batch: Batch, since: float, renew: Renew) -> None:
        self._batch = batch
        self._renew = renew
        self._loop = asyncio.get_running_loop()
        self._since = since
        self._ends = since + batch.lease_seconds
        self._next = since + batch.lease_seconds / 3
        self._delivery: asyncio.Task[Any] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lost = False

    @property
    def ends(self) -> float:
        """When the lease is over, as far as this process knows (the steady clock)."""
        return self._ends

    def age(self) -> float:
        """Seconds since the batch was claimed."""
        return steady_seconds() - self._since

    @property
    def deadline(self) -> float:
        """Until when a delivery under this lease must be over."""
        return self._ends - min(self._batch.lease_seconds * MARGIN, MARGIN_SECONDS)

    async def hold(self, writing: Awaitable[int]) -> None:
        """Do what only the holder of the lease may do; it answers how many entries are held. Raises LeaseLost."""
        if not await writing:
            self._tell_lost("another has it")
            raise LeaseLost

    async def keep_during(self, delivering: Coroutine[Any, Any, T]) -> T:
        """Run the delivery, renewing as long as it takes. Raises LeaseLost when that fails, and ends the delivery."""
        self._delivery = task = self._loop.create_task(delivering)
        self._timer = self._renew_later()
        try:
            return await task
        except asyncio.CancelledError:
            if self._lost:
                raise LeaseLost from None
            task.cancel()
            raise
        finally:
            self._timer.cancel()
            if self._renewal is not None:
                self._renewal.cancel()

    def _renew_later(self) -> asyncio.TimerHandle:
        return self._loop.call_later(self._next - steady_seconds(), self._renew_soon)

    def _renew_soon(self) -> None:
        self._renewal = self._loop.create_task(self._renew_now())

    async def _renew_now(self) -> None:
        asked = steady_seconds()
        if asked >= self._ends:
            self._lose("it could not be renewed in time")
            return
        try:
            async with asyncio.timeout(self._ends - asked):
                held = await self._renew(self._batch.token, math.ceil(self._batch.lease_seconds))
        except (StoreError, TimeoutError) as error:
            log.warning("relay.renew_failed", extra={"channel": self._batch.channel, "error": str(error)})
            pause = min(RETRY_SECONDS, self._batch.lease_seconds / 10)
            self._next = min(steady_seconds() + pause, self._ends)
        else:
            if not held:
                self._lose("another has it")
                return
            self._ends = asked + self._batch.lease_seconds
            self._next = asked + self._batch.lease_seconds / 3
        self._timer = self._renew_later()

    def _lose(self, why: str) -> None:
        self._lost = True
        self._tell_lost(why)
        if self._delivery is not None:
            self._delivery.cancel()

    def _tell_lost(self, why: str) -> None:
        log.warning("relay.lease_lost", extra={"channel": self._batch.channel, "entries": len(self._batch), "why": why})
