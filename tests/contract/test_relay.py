"""The relay on every store: claim, deliver, finish, rest, wake."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

import pytest

from carrick.entry import Batch, Entry, Outcome, State
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.relay.janitor import tidy_channel_once
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.threads import Threads
from carrick.sinks.sink import Report, Results
from carrick.testing import Clock
from carrick.testing.samples import DAY, claim, declare, put, put_run, sample, states
from tests.contract.relaying import SETTINGS, all_in, counted, run, running, until
from tests.contract.scripted_sink import ScriptedSink, delivered


def test_everything_is_delivered_once_and_in_order(store: Store) -> None:
    channel = declare(store, batch_rows=10)
    waiting = put_run(store, 95)

    async def story() -> None:
        sink = ScriptedSink()
        tally = await Relay(store, sink, channel, SETTINGS).once()
        assert sorted(sink.seen) == sorted(waiting)
        assert (tally.claimed, tally.delivered) == (95, 95)

    run(story)
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_an_entry_put_while_the_relay_rests_wakes_it(store: Store, others: Store) -> None:
    channel = declare(store)

    async def story() -> None:
        sink = ScriptedSink()
        async with running(store, sink, channel):
            for who in (store, others, store):
                before = len(sink.seen)
                entry_id = await asyncio.to_thread(put, who)
                await sink.until(lambda before=before: len(sink.seen) > before)  # type: ignore[misc]
                await until(all_in(store, [entry_id], State.DELIVERED))

    run(story)


class Bell(asyncio.Event):
    """Tells when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.awaited.set()
        await super().wait()
        self.awaited.clear()
        return True


def test_a_relay_that_was_woken_claims_where_the_bell_was_heard_and_else_by_a_thread(store: Store) -> None:
    channel = declare(store, batch_rows=200)
    asked: list[tuple[int, int]] = []

    async def at_once(channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: Any) -> Batch | None:
        asked.append((max_rows, max_bytes))
        if len(asked) == 1:
            return None  # it cannot be done just now
        return store.claim(channel, owner, max_rows=max_rows, max_bytes=max_bytes, fresh_seconds=fresh_seconds)

    async def story() -> None:
        bell = Bell()
        relay = Relay(store, ScriptedSink(), channel, SETTINGS, bell=bell, at_once=at_once)
        work = asyncio.create_task(relay.run())
        for rung in (1, 2):
            await bell.awaited.wait()
            entry_id = await asyncio.to_thread(put, store)
            bell.set()
            await until(all_in(store, [entry_id], State.DELIVERED))
            assert asked == [(100, channel.batch_bytes)] * rung  # not for what it finds on its own afterwards
        relay.stop()
        await work

    run(story)


def test_an_entry_that_is_due_later_wakes_it_by_itself(store: Store) -> None:
    channel = declare(store)

    async def story() -> None:
        sink = ScriptedSink()
        async with running(store, sink, channel):
            await asyncio.to_thread(put, store, delay_seconds=0.2)
            await sink.until(lambda: len(sink.seen) == 1)

    run(story)


@pytest.mark.parametrize("outcome", [Outcome.retry(code="http_500"), Outcome.released()], ids=["failed", "given back"])
def test_what_comes_back_while_the_relay_rests_is_taken_when_it_is_due(store: Store, outcome: Outcome) -> None:
    channel = declare(store, backoff_base_seconds=0.01, backoff_cap_seconds=0.01)
    put(store)

    async def story() -> None:
        bell = Bell()
        at_rest = asyncio.Event()

        async def comes_back(entries: Sequence[Entry]) -> Report:
            await at_rest.wait()
            sink.answer = delivered
            return Results(outcomes={entry.id: outcome for entry in entries})

        sink = ScriptedSink(comes_back)
        relay = Relay(store, sink, channel, SETTINGS, bell=bell)
        work = asyncio.create_task(relay.run())
        await sink.until(lambda: len(sink.calls) == 1)
        await bell.awaited.wait()
        at_rest.set()
        await sink.until(lambda: len(sink.calls) == 2)
        relay.stop()
        await work

    run(story)


def test_at_rest_a_relay_asks_twice_per_poll(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = declare(store)
    asked: list[str] = []
    for name in ("claim", "rest", "stir", "gates", "renew", "finish", "finish_all", "finish_and_claim"):
        monkeypatch.setattr(store, name, counted(getattr(store, name), name, asked))

    async def story() -> None:
        settings = RelaySettings(owner="relay-1", poll_seconds=0.02)
        relay = Relay(store, ScriptedSink(), channel, settings)
        work = asyncio.create_task(relay.run())
        await until(lambda: asked.count("rest") >= 5)
        relay.stop()
        await work

    run(story)
    assert asked.count("claim") <= asked.count("rest") + 1
    assert asked[0] == "gates"  # when it starts, and never again
    assert set(asked[1:]) <= {"claim", "rest", "stir"}


def test_one_replica_at_a_time_tidies_up(store: Store, clock: Clock, others: Store) -> None:
    declare(store, retention_days=1)
    put_run(store, 3)
    store.finish_all(claim(store).token)
    clock.shift(1.1 * DAY)

    async def story() -> None:
        threads = Threads(1)
        assert await tidy_channel_once(store, threads, "things", "relay-1") == 3
        await asyncio.to_thread(put, store)
        await asyncio.to_thread(lambda: store.finish_all(claim(store).token))
        await asyncio.to_thread(clock.shift, 2 * DAY)
        assert await tidy_channel_once(store, threads, "things", "relay-1") == 1
        assert await tidy_channel_once(others, threads, "things", "relay-2") == 0
        threads.close()

    run(story)


def test_after_an_outage_fresh_entries_do_not_wait_for_the_backlog(store: Store, clock: Clock) -> None:
    channel = declare(store, batch_rows=1)
    old = put_run(store, 30)
    clock.shift(3600)

    async def story() -> None:
        fresh: list[UUID] = []

        def meanwhile(entries: Sequence[Entry]) -> Report:
            if len(fresh) < 10:
                fresh.append(put(store))
            return delivered(entries)

        sink = ScriptedSink(meanwhile)
        relay = Relay(store, sink, channel, RelaySettings(owner="relay-1", in_flight=1))
        await relay.once()
        last_fresh = max(sink.seen.index(entry_id) for entry_id in fresh)
        assert last_fresh < len(sink.seen) - 10
        assert set(sink.seen) == {*old, *fresh}

    run(story)


def test_a_group_stays_in_order_across_batches(store: Store) -> None:
    channel = declare(store, mode=Mode.ORDERED, batch_rows=3)
    answers = store.put_many([sample(group_key=f"g{n % 4}") for n in range(40)])
    place = {answer.id: n for n, answer in enumerate(answers)}

    async def story() -> None:
        sink = ScriptedSink()
        await Relay(store, sink, channel, RelaySettings(owner="relay-1", in_flight=4)).once()
        for group in range(4):
            numbers = [place[entry_id] for entry_id in sink.seen if place[entry_id] % 4 == group]
            assert numbers == sorted(numbers)
        assert len(sink.seen) == 40

    run(story)


def test_results_are_per_entry(store: Store) -> None:
    channel = declare(store)
    one, two, three, four = put_run(store, 4)

    async def story() -> None:
        outcomes = {
            one: Outcome.delivered(),
            two: Outcome.retry(after=60, code="http_500"),
            three: Outcome.rejected("no"),
        }
        sink = ScriptedSink(lambda _: Results(outcomes=outcomes))
        relay = Relay(store, sink, channel, SETTINGS)
        tally = await relay.cycle()
        assert (tally.delivered, tally.retried, tally.dead, tally.released) == (1, 1, 1, 1)

    run(story)
    assert states(store, [one, two, three, four]) == [
        State.DELIVERED,
        State.PENDING,
        State.DEAD,
        State.PENDING,
    ]
