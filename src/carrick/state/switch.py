"""Goes to and fro between Redis and the database by the rules of `epoch.py`, and keeps count of it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from carrick.errors import StoreError, StoreUnavailable
from carrick.state.epoch import LEASE_SECONDS, Epoch, Epochs
from carrick.steady import steady_seconds

log = logging.getLogger("carrick.state")


class Health(msgspec.Struct, frozen=True):
    """Whether shared state works as it was set up. Degraded: right, but on the database alone, and slower."""

    degraded: bool
    errors: int
    """How often Redis has failed this process."""
    problem: str
    """What Redis said last; nothing while it is in use."""


class Probing(Protocol):
    """A Redis that can be asked whether it is there."""

    async def probe(self) -> str:
        """Which run of the server it is. Raises StoreUnavailable."""


class Switch:
    """The epoch as this process knows it. `clock` and `sleep` are in seconds; tests bring their own."""

    def __init__(
        self,
        epochs: Epochs,
        redis: Probing | None,
        *,
        clock: Callable[[], float] = steady_seconds,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._epochs = epochs
        self._redis = redis
        self._clock = clock
        self._sleep = sleep
        self._epoch: Epoch | None = None
        self._over = False
        self._seen_at = 0.0
        self._opens_at = 0.0
        self._errors = 0
        self._problem = ""

    async def entered(self) -> Epoch:
        """The epoch to work in; waits until it opens. The guards of the work itself find out if it is over."""
        epoch = self._known() or await self._look()
        while not epoch.on_redis and (left := self._opens_at - self._clock()) > 0:
            await self._sleep(left)
            epoch = self._known() or await self._look()
        return epoch

    async def still_in(self, epoch: Epoch) -> bool:
        """Whether what Redis has just answered counts (rule 1)."""
        known = self._known()
        if known is None or self._clock() >= self._seen_at + LEASE_SECONDS:
            known = await self._look()
        return known.number == epoch.number

    def forget(self, epoch: Epoch) -> None:
        """That epoch is over: look at the database before the next work. No answer about one before it counts."""
        if self._epoch is not None and self._epoch.number == epoch.number:
            self._over = True

    async def leave_redis(self, epoch: Epoch, error: StoreError) -> None:
        """Raise the epoch to the database, unless somebody has raised it already."""
        self._errors += 1
        self._problem = str(error)
        known = await self._look()
        if known.number == epoch.number:
            log.warning("state.redis_failed", extra={"epoch": epoch.number, "error": str(error)})
            await self._epochs.raise_from(known.number, name=new_name(), run=None, failures=known.failures_when_left)
            await self._look()

    async def lost_redis(self, error: StoreError) -> bool:
        """Leave Redis if it is in use, by whomever, and wait until the database is in use; whether it was Redis."""
        epoch = await self._look()
        if not epoch.on_redis:
            return False
        await self.leave_redis(epoch, error)
        await self.entered()
        return True

    async def recover(self) -> bool:
        """Go to Redis if it answers and its time has come; whether it is in use now."""
        if self._redis is None:
            return False
        epoch = await self._look()
        if epoch.on_redis:
            return True
        if epoch.age < epoch.hold_off:
            return False
        try:
            run = await self._redis.probe()
        except StoreUnavailable as error:
            self._errors += 1
            self._problem = str(error)
            log.warning("state.redis_still_away", extra={"error": str(error)})
            return False
        await self._epochs.raise_from(epoch.number, name=new_name(), run=run, failures=epoch.failures)
        return (await self._look()).on_redis

    async def is_on_redis(self) -> bool:
        """Which place the database says. Raises StoreError."""
        return (await self._look()).on_redis

    async def look(self) -> Health:
        """How it stands by the database. Raises StoreError."""
        await self._look()
        return self.health

    @property
    def health(self) -> Health:
        """How it stands, as far as this process knows."""
        degraded = self._redis is not None and self._epoch is not None and not self._epoch.on_redis
        return Health(degraded, self._errors, self._problem if degraded else "")

    async def _look(self) -> Epoch:
        """Read the epoch. It is known to hold from the moment before."""
        asked_at = self._clock()
        epoch = await self._epochs.current()
        before = self._epoch
        if before is not None and before.number > epoch.number:
            return before  # an answer that was overtaken
        if before is None or before.number < epoch.number:
            self._opens_at = self._clock() + epoch.opens_in
            self._tell(before, epoch)
        self._epoch, self._over, self._seen_at = epoch, False, max(asked_at, self._seen_at)
        return epoch

    def _known(self) -> Epoch | None:
        """The epoch that was seen last, None when it is known to be over."""
        return None if self._over else self._epoch

    def _tell(self, before: Epoch | None, epoch: Epoch) -> None:
        if self._redis is None or (before is not None and before.on_redis == epoch.on_redis):
            return
        if epoch.on_redis:
            log.info("state.on_redis", extra={"epoch": epoch.number})
        else:
            log.warning("state.on_database", extra={"epoch": epoch.number, "opens_in_seconds": epoch.opens_in})


def new_name() -> str:
    """A name that no epoch has had, of this database or of another on the same Redis."""
    return secrets.token_hex(6)
