"""The simulator as one object: the world, its clock, its faults and holds, its log. No HTTP here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from carrick_osmsim.authorize import Authorize
from carrick_osmsim.budget import Budgets
from carrick_osmsim.calls import Calls
from carrick_osmsim.clock import Clock, ClockState
from carrick_osmsim.faults import Faults
from carrick_osmsim.holds import Holds
from carrick_osmsim.seed import DEMO_APP, seeded
from carrick_osmsim.state_file import read_state, write_state
from carrick_osmsim.tokens import Tokens
from carrick_osmsim.world import World


class Simulator:
    """Owns everything. With `state` it begins with what that file holds and keeps it up to date.

    `start` is where its clock stands still from the beginning; without it the clock is the real one.
    `redirect_uris` are added to those of the demo's application. Raises StateError for a file that it cannot use.
    """

    def __init__(
        self,
        *,
        start: datetime | None = None,
        state: Path | None = None,
        redirect_uris: Sequence[str] = (),
        real: Callable[[], float] = time.time,
    ) -> None:
        self._start = start
        self._state = state
        self._redirect_uris = redirect_uris
        self._real = real
        self.faults = Faults()
        self.holds = Holds()
        self.calls = Calls()
        kept = None if state is None else read_state(state)
        self._begin(kept or self._new(start))

    def reset(self, start: datetime | None = None) -> None:
        """Back to the seed data, for the day of `start` if it is given; no faults, no holds, an empty log."""
        world = self._new(start or self._start)
        self.faults.clear()
        self.holds.release_all()
        self.calls.forget()
        self._begin(world)

    def save(self) -> None:
        """Write the world to its file, if it has one. Raises StateError."""
        if self._state is not None:
            write_state(self._state, self.world)

    def _new(self, start: datetime | None) -> World:
        clock = ClockState(stands_at=None if start is None else start.timestamp())
        return seeded(Clock(clock, self._real).today(), clock)

    def _begin(self, world: World) -> None:
        self.world = world
        self.clock = Clock(world.clock, self._real)
        self.tokens = Tokens(world, self.clock)
        self.budgets = Budgets(world, self.clock)
        self.authorize = Authorize(world, self.clock, self.tokens)
        known = world.apps[DEMO_APP].redirect_uris
        known.extend(address for address in self._redirect_uris if address not in known)
        self.save()
