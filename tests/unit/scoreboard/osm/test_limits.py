"""What the remaining budget decides."""

from __future__ import annotations

import pytest

from carrick_scoreboard.osm.limits import Purpose, RateLimitState, Thresholds


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
    ("purpose", "least"),
    [("read", 11), ("look", 21), ("write", 1)],
)
def test_the_end_of_a_budget_is_for_writes_and_before_that_for_reads(purpose: Purpose, least: int) -> None:
    limits = Thresholds()
    assert [limits.allows(purpose, left) for left in (least - 1, least, 1000, None)] == [False, True, True, True]
