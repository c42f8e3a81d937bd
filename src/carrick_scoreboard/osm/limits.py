"""How much may be asked of OSM, and how long an answer stays fresh, by what is left of the user's budget. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from carrick_scoreboard.osm.classify import Budget

WRITE_RESERVE = 0.2
"""The part of a budget that only writes may use."""

Purpose = Literal["read", "write"]


class RateLimitState(StrEnum):
    """What devices are told about the budget."""

    NONE = "NONE"
    DEGRADED = "DEGRADED"
    BLOCKED = "BLOCKED"


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Below how many calls left it gets serious (RATE_LIMIT_CAUTION, _WARNING, _CRITICAL)."""

    caution: int = 200
    warning: int = 100
    critical: int = 20

    def state(self, remaining: int | None) -> RateLimitState:
        """The state without a block; what is not known is no reason to worry."""
        low = remaining is not None and remaining < self.caution
        return RateLimitState.DEGRADED if low else RateLimitState.NONE

    def fresh_seconds(self, remaining: int | None) -> int:
        """How long scores stay fresh: the less is left, the longer."""
        return self.freshness(remaining)[0]

    def freshness(self, remaining: int | None) -> tuple[int, str]:
        """How long scores stay fresh, and why."""
        if remaining is None or remaining >= self.caution:
            return 5 * 60, "enough calls are left"
        if remaining >= self.warning:
            return 10 * 60, f"fewer than {self.caution} calls are left"
        if remaining >= self.critical:
            return 15 * 60, f"fewer than {self.warning} calls are left"
        return 30 * 60, f"fewer than {self.critical} calls are left"


def affordable(budget: Budget, purpose: Purpose) -> bool:
    """Whether a call of that purpose may use the budget. The last fifth is for writes; the unknown is not spent."""
    if budget.remaining is None:
        return True
    kept = 0 if purpose == "write" or budget.limit is None else int(budget.limit * WRITE_RESERVE)
    return budget.remaining > kept
