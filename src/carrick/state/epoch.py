"""Epochs: which place holds the shared state now. All replicas read it from one row of the database.

The four rules, and why they suffice, are in docs/decisions/0008-shared-state.md:

1. An answer of Redis counts only if its epoch was seen in the database less than LEASE_SECONDS before the answer, or is
   seen there after it.
2. Who cannot use Redis raises the epoch to the database. It opens SETTLE_SECONDS after that, when nothing more counts
   of the epoch before. Redis is not gone back to before then.
3. A statement on the tables names its epoch and neither sees nor changes anything in another one.
4. Every key belongs to one epoch. Nothing is carried over.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

LEASE_SECONDS = 2.0
SETTLE_SECONDS = 2.5
"""A little longer than the lease: clocks of two machines do not run at quite the same speed."""
STEADY_SECONDS = 600.0
"""An epoch on Redis that lasted this long forgives the failures before it."""
FIRST_HOLD_OFF_SECONDS = 5.0
LONGEST_HOLD_OFF_SECONDS = 300.0


class Epoch(msgspec.Struct, frozen=True):
    """One row of the database, as it was read. `run` is the Redis process it belongs to, None: it is in the tables.

    `name` tells its keys in Redis from those of any other epoch, also of another database. `age` is in seconds, by the
    database's clock. `failures` counts epochs on Redis that ended soon.
    """

    number: int
    name: str
    run: str | None
    failures: int
    age: float

    @property
    def on_redis(self) -> bool:
        return self.run is not None

    @property
    def opens_in(self) -> float:
        """Seconds until it may be used. On Redis at once: rule 3 ends the tables' epoch in the moment of raising."""
        return 0.0 if self.on_redis else max(0.0, SETTLE_SECONDS - self.age)

    @property
    def failures_when_left(self) -> int:
        """How many failures to count when Redis is left now."""
        return self.failures + 1 if self.age < STEADY_SECONDS else 0

    @property
    def hold_off(self) -> float:
        """Seconds to stay away from Redis, so that a replica that cannot reach it does not throw all to and fro.

        Never less than it takes an epoch of the tables to open: until then answers of the epoch before may count.
        """
        wanted = FIRST_HOLD_OFF_SECONDS * 2.0 ** min(self.failures, 10)
        return max(SETTLE_SECONDS, min(LONGEST_HOLD_OFF_SECONDS, wanted))


class Epochs(Protocol):
    """The row of the database that all replicas agree by."""

    async def current(self) -> Epoch:
        """The epoch now."""

    async def raise_from(self, number: int, *, name: str, run: str | None, failures: int) -> None:
        """Begin the next epoch, unless somebody else has already raised this one."""
