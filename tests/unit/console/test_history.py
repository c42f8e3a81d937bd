"""The last hour in memory, with a clock that stands where the test puts it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from carrick.console.history import SLOT_SECONDS, SLOTS, History
from carrick.entry import Batch, ChannelStats
from carrick.relay.meter import NoMeter, Tally

NOW = datetime(2026, 3, 2, tzinfo=UTC)
BATCH = Batch(channel="a", token=uuid4(), lease_expires_at=None, entries=())


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0 * SLOT_SECONDS

    def __call__(self) -> float:
        return self.now


def stats(waiting: int, delivered_per_second: float = 0.0) -> ChannelStats:
    return ChannelStats(
        channel="a",
        pending_count=waiting,
        held_count=0,
        claimed_count=0,
        dead_count=0,
        backlog_bytes=0,
        oldest_pending_age_seconds=None,
        delivered_per_second=delivered_per_second,
        last_success_at=None,
        last_error_at=None,
    )


def test_what_the_relay_tells_becomes_latency_and_errors() -> None:
    clock = Clock()
    history = History(clock=clock)
    clock.now += 15
    history.sent("a", 0.1, delivered=True, failed=False)
    history.sent("a", 0.3, delivered=True, failed=True)
    lately = history.lately("a")
    assert (lately.latency_ms, lately.error_share) == (200.0, 0.5)
    series = history.series("a")
    assert (len(series.latency_ms), series.latency_ms[-1], series.latency_ms[-2]) == (SLOTS, 200.0, None)


def test_of_a_channel_that_another_process_delivers_the_rate_is_known_and_latency_and_errors_are_not() -> None:
    history = History()
    history.depths([stats(5, delivered_per_second=12.5)])
    assert history.series("a").delivered[-1] == 12.5
    assert (history.lately("a").latency_ms, history.lately("a").error_share) == (None, None)


def test_what_nobody_watched_is_a_gap() -> None:
    clock = Clock()
    history = History(clock=clock)
    history.depths([stats(5)])
    clock.now += 2 * SLOT_SECONDS
    history.depths([stats(7)])
    assert list(history.series("a").waiting[-4:]) == [None, 5, None, 7]


def test_an_hour_later_nothing_is_left() -> None:
    clock = Clock()
    history = History(clock=clock)
    history.sent("a", 0.1, delivered=True, failed=False)
    history.depths([stats(5, delivered_per_second=9.0)])
    clock.now += SLOTS * SLOT_SECONDS
    series = history.series("a")
    assert {*series.delivered, *series.waiting, *series.latency_ms, *series.errors} == {None}
    assert history.lately("a").latency_ms is None


def test_a_channel_that_nothing_is_known_of_has_an_empty_hour() -> None:
    series = History().series("never")
    assert {*series.waiting, *series.delivered} == {None}


def test_only_an_hour_is_kept() -> None:
    clock = Clock()
    history = History(clock=clock)
    for _ in range(3 * SLOTS):
        history.sent("a", 1.0, delivered=True, failed=False)
        clock.now += SLOT_SECONDS
    assert len(history._slots["a"]) == SLOTS


def test_everything_is_handed_on_to_the_metrics() -> None:
    told: list[str] = []

    class Meter(NoMeter):
        def claimed(self, channel: str, entries: int, seconds: float) -> None:
            told.append("claimed")

        def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None:
            told.append("sent")

        def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None:
            told.append("finished")

        def lease_lost(self, channel: str, entries: int) -> None:
            told.append("lost")

    history = History(Meter())
    history.claimed("a", 1, 0.1)
    history.sent("a", 0.1, delivered=True, failed=False)
    history.finished("a", Tally(), BATCH, NOW)
    history.lease_lost("a", 1)
    assert told == ["claimed", "sent", "finished", "lost"]
