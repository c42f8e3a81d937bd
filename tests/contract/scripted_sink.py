"""A destination in the hands of a test: it records what arrives, waits where told to, and answers what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from carrick.entry import Entry, Outcome
from carrick.sinks.sink import Delivery, Report, Results, Unavailable

Answer = Callable[[Sequence[Entry]], Report | Awaitable[Report]]


def delivered(entries: Sequence[Entry]) -> Report:
    """All of them arrived."""
    return Results(outcomes={entry.id: Outcome.delivered() for entry in entries})


def delivered_after(go_on: asyncio.Event) -> Answer:
    """All of them arrive once the test says so."""

    async def slow(entries: Sequence[Entry]) -> Report:
        await go_on.wait()
        return delivered(entries)

    return slow


def down(_: Sequence[Entry]) -> Report:
    """Nobody is there."""
    return Unavailable(code="connect_refused", message="nobody is there", connection=True)


class ScriptedSink:
    """Answers with `answer`, which a test may change at any time."""

    def __init__(self, answer: Answer = delivered, *, side_by_side: bool = False, idempotent: bool = True) -> None:
        self.answer = answer
        self.side_by_side = side_by_side
        self.idempotent = idempotent
        self.calls: list[list[UUID]] = []
        self.arrived = asyncio.Condition()
        self.up = True
        self.knocked = asyncio.Event()
        self.closed = False

    @property
    def seen(self) -> list[UUID]:
        """Every entry that came, in order, as often as it came."""
        return [entry_id for call in self.calls for entry_id in call]

    async def deliver(self, delivery: Delivery) -> Report:
        async with self.arrived:
            self.calls.append([entry.id for entry in delivery.entries])
            self.arrived.notify_all()
        report = self.answer(delivery.entries)
        return (
            report if isinstance(report, Results | Unavailable) or not isinstance(report, Awaitable) else await report
        )

    async def reachable(self) -> bool:
        self.knocked.set()
        return self.up

    async def close(self) -> None:
        self.closed = True

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when it is so; it is looked at whenever something arrives."""
        async with self.arrived:
            await self.arrived.wait_for(condition)
