"""A batch on its way through a sink: whole where the destination takes it, else in halves until the bad one is alone.

For one bad entry among n that makes at most 2·⌈log2 n⌉ + 1 calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import assert_never
from uuid import UUID

from carrick.entry import Batch, Entry, Outcome, OutcomeKind
from carrick.relay.lanes import Part
from carrick.sinks.sink import Refused, Report, Results, Unavailable

Send = Callable[[Sequence[Entry]], Awaitable[Report]]

SMALLEST_BYTES = 1024
FIRST_PATIENCE = 8
LONGEST_PATIENCE = 256
"""Batches that fit until more is tried: one in so many may be a request in vain."""
GOES_ON = frozenset({OutcomeKind.DELIVERED, OutcomeKind.DUPLICATE, OutcomeKind.REJECTED})
"""Outcomes after which the next of a group may go."""


class Sending:
    """One batch, and what became of its entries so far. An entry without an outcome was not tried."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting_groups: set[tuple[str, str]] = set()
        self.outcomes: dict[UUID, Outcome] = {}
        self.unavailable: Unavailable | None = None
        self.answered = False
        """Whether the destination has looked at anything: then it is there."""
        self._too_large: list[Sequence[Entry]] = []

    @property
    def too_large_bytes(self) -> int | None:
        """The size of the smallest part that was too large, if none of its entries is too large alone."""
        alone = {part[0].id for part in self._too_large if len(part) == 1}
        return min((_size_of(part) for part in self._too_large if alone.isdisjoint(e.id for e in part)), default=None)

    async def deliver_side_by_side(self, lanes: Sequence[Sequence[Part]], places: asyncio.Semaphore) -> None:
        """Hand over the parts of each lane one after the other, each when it has got a place."""

        async def along(parts: Sequence[Part]) -> None:
            for part in parts:
                async with places:
                    await self.deliver(part)

        under_way = [asyncio.create_task(along(parts)) for parts in lanes]
        try:
            await asyncio.gather(*under_way)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.wait(under_way)

    async def deliver(self, entries: Sequence[Entry]) -> None:
        """Hand the entries over, in their order. After a part that waits, the rest of its group is not tried (G5)."""
        if self.unavailable is not None:
            return
        if self._waiting_groups:
            entries = [entry for entry in entries if entry.group not in self._waiting_groups]
        if not entries:
            return
        report = await self._send(entries)
        match report:
            case Results():
                self.answered = True
                self.unavailable = self.unavailable or report.unavailable  # another lane may have found out before
                self._note(entries, report)
            case Refused():
                self.answered = True
                if report.too_large:
                    self._too_large.append(entries)
                await self._split(entries, report)
            case Unavailable():
                self.unavailable = self.unavailable or report
                if report.too_large:
                    self._too_large.append(entries)
                came_back = Outcome.unsure if report.unsure else Outcome.released
                outcome = came_back(code=report.code, message=report.message)
                self.outcomes |= dict.fromkeys((entry.id for entry in entries), outcome)
            case _:
                assert_never(report)

    def _note(self, entries: Sequence[Entry], results: Results) -> None:
        left = results.unavailable
        untried = None if left is None else Outcome.released(code=left.code, message=left.message)
        for entry in entries:
            outcome = results.outcomes.get(entry.id, untried)
            if outcome is not None:
                self.outcomes[entry.id] = outcome
            if (group := entry.group) is not None and (outcome is None or outcome.kind not in GOES_ON):
                self._waiting_groups.add(group)

    async def _split(self, entries: Sequence[Entry], refused: Refused) -> None:
        if len(entries) == 1:
            self.outcomes[entries[0].id] = Outcome.rejected(refused.message, code=refused.code)
            return
        middle = len(entries) // 2
        await self.deliver(entries[:middle])
        await self.deliver(entries[middle:])


class Fit:
    """How many bytes a delivery may have: half of what was too large, and twice as much after many that were not.

    Each time it was too large, it takes twice as many until more is tried again.
    """

    def __init__(self, most: int) -> None:
        self.bytes = self._most = most
        self._patience = FIRST_PATIENCE
        self._fitting = 0

    def learn(self, sending: Sending) -> None:
        """Take note of how a batch was taken."""
        too_large = sending.too_large_bytes
        if too_large is not None and too_large <= self.bytes:
            self.bytes = max(SMALLEST_BYTES, too_large // 2)
            self._patience = min(2 * self._patience, LONGEST_PATIENCE)
            self._fitting = 0
        elif too_large is None and sending.answered and self.bytes < self._most:
            self._fitting += 1
            if self._fitting == self._patience:
                self.bytes = min(2 * self.bytes, self._most)
                self._fitting = 0


def complete(batch: Batch, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, Outcome] | None:
    """An outcome for each entry: what was not tried is released. None when everything was delivered."""
    delivered = Outcome.delivered()
    if len(outcomes) == len(batch) and all(outcome == delivered for outcome in outcomes.values()):
        return None
    return {entry.id: outcomes.get(entry.id, Outcome.released()) for entry in batch}


def plain(batch: Batch, outcomes: Mapping[UUID, Outcome], error: Exception) -> dict[UUID, Outcome]:
    """The same without the details, which could not be written down: what failed has failed of this error."""

    def of(outcome: Outcome) -> Outcome:
        match getattr(outcome, "kind", None):
            case (OutcomeKind.DELIVERED | OutcomeKind.DUPLICATE | OutcomeKind.RELEASED) as kind:
                return Outcome(kind=kind)
            case OutcomeKind.UNSURE:
                return Outcome.unsure(code=type(error).__name__, message=error)
            case _:
                return Outcome.retry(code=type(error).__name__, message=error)

    return {entry.id: of(outcomes.get(entry.id, Outcome.released())) for entry in batch}


def _size_of(entries: Sequence[Entry]) -> int:
    return sum(entry.payload_size_bytes for entry in entries)
