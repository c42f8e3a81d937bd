"""Handlers whose answers are wrong, through the relay: what is wrong with one entry is that entry's."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Batch, Entry, Outcome, State
from carrick.outbox.store import Store
from carrick.relay.relay import Relay
from carrick.sinks.handler import HandlerSink
from carrick.sinks.sink import Report, Results, Sink
from carrick.testing.samples import declare, ids, put_run, states
from tests.contract.relaying import SETTINGS, run
from tests.contract.scripted_sink import ScriptedSink, delivered


def relayed(store: Store, sink: Sink) -> None:
    """One relay delivers what is due now, to the end; a batch is never taken back by time."""

    async def story() -> None:
        await Relay(store, sink, declare(store), SETTINGS).once()

    run(story)


@pytest.mark.parametrize(
    "bad",
    [
        Outcome.retry(after=float("nan")),
        Outcome.retry(after="5"),  # type: ignore[arg-type]
        Outcome(kind="retry", code=503),  # type: ignore[arg-type]
        Outcome.rejected({"why": "no"}),  # type: ignore[arg-type]
        True,
    ],
    ids=str,
)
def test_one_bad_outcome_of_32_is_one_retry_and_the_others_are_delivered_once(store: Store, bad: Any) -> None:
    declare(store)
    waiting = put_run(store, 32)
    seen: Counter[UUID] = Counter()

    async def handler(batch: Batch) -> dict[UUID, Outcome]:
        seen.update(ids(batch))
        return {entry.id: bad if entry.id == waiting[7] else Outcome.delivered() for entry in batch}

    relayed(store, HandlerSink(handler))
    assert set(seen.values()) == {1}
    standing = store.standing(waiting.pop(7))
    assert (standing.state, standing.attempt_count, standing.last_error_code) == (State.PENDING, 1, "invalid_answer")
    assert "accepted: " in (standing.last_error_message or "")
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_a_code_in_numbers_a_timedelta_and_an_exception_are_written_down(store: Store) -> None:
    declare(store)
    (waiting,) = put_run(store, 1)

    def handler(batch: Batch) -> dict[UUID, Outcome]:
        return {waiting: Outcome.retry(code=503, message=ConnectionError("refused"))}

    relayed(store, HandlerSink(handler))
    standing = store.standing(waiting)
    assert (standing.last_error_code, standing.last_error_message) == ("503", "refused")


def test_a_handler_that_exits_leaves_the_process_alone(store: Store) -> None:
    declare(store)
    (waiting,) = put_run(store, 1)

    async def handler(batch: Batch) -> None:
        await asyncio.sleep(0)
        raise SystemExit(3)

    relayed(store, HandlerSink(handler))
    standing = store.standing(waiting)
    assert (standing.attempt_count, standing.last_error_code) == (1, "SystemExit")


def test_outcomes_of_a_sink_that_cannot_be_written_down_are_attempts_and_what_is_delivered_stays_so(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    declare(store)
    good, bad, left = put_run(store, 3)

    def strange(entries: Sequence[Entry]) -> Report:
        outcomes = dict(delivered(entries).outcomes)  # type: ignore[union-attr]
        del outcomes[left]
        return Results(outcomes={**outcomes, bad: Outcome.retry(after=float("nan"))})

    async def story() -> None:
        await Relay(store, ScriptedSink(strange), declare(store), SETTINGS).cycle()

    run(story)
    assert states(store, [good, bad, left]) == [State.DELIVERED, State.PENDING, State.PENDING]
    standing = store.standing(bad)
    assert (standing.attempt_count, standing.last_error_code) == (1, "InvalidInput")
    assert store.standing(left).attempt_count == 0
    assert "relay.outcomes_refused" in [record.message for record in caplog.records]
