"""What the remaining budget decides."""

from __future__ import annotations

import pytest

from carrick_scoreboard.osm.classify import Budget
from carrick_scoreboard.osm.limits import Purpose, RateLimitState, Thresholds, affordable


@pytest.mark.parametrize(
    ("remaining", "state", "minutes"),
    [
        (None, "NONE", 5),
        (1000, "NONE", 5),
        (200, "NONE", 5),
        (199, "DEGRADED", 10),
        (100, "DEGRADED", 10),
        (99, "DEGRADED", 15),
        (20, "DEGRADED", 15),
        (19, "DEGRADED", 30),
        (0, "DEGRADED", 30),
    ],
)
def test_the_less_is_left_the_longer_scores_stay_fresh(remaining: int | None, state: str, minutes: int) -> None:
    assert Thresholds().state(remaining) == RateLimitState(state)
    assert Thresholds().fresh_seconds(remaining) == minutes * 60


def test_the_thresholds_are_settings() -> None:
    limits = Thresholds(caution=50, warning=30, critical=10)
    assert [limits.fresh_seconds(left) // 60 for left in (50, 49, 29, 9)] == [5, 10, 15, 30]


@pytest.mark.parametrize(
    ("budget", "purpose", "may"),
    [
        (Budget(1000, 201, 60), "read", True),
        (Budget(1000, 200, 60), "read", False),
        (Budget(1000, 200, 60), "write", True),
        (Budget(1000, 1, 60), "write", True),
        (Budget(1000, 0, 60), "write", False),
        (Budget(None, 1, 60), "read", True),
        (Budget(None, None, None), "read", True),
    ],
)
def test_the_last_fifth_is_for_writes(budget: Budget, purpose: Purpose, may: bool) -> None:
    assert affordable(budget, purpose) is may
