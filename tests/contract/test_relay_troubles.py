"""The relay through everything else that goes wrong: entries, leases, the database, a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from carrick.entry import Entry, State
from carrick.errors import StoreUnavailable
from carrick.outbox.store import Store
from carrick.relay.relay import Relay, RelaySettings
from carrick.sinks.sink import Refused, Report, Unavailable
from carrick.testing import Clock
from carrick.testing.samples import claim, declare, ids, put_run, states
from tests.contract.relaying import SETTINGS, all_in, run, running, until
from tests.contract.scripted_sink import ScriptedSink, delivered, delivered_after

ONE_AT_A_TIME = RelaySettings(owner="relay-1", in_flight=1, poll_seconds=600)
"""No second batch: it would take back what the test lets expire."""
KILOBYTE = b'"' + b"x" * 998 + b'"'


def test_a_lease_that_moved_on_leaves_the_entries_to_whoever_has_them(
    store: Store, clock: Clock, others: Store
) -> None:
    channel = declare(store)
    waiting = put_run(store, 3)

    async def story() -> None:
        go_on = asyncio.Event()
        sink = ScriptedSink(delivered_after(go_on))
        relay = Relay(store, sink, channel, ONE_AT_A_TIME)
        work = asyncio.create_task(relay.once())
        await sink.until(lambda: len(sink.calls) == 1)
        await asyncio.to_thread(clock.shift, 1000)
        taken = await asyncio.to_thread(lambda: [claim(others, owner="other", max_rows=1) for _ in range(3)])
        assert {entry.id for batch in taken for entry in batch} == set(waiting)
        sink.answer = delivered
        go_on.set()
        tally = await work
        assert (tally.delivered, tally.lost) == (0, 3)
        for batch in taken:
            await asyncio.to_thread(others.finish_all, batch.token)

    run(story)
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_one_poisonous_entry_among_a_hundred_dies_alone(store: Store) -> None:
    channel = declare(store)
    waiting = put_run(store, 100)
    bad = waiting[42]

    async def story() -> None:
        def picky(entries: Sequence[Entry]) -> Report:
            if bad in ids(entries):
                return Refused(code="http_422", message="not an event")
            return delivered(entries)

        tally = await Relay(store, ScriptedSink(picky), channel, SETTINGS).once()
        assert (tally.delivered, tally.dead) == (99, 1)

    run(story)
    assert store.standing(bad).dlq_reason == "rejected"
    assert store.standing(bad).last_error_code == "http_422"
    assert states(store, waiting).count(State.DELIVERED) == 99


def test_what_was_too_large_makes_the_next_batches_smaller(store: Store) -> None:
    channel = declare(store, batch_rows=16)
    put_run(store, 32, payload=KILOBYTE)

    async def story() -> None:
        def narrow(entries: Sequence[Entry]) -> Report:
            if len(entries) > 4:
                return Refused(code="http_413", message="too large", too_large=True)
            return delivered(entries)

        sink = ScriptedSink(narrow)
        settings = RelaySettings(owner="relay-1", in_flight=1)
        assert (await Relay(store, sink, channel, settings).once()).delivered == 32
        assert [len(call) for call in sink.calls[:7]] == [16, 8, 4, 4, 8, 4, 4]
        assert all(len(call) <= 4 for call in sink.calls[7:])

    run(story)


def test_one_entry_that_is_too_large_by_itself_makes_no_other_batch_smaller(store: Store) -> None:
    channel = declare(store, batch_rows=16)
    waiting = put_run(store, 320, payload=KILOBYTE)

    async def story() -> None:
        def picky(entries: Sequence[Entry]) -> Report:
            if waiting[20] in ids(entries):
                return Refused(code="http_413", message="too large", too_large=True)
            return delivered(entries)

        sink = ScriptedSink(picky)
        assert (await Relay(store, sink, channel, ONE_AT_A_TIME).once()).delivered == 319
        assert len(sink.calls) <= 320 / 16 + 2 * 4

    run(story)


def test_batches_grow_back_after_one_that_was_too_large(store: Store) -> None:
    channel = declare(store, batch_rows=16)
    put_run(store, 640, payload=KILOBYTE)

    async def story() -> None:
        def narrow_at_first(entries: Sequence[Entry]) -> Report:
            if len(entries) > 4 and len(sink.calls) < 8:
                return Refused(code="http_413", message="too large", too_large=True)
            return delivered(entries)

        sink = ScriptedSink(narrow_at_first)
        assert (await Relay(store, sink, channel, ONE_AT_A_TIME).once()).delivered == 640
        assert len(sink.calls[-2]) == 16
        assert len(sink.calls) < 80  # 40 batches of 16; 160 would be of 4

    run(story)


def test_a_gateways_limit_lets_everything_through_in_smaller_batches(store: Store) -> None:
    channel = declare(store, batch_rows=16, backoff_base_seconds=0.001, backoff_cap_seconds=0.001)
    waiting = put_run(store, 24, payload=KILOBYTE)

    async def story() -> None:
        def gateway(entries: Sequence[Entry]) -> Report:
            if len(entries) > 4:
                return Unavailable(code="http_413", message="a page", too_large=True)
            return delivered(entries)

        async with running(store, ScriptedSink(gateway), channel, ONE_AT_A_TIME):
            await until(all_in(store, waiting, State.DELIVERED))

    run(story)
    assert {store.standing(entry_id).attempt_count for entry_id in waiting} == {1}


def test_a_sink_that_breaks_spends_an_attempt_and_loses_nothing(store: Store) -> None:
    channel = declare(store)
    waiting = put_run(store, 2)

    async def story() -> None:
        def broken(_: Sequence[Entry]) -> Report:
            raise RuntimeError("a fault in the sink")

        assert (await Relay(store, ScriptedSink(broken), channel, SETTINGS).once()).retried == 2

    run(story)
    assert [store.standing(entry_id).last_error_code for entry_id in waiting] == ["RuntimeError"] * 2


def test_a_stop_lets_what_is_under_way_end_and_claims_nothing_more(store: Store) -> None:
    channel = declare(store, batch_rows=1)
    waiting = put_run(store, 5)

    async def story() -> None:
        go_on = asyncio.Event()
        sink = ScriptedSink(delivered_after(go_on))
        relay = Relay(store, sink, channel, SETTINGS)
        work = asyncio.create_task(relay.run())
        await sink.until(lambda: len(sink.calls) == 2)
        relay.stop()
        go_on.set()
        await work
        assert len(sink.calls) == 2

    run(story)
    assert states(store, waiting).count(State.DELIVERED) == 2
    assert states(store, waiting).count(State.PENDING) == 3


@pytest.mark.parametrize("in_flight", [4, 1], ids=["places free", "all places taken"])
def test_what_does_not_end_within_the_grace_time_goes_back_unspent(store: Store, in_flight: int) -> None:
    channel = declare(store, batch_rows=2)
    waiting = put_run(store, 2)

    async def story() -> None:
        sink = ScriptedSink(lambda _: _forever())
        relay = Relay(store, sink, channel, RelaySettings(owner="relay-1", in_flight=in_flight, grace_seconds=0))
        work = asyncio.create_task(relay.run())
        await sink.until(lambda: len(sink.calls) == 1)
        relay.stop()
        await work

    run(story)
    assert states(store, waiting) == [State.PENDING] * 2
    assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [0, 0]


def test_a_finish_that_the_database_refuses_is_made_up_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = declare(store)
    waiting = put_run(store, 3)
    failures = iter([True, True])
    for name in ("finish_and_claim", "finish_all", "finish"):
        monkeypatch.setattr(store, name, _failing(getattr(store, name), failures))

    async def story() -> None:
        sink = ScriptedSink()
        await Relay(store, sink, channel, SETTINGS).once()
        assert len(sink.calls) == 1

    run(story)
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_a_database_that_is_away_is_asked_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = declare(store)
    waiting = put_run(store, 1)
    monkeypatch.setattr(store, "claim", _failing(store.claim, iter([True])))

    async def story() -> None:
        sink = ScriptedSink()
        async with running(store, sink, channel):
            await sink.until(lambda: len(sink.calls) == 1)
            await until(all_in(store, waiting, State.DELIVERED))

    run(story)


async def _forever() -> Report:
    await asyncio.Event().wait()
    raise AssertionError


def _failing(operation: Callable[..., Any], failures: Iterator[bool]) -> Callable[..., Any]:
    def failing(*args: Any, **kwargs: Any) -> Any:
        if next(failures, False):
            raise StoreUnavailable("the database went away")
        return operation(*args, **kwargs)

    return failing
