"""A rate over the last minute."""

from __future__ import annotations

from carrick.ops.rate import Rate


def test_it_is_zero_before_there_are_two_notes() -> None:
    rate = Rate()
    assert rate.per_second() == 0
    rate.note(1, 10)
    assert rate.per_second() == 0


def test_it_is_what_came_per_second() -> None:
    rate = Rate()
    rate.note(0, 100)
    rate.note(10, 150)
    assert rate.per_second() == 5


def test_what_is_older_than_the_window_does_not_count() -> None:
    rate = Rate(window_seconds=10)
    for second in range(101):
        rate.note(second, 1000 if second >= 50 else second * 20)
    assert rate.per_second() == 0
