"""How much may be asked of OSM, and how long an answer stays fresh, by what is left of the user's budget. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

Purpose = Literal["read", "look", "write"]
"""What a call is made for: scores at the pace of the cache's age, a person who asks now, or points on their way."""


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

    def allows(self, purpose: Purpose, remaining: int | None) -> bool:
        """Whether a call of that purpose may use what is left: the end is for writes. What is unknown is not spent."""
        kept = {"read": self.critical // 2, "look": self.critical, "write": 0}[purpose]
        return remaining is None or remaining > kept
