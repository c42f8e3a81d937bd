"""The clock: real, moved or standing."""

from __future__ import annotations

from datetime import UTC, datetime

from carrick_osmsim.clock import Clock, ClockState

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Real:
    """Real time, as the test wants it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_clock_goes_with_real_time() -> None:
    real = Real()
    clock = Clock(ClockState(), real)
    real.now += 5
    assert clock.now() == 1005


def test_a_clock_that_was_set_goes_on_from_there() -> None:
    real = Real()
    clock = Clock(ClockState(), real)
    clock.set(NOON)
    real.now += 5
    assert clock.now() == NOON.timestamp() + 5


def test_a_stopped_clock_moves_only_when_it_is_told_to() -> None:
    real = Real()
    clock = Clock(ClockState(), real)
    clock.stop()
    real.now += 5
    assert clock.now() == 1000
    clock.advance(60)
    assert clock.now() == 1060


def test_a_clock_that_runs_again_goes_on_from_where_it_stood() -> None:
    real = Real()
    clock = Clock(ClockState(), real)
    clock.stop()
    real.now += 500
    clock.run()
    assert clock.now() == 1000
    real.now += 1
    assert clock.now() == 1001
