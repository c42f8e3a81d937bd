"""How many calls each user has left: about a thousand in an hour, told in headers on every answer."""

from __future__ import annotations

import math

from carrick_osmsim.clock import Clock
from carrick_osmsim.world import Budget, World

LIMIT = 1000
WINDOW_SECONDS = 3600.0


class Budgets:
    """Counts calls per user. An hour begins with the first call after the last one ended."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def of(self, user_id: int) -> Budget:
        """The budget as it is now; a new one once its hour is over, with the same limit."""
        now = self._clock.now()
        budget = self._world.budgets.get(user_id)
        if budget is None or budget.ends_at <= now:
            limit = LIMIT if budget is None else budget.limit
            budget = Budget(limit=limit, used=0, ends_at=now + WINDOW_SECONDS)
            self._world.budgets[user_id] = budget
        return budget

    def spend(self, user_id: int) -> bool:
        """Count one call; whether it was still allowed."""
        budget = self.of(user_id)
        if budget.used >= budget.limit:
            budget.over += 1
            return False
        budget.used += 1
        return True

    def reset_seconds(self, user_id: int) -> int:
        """Whole seconds until the hour is over, at least one."""
        return max(1, math.ceil(self.of(user_id).ends_at - self._clock.now()))

    def remaining(self, user_id: int) -> int:
        """How many calls are left."""
        budget = self.of(user_id)
        return max(0, budget.limit - budget.used)

    def headers(self, user_id: int | None) -> dict[str, str]:
        """The three headers; for nobody in particular they tell of an untouched hour."""
        if user_id is None:
            limit, remaining, reset = LIMIT, LIMIT, int(WINDOW_SECONDS)
        else:
            limit, remaining, reset = self.of(user_id).limit, self.remaining(user_id), self.reset_seconds(user_id)
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(remaining),
            "X-RateLimit-Reset": str(reset),
        }
