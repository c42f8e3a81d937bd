"""A destination that answers for a part of a batch and is then gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from carrick.entry import Entry, Outcome
from carrick.relay.split import Sending
from carrick.sinks.sink import Refused, Report, Results, Unavailable
from tests.entries import claimed_run

GONE = Unavailable(code="gone", message="no answer", connection=True)


def test_entries_that_were_answered_for_keep_their_outcome_and_the_gate_closes() -> None:
    first, second = claimed_run(2)

    async def send(entries: Sequence[Entry]) -> Report:
        return Results(outcomes={first.id: Outcome.delivered()}, unavailable=GONE)

    sending = Sending(send)
    asyncio.run(sending.deliver([first, second]))
    left = Outcome.released(code="gone", message="no answer")
    assert sending.outcomes == {first.id: Outcome.delivered(), second.id: left}
    assert (sending.unavailable, sending.answered) == (GONE, True)


def test_after_that_no_other_part_of_the_batch_is_sent() -> None:
    entries = claimed_run(4)
    calls: list[int] = []

    async def send(part: Sequence[Entry]) -> Report:
        calls.append(len(part))
        if len(part) == 4:
            return Refused(code="400", message="no")
        return Results(outcomes={part[0].id: Outcome.delivered()}, unavailable=GONE)

    sending = Sending(send)
    asyncio.run(sending.deliver(entries))
    assert calls == [4, 2]
    assert list(sending.outcomes) == [entry.id for entry in entries[:2]]
