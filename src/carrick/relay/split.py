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
        self.too_large_bytes: int | None = None
        """The size of the smallest part that was too large for the destination."""

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
                self._measure(entries, report)
                await self._split(entries, report)
            case Unavailable():
                self.unavailable = self.unavailable or report
                self._measure(entries, report)
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

    def _measure(self, entries: Sequence[Entry], report: Refused | Unavailable) -> None:
        if report.too_large:
            size = sum(entry.payload_size_bytes for entry in entries)
            self.too_large_bytes = min(size, self.too_large_bytes or size)

    async def _split(self, entries: Sequence[Entry], refused: Refused) -> None:
        if len(entries) == 1:
            self.outcomes[entries[0].id] = Outcome.rejected(refused.message, code=refused.code)
            return
        middle = len(entries) // 2
        await self.deliver(entries[:middle])
        await self.deliver(entries[middle:])


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
