"""A relay whose sink takes parts of a claim side by side, on every store: few claims, and every promise as before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Entry, Outcome, State
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.relay.relay import Relay, RelaySettings
from carrick.sinks.sink import Report, Results, Unavailable
from carrick.testing import Clock
from carrick.testing.samples import HOUR, claim, declare, put, put_run, sample, states
from tests.contract.relaying import all_in, counted, run, running, until
from tests.contract.scripted_sink import ScriptedSink, delivered

FOUR = RelaySettings(owner="relay-1", in_flight=4, poll_seconds=600)


def deliver_all(store: Store, sink: ScriptedSink, **options: object) -> None:
    channel = declare(store, **{"batch_rows": 10, **options})  # type: ignore[arg-type]
    run(lambda: Relay(store, sink, channel, FOUR).once())  # type: ignore[arg-type,return-value]


def test_a_backlog_is_claimed_four_batches_at_a_time_and_sent_batch_by_batch(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(store)
    waiting = put_run(store, 400)
    asked: list[str] = []
    for name in ("claim", "finish_and_claim"):
        monkeypatch.setattr(store, name, counted(getattr(store, name), name, asked))
    sink = ScriptedSink(side_by_side=True)
    deliver_all(store, sink)
    assert sorted(sink.seen) == sorted(waiting)
    assert max(map(len, sink.calls)) <= 10
    assert len(asked) <= 20  # with one claim for each batch there are more than forty
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_no_more_deliveries_are_on_their_way_than_the_settings_say(store: Store) -> None:
    declare(store)
    put_run(store, 300)
    under_way, most = 0, 0

    async def counting(entries: Sequence[Entry]) -> Report:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return delivered(entries)

    deliver_all(store, ScriptedSink(counting, side_by_side=True))
    assert 1 < most <= 4


def test_groups_stay_in_order_although_claims_go_out_in_parts(store: Store) -> None:
    declare(store, mode=Mode.ORDERED)
    answers = store.put_many([sample(group_key=f"g{n % 7}" if n % 3 else None) for n in range(300)])
    place = {answer.id: n for n, answer in enumerate(answers)}
    arrived: list[UUID] = []

    async def slow_or_fast(entries: Sequence[Entry]) -> Report:
        for _ in range(entries[0].seq % 5):
            await asyncio.sleep(0)
        arrived.extend(entry.id for entry in entries)
        return delivered(entries)

    deliver_all(store, ScriptedSink(slow_or_fast, side_by_side=True), mode=Mode.ORDERED)
    assert sorted(place[entry_id] for entry_id in arrived) == list(range(300))
    for group in range(7):
        numbers = [place[entry_id] for entry_id in arrived if place[entry_id] % 3 and place[entry_id] % 7 == group]
        assert numbers == sorted(numbers)


def test_after_an_entry_that_must_wait_the_rest_of_its_group_is_not_sent_in_a_later_part(store: Store) -> None:
    declare(store, mode=Mode.ORDERED)
    waiting = put_run(store, 40, group_key="g")

    def one_waits(entries: Sequence[Entry]) -> Report:
        return Results(
            outcomes={
                entry.id: Outcome.retry(after=3600) if entry.id == waiting[25] else Outcome.delivered()
                for entry in entries
                if waiting.index(entry.id) <= 25
            }
        )

    sink = ScriptedSink(one_waits, side_by_side=True)
    deliver_all(store, sink, mode=Mode.ORDERED)
    assert states(store, waiting) == [State.DELIVERED] * 25 + [State.PENDING] * 15
    assert set(sink.seen) <= set(waiting[:30])  # those in the same part; none of the next


def test_what_was_not_sent_when_the_destination_went_away_waits_unspent(store: Store) -> None:
    declare(store)
    waiting = put_run(store, 200)
    taken: list[UUID] = []

    def then_down(entries: Sequence[Entry]) -> Report:
        if len(taken) >= 60:
            return Unavailable(code="http_503", message="come again", seconds=HOUR)
        taken.extend(entry.id for entry in entries)
        return delivered(entries)

    deliver_all(store, ScriptedSink(then_down, side_by_side=True))
    standing = {entry_id: store.standing(entry_id) for entry_id in waiting}
    assert {entry_id for entry_id in waiting if standing[entry_id].state is State.DELIVERED} == set(taken)
    left = [standing[entry_id] for entry_id in waiting if entry_id not in taken]
    assert {one.state for one in left} == {State.PENDING}
    assert {one.attempt_count for one in left} == {0}
    assert not claim(store)  # behind the gate


def test_a_coalesced_group_is_one_delivery_whatever_the_sink_can_do(store: Store) -> None:
    declare(store, mode=Mode.COALESCE)
    for group in "abc":
        put_run(store, 30, group_key=group)
    sink = ScriptedSink(side_by_side=True)
    deliver_all(store, sink, mode=Mode.COALESCE)
    assert [len(call) for call in sink.calls] == [90]


def test_of_many_leases_of_single_entries_two_go_on_when_claims_get_wide(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = declare(store, batch_rows=10)
    asked: list[str] = []
    for name in ("finish_and_claim", "finish_all"):
        monkeypatch.setattr(store, name, counted(getattr(store, name), name, asked))

    async def story() -> None:
        doors, the_rest = [asyncio.Event() for _ in range(4)], asyncio.Event()
        first: list[UUID] = []

        async def held(entries: Sequence[Entry]) -> Report:
            if len(first) < 4:
                first.append(entries[0].id)
                await doors[len(first) - 1].wait()
            else:
                await the_rest.wait()
            return delivered(entries)

        sink = ScriptedSink(held, side_by_side=True)
        async with running(store, sink, channel, FOUR):
            for count in range(1, 5):
                await asyncio.to_thread(put, store)
                await sink.until(lambda count=count: len(first) == count)  # type: ignore[misc]
            await asyncio.to_thread(put_run, store, 400)
            for number, door in enumerate(doors):
                door.set()
                await until(all_in(store, [first[number]], State.DELIVERED))
                if number == 0:
                    await sink.until(lambda: len(sink.calls) == 5)  # the first wide claim, before the next one ends
            assert sorted(asked) == ["finish_all", "finish_all", "finish_and_claim", "finish_and_claim"]
            the_rest.set()

    run(story)


def test_looking_for_fresh_entries_in_vain_does_not_make_the_claims_of_a_backlog_small(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(store)
    put_run(store, 400)
    clock.shift(3600)
    asked: list[Any] = []

    def noting(operation: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            answer = operation(*args, **kwargs)
            if kwargs["fresh_seconds"] is None and (answer[1] if isinstance(answer, tuple) else answer):
                asked.append(kwargs["max_rows"])
            return answer

        return noted

    for name in ("claim", "finish_and_claim"):
        monkeypatch.setattr(store, name, noting(getattr(store, name)))
    deliver_all(store, ScriptedSink(side_by_side=True))
    assert None not in asked[asked.index(40) :]
