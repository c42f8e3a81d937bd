"""What a delivery writes down before it acts: it comes back with the entries, and only the holder may write it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from carrick.entry import Outcome, State
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.relay.relay import Relay, RelaySettings
from carrick.sinks.sink import Delivery, Report, Results, Sink
from carrick.testing import Clock
from carrick.testing.samples import claim, declare, put_run, states
from tests.contract.relaying import run

ONE_AT_A_TIME = RelaySettings(owner="relay-1", in_flight=1, poll_seconds=600)


class NotingSink(Sink):
    """Notes an intent, then does what the test says."""

    def __init__(self, then: Callable[[Delivery], Awaitable[Report]]) -> None:
        self._then = then
        self.intents: list[Any] = []
        self.went_on = False

    async def deliver(self, delivery: Delivery) -> Report:
        self.intents += [entry.intent for entry in delivery.entries]
        await delivery.note({"about": "to act"})
        self.went_on = True
        return await self._then(delivery)

    async def reachable(self) -> bool:
        return True

    async def close(self) -> None:
        pass


def all_of(outcome: Outcome) -> Callable[[Delivery], Awaitable[Report]]:
    async def answer(delivery: Delivery) -> Report:
        return Results(outcomes=dict.fromkeys((entry.id for entry in delivery.entries), outcome))

    return answer


def test_an_unsure_outcome_brings_the_intent_back_with_the_group(store: Store, clock: Clock) -> None:
    channel = declare(store, mode=Mode.COALESCE)
    waiting = put_run(store, 2, group_key="g")

    async def story() -> None:
        await Relay(store, NotingSink(all_of(Outcome.unsure())), channel, ONE_AT_A_TIME).once()
        await asyncio.to_thread(clock.shift, 1000)
        again = NotingSink(all_of(Outcome.delivered()))
        await Relay(store, again, channel, ONE_AT_A_TIME).once()
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
        assert not stalled.went_on

    run(story)
    assert set(states(store, waiting)) == {State.CLAIMED}
