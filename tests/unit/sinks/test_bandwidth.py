"""The bandwidth limit, on a clock that moves only when somebody sleeps."""

from __future__ import annotations

import asyncio

import pytest

from carrick.sinks.bandwidth import LARGEST_PIECE, Bandwidth


class FakeTime:
    """Sleeping moves the clock, and is written down."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def limited(time: FakeTime, rate: int) -> Bandwidth:
    return Bandwidth(rate, clock=time.clock, sleep=time.sleep)


def test_the_first_bytes_go_at_once_and_the_next_wait_for_them() -> None:
    time = FakeTime()
    bandwidth = limited(time, 1000)

    async def story() -> None:
        await bandwidth.take(500)
        await bandwidth.take(250)
        await bandwidth.take(250)

    asyncio.run(story())
    assert time.slept == [0.5, 0.25]


def test_deliveries_that_take_turns_share_one_limit() -> None:
    time = FakeTime()
    bandwidth = limited(time, 1000)

    async def story() -> None:
        await asyncio.gather(*(bandwidth.take(1000) for _ in range(4)))

    asyncio.run(story())
    assert time.now >= 103


def test_a_pause_is_not_saved_up_for_a_burst() -> None:
    time = FakeTime()
    bandwidth = limited(time, 1000)
    time.now += 3600

    async def story() -> None:
        await bandwidth.take(1000)
        await bandwidth.take(1000)

    asyncio.run(story())
    assert time.slept == [1.0]


def test_the_time_that_bytes_need_includes_those_before_them() -> None:
    time = FakeTime()
    bandwidth = limited(time, 1000)
    asyncio.run(bandwidth.take(2000))
    assert bandwidth.seconds_for(500) == 2.5


@pytest.mark.parametrize(("rate", "piece"), [(1, 1), (8000, 1000), (10**9, LARGEST_PIECE)])
def test_a_piece_is_a_part_of_a_second_and_never_too_large(rate: int, piece: int) -> None:
    assert Bandwidth(rate).piece == piece
