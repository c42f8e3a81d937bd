"""What a delivery writes down before it acts: it comes back with the entries, and only the holder may write it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Entry, Outcome, State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.store import Store
from carrick.relay.relay import Relay, RelaySettings
from carrick.sinks.sink import Delivery, Report, Results, Sink
from carrick.testing import Clock
from carrick.testing.samples import claim, declare, put_run, states
from tests.contract.relaying import run
from tests.contract.scripted_sink import ScriptedSink

NO_GRACE = RelaySettings(owner="relay-1", poll_seconds=600, grace_seconds=0)
ONE_AT_A_TIME = RelaySettings(owner="relay-1", in_flight=1, poll_seconds=600)


class NotingSink(Sink):
    """Notes an intent, about the first entry only or about all, then does what the test says."""

    def __init__(self, then: Callable[[Delivery], Awaitable[Report]], *, about_first: bool = False) -> None:
        self._then = then
        self._about_first = about_first
        self.intents: list[Any] = []
        self.seen: list[UUID] = []
        self.noted = asyncio.Event()

    async def deliver(self, delivery: Delivery) -> Report:
        self.intents += [entry.intent for entry in delivery.entries]
        self.seen += [entry.id for entry in delivery.entries]
        await delivery.note({"about": "to act"}, [delivery.entries[0].id] if self._about_first else None)
        self.noted.set()
        return await self._then(delivery)

    async def reachable(self) -> bool:
        return True

    async def close(self) -> None:
        pass


def all_of(outcome: Outcome) -> Callable[[Delivery], Awaitable[Report]]:
    async def answer(delivery: Delivery) -> Report:
        return Results(outcomes=dict.fromkeys((entry.id for entry in delivery.entries), outcome))

    return answer


async def no_answer(_: Delivery) -> Report:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def a_fault(_: Delivery) -> Report:
    raise RuntimeError("a fault in the sink")


async def deliver_all_to(store: Store, sink: Sink, channel: Channel) -> None:
    await Relay(store, sink, channel, ONE_AT_A_TIME).once()


def test_an_unsure_outcome_brings_the_intent_back_with_the_group(store: Store, clock: Clock) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    waiting = put_run(store, 2, group_key="g")

    async def story() -> None:
        await deliver_all_to(store, NotingSink(all_of(Outcome.unsure())), channel)
        await asyncio.to_thread(clock.shift, 1000)
        again = NotingSink(all_of(Outcome.delivered()))
        await deliver_all_to(store, again, channel)
        assert again.intents == [{"about": "to act"}] * 2

    run(story)
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_who_has_lost_the_lease_cannot_note_and_does_not_act(store: Store, clock: Clock, others: Store) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    waiting = put_run(store, 1, group_key="g")

    class Stalled(NotingSink):
        async def deliver(self, delivery: Delivery) -> Report:
            await asyncio.to_thread(clock.shift, 1000)
            taken = await asyncio.to_thread(claim, others, owner="other")
            assert [entry.id for entry in taken] == waiting
            return await super().deliver(delivery)

    async def story() -> None:
        stalled = Stalled(all_of(Outcome.delivered()))
        tally = await Relay(store, stalled, channel, ONE_AT_A_TIME).once()
        assert (tally.delivered, tally.lost) == (0, 1)
        assert not stalled.noted.is_set()

    run(story)
    assert set(states(store, waiting)) == {State.CLAIMED}


def test_a_stop_after_the_note_brings_the_intent_back_with_the_group_and_nothing_newer(
    store: Store, clock: Clock
) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    noted = put_run(store, 2, group_key="g")

    async def story() -> None:
        sink = NotingSink(no_answer)
        relay = Relay(store, sink, channel, NO_GRACE)
        work = asyncio.create_task(relay.run())
        await sink.noted.wait()
        relay.stop()
        await work
        await asyncio.to_thread(put_run, store, 1, group_key="g")
        await asyncio.to_thread(clock.shift, 1000)
        again = NotingSink(all_of(Outcome.unsure()))
        await deliver_all_to(store, again, channel)
        assert (again.seen, again.intents) == (noted, [{"about": "to act"}] * 2)

    run(story)


def test_a_stop_after_a_note_about_one_entry_leaves_only_that_one_in_doubt(store: Store) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    waiting = put_run(store, 2, group_key="g")

    async def story() -> None:
        sink = NotingSink(no_answer, about_first=True)
        relay = Relay(store, sink, channel, NO_GRACE)
        work = asyncio.create_task(relay.run())
        await sink.noted.wait()
        relay.stop()
        await work

    run(story)
    assert [store.standing(entry_id).frozen for entry_id in waiting] == [True, False]
    assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [1, 0]


def test_a_fault_after_a_note_about_one_entry_leaves_only_that_one_in_doubt(store: Store) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    waiting = put_run(store, 2, group_key="g")

    async def story() -> None:
        await deliver_all_to(store, NotingSink(a_fault, about_first=True), channel)

    run(story)
    assert [store.standing(entry_id).frozen for entry_id in waiting] == [True, False]


def test_a_fault_after_the_note_brings_the_intent_back_with_the_group(store: Store, clock: Clock) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    put_run(store, 2, group_key="g")

    async def story() -> None:
        await deliver_all_to(store, NotingSink(a_fault), channel)
        await asyncio.to_thread(clock.shift, 1000)
        again = NotingSink(all_of(Outcome.delivered()))
        await deliver_all_to(store, again, channel)
        assert again.intents == [{"about": "to act"}] * 2

    run(story)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_stop_makes_what_was_on_its_way_unsure_where_a_repetition_counts(store: Store, idempotent: bool) -> None:
    channel = declare(store, batch_rows=2)
    waiting = put_run(store, 2)

    async def story() -> None:
        sink = ScriptedSink(lambda _: asyncio.get_running_loop().create_future(), idempotent=idempotent)
        relay = Relay(store, sink, channel, NO_GRACE)
        work = asyncio.create_task(relay.run())
        await sink.until(lambda: len(sink.calls) == 1)
        relay.stop()
        await work

    run(story)
    assert [store.standing(entry_id).frozen for entry_id in waiting] == [not idempotent] * 2
    assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [int(not idempotent)] * 2


def test_a_fault_of_a_sink_that_is_not_idempotent_leaves_a_doubt(store: Store) -> None:
    channel = declare(store)
    waiting = put_run(store, 2)

    def broken(_: Sequence[Entry]) -> Report:
        raise RuntimeError("a fault in the sink")

    async def story() -> None:
        await deliver_all_to(store, ScriptedSink(broken, idempotent=False), channel)

    run(story)
    assert [store.standing(entry_id).frozen for entry_id in waiting] == [True, True]
