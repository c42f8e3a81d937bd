"""One claim, several deliveries: its entries in lanes that go out side by side, none of which another has to wait for.

A claim of several batches costs the database far less than one claim for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple, TypedDict
from uuid import UUID

from carrick.entry import Entry
from carrick.outbox.channel import Channel, Mode
from carrick.sinks.sink import Sink

MOST_CLAIMED = 1000
"""Entries of a claim of several deliveries: more would gain little, and hold up the event loop."""
WIDE_LEASES = 2
"""Leases of several deliveries at a time: one is on its way while the other is written down."""

Part = Sequence[Entry]
"""Entries of one delivery."""
Unit = tuple[str, str] | UUID
"""A group, or the one entry that has none."""


class Size(NamedTuple):
    """What one delivery may hold: so many entries, and so many bytes of payload."""

    rows: int
    bytes: int

    def deliveries(self, entries: Sequence[Entry]) -> float:
        """How many deliveries these would fill."""
        return max(len(entries) / self.rows, sum(entry.payload_size_bytes for entry in entries) / self.bytes)


class Asked(TypedDict):
    """The limits of a claim; None: the channel's own."""

    max_rows: int | None
    max_bytes: int


class Width:
    """How many deliveries a claim asks for: one at rest, more while claims come back full."""

    def __init__(self, widest: int, in_flight: int) -> None:
        self._widest = widest
        self._in_flight = in_flight
        self._now = 1

    @property
    def has_lanes(self) -> bool:
        """Whether a claim may ever be of more than one delivery."""
        return self._widest > 1

    @property
    def leases(self) -> int:
        """How many leases may be held at a time."""
        return self._in_flight if self._now == 1 else min(WIDE_LEASES, self._in_flight)

    def asks(self, size: Size) -> Asked:
        """What the next claim asks for."""
        return Asked(max_rows=None if self._now == 1 else self._now * size.rows, max_bytes=self._now * size.bytes)

    def claimed(self, deliveries: float) -> None:
        """Take note of what a claim got."""
        self._now = min(self._widest, max(1, 2 * round(deliveries)))


def widest(channel: Channel, sink: Sink, in_flight: int) -> int:
    """How many deliveries one claim may be. A coalesced group is one by itself, and its intent is about all of it."""
    if channel.mode is Mode.COALESCE or not sink.side_by_side:
        return 1
    return max(1, min(in_flight, MOST_CLAIMED // channel.batch_rows))


def lanes_of(entries: Sequence[Entry], size: Size) -> list[list[Part]]:
    """The parts of each lane, which go one after the other. All entries of a group are in one lane, in their order."""
    lanes: list[list[Entry]] = []
    lane_of: dict[Unit, list[Entry]] = {}
    share = ceil(len(entries) / max(1, ceil(size.deliveries(entries))))
    room = Size(0, 0)
    for unit, (rows, size_bytes) in _units(entries).items():
        if rows > room.rows or size_bytes > room.bytes or size.rows - room.rows >= share:
            lanes.append([])
            room = size
        lane_of[unit] = lanes[-1]
        room = Size(room.rows - rows, room.bytes - size_bytes)
    for entry in entries:
        lane_of[entry.group or entry.id].append(entry)
    return [list(_parts(lane, size)) for lane in lanes]


def _units(entries: Sequence[Entry]) -> dict[Unit, Size]:
    """What must stay in one lane, and how large it is: a lane that is one part of whole groups needs one request."""
    units: dict[Unit, Size] = {}
    for entry in entries:
        unit = entry.group or entry.id
        rows, size_bytes = units.get(unit, (0, 0))
        units[unit] = Size(rows + 1, size_bytes + entry.payload_size_bytes)
    return units


def _parts(entries: Sequence[Entry], size: Size) -> Iterator[Part]:
    """The entries in their order; one that is too large by itself has a part of its own."""
    part: list[Entry] = []
    room = size.bytes
    for entry in entries:
        room -= entry.payload_size_bytes
        if part and (len(part) == size.rows or room < 0):
            yield part
            part, room = [], size.bytes - entry.payload_size_bytes
        part.append(entry)
    yield part
