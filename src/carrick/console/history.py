"""The last hour, channel by channel: counts of the database, and how the calls of this process went.

Kept in memory in slots of half a minute; used from the event loop only.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from carrick.entry import Batch, ChannelStats
from carrick.relay.meter import Meter, NoMeter, Tally

SLOT_SECONDS = 30
SLOTS = 120


class Slot(msgspec.Struct):
    """What happened in one slot of time. What the database counts is None when nobody looked."""

    number: int
    calls: int = 0
    calls_failed: int = 0
    call_seconds: float = 0.0
    waiting: int | None = None
    dead: int | None = None
    oldest: float | None = None
    delivered: float | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The last hour, the oldest slot first. None: nothing is known of that slot.

    `oldest` is the age of the oldest waiting entry in seconds, 0 when nothing waited; `delivered` is entries per
    second, of all processes. `latency_ms` is the mean of a call and `errors` the share of calls in which something
    failed, both of this process only.
    """

    slot_seconds: int
    waiting: Sequence[int | None]
    oldest: Sequence[float | None]
    dead: Sequence[int | None]
    delivered: Sequence[float | None]
    latency_ms: Sequence[float | None]
    errors: Sequence[float | None]


class Lately(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of this process in the last half to whole minute; None where there were none."""

    latency_ms: float | None
    error_share: float | None


class History:
    """Is the relay's meter, and hands everything on to another one."""

    def __init__(self, onward: Meter | None = None, clock: Callable[[], float] = time.time) -> None:
        self._onward: Meter = onward or NoMeter()
        self._clock = clock
        self._slots: defaultdict[str, deque[Slot]] = defaultdict(lambda: deque(maxlen=SLOTS))

    def claimed(self, channel: str, entries: int, seconds: float) -> None:
        self._onward.claimed(channel, entries, seconds)

    def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None:
        self._onward.sent(channel, seconds, delivered=delivered, failed=failed)
        slot = self._slot(channel)
        slot.calls += 1
        slot.calls_failed += failed
        slot.call_seconds += seconds

    def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None:
        self._onward.finished(channel, tally, batch, now)

    def lease_lost(self, channel: str, entries: int) -> None:
        self._onward.lease_lost(channel, entries)

    def depths(self, stats: Sequence[ChannelStats]) -> None:
        """So many wait now, so many are dead, and so fast they are delivered."""
        for channel in stats:
            slot = self._slot(channel.channel)
            slot.waiting = channel.pending_count + channel.claimed_count
            slot.dead = channel.dead_count
            slot.oldest = round(channel.oldest_pending_age_seconds or 0.0, 1)
            slot.delivered = round(channel.delivered_per_second, 2)

    def series(self, channel: str) -> Series:
        """The last hour of a channel."""
        newest = self._number()
        known = {slot.number: slot for slot in self._slots.get(channel, ())}
        slots = [known.get(number, Slot(number)) for number in range(newest - SLOTS + 1, newest + 1)]
        return Series(
            slot_seconds=SLOT_SECONDS,
            waiting=[slot.waiting for slot in slots],
            oldest=[slot.oldest for slot in slots],
            dead=[slot.dead for slot in slots],
            delivered=[slot.delivered for slot in slots],
            latency_ms=[_latency([slot]) for slot in slots],
            errors=[_errors([slot]) for slot in slots],
        )

    def lately(self, channel: str) -> Lately:
        """How it goes now: this slot and the one before."""
        newest = self._number()
        slots = [slot for slot in self._slots.get(channel, ()) if slot.number >= newest - 1]
        return Lately(latency_ms=_latency(slots), error_share=_errors(slots))

    def _slot(self, channel: str) -> Slot:
        slots, number = self._slots[channel], self._number()
        if not slots or slots[-1].number < number:
            slots.append(Slot(number))
        return slots[-1]

    def _number(self) -> int:
        return int(self._clock() // SLOT_SECONDS)


def _latency(slots: Sequence[Slot]) -> float | None:
    calls = sum(slot.calls for slot in slots)
    return round(1000 * sum(slot.call_seconds for slot in slots) / calls, 1) if calls else None


def _errors(slots: Sequence[Slot]) -> float | None:
    calls = sum(slot.calls for slot in slots)
    return round(sum(slot.calls_failed for slot in slots) / calls, 4) if calls else None
