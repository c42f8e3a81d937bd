"""The relay at a destination that fails: gates close and open, nothing is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from carrick.entry import Entry, Gate, State
from carrick.outbox.store import Store
from carrick.relay import breaker
from carrick.relay.relay import Relay
from carrick.sinks.sink import Report, Results, Unavailable
from carrick.testing import Clock
from carrick.testing.samples import declare, put, put_run, states
from tests.contract.relaying import SETTINGS, all_in, counted, run, running, until
from tests.contract.scripted_sink import ScriptedSink, delivered, down


def test_a_destination_that_is_down_costs_no_attempt_and_closes_the_gate(store: Store) -> None:
    channel = declare(store)
    waiting = put_run(store, 5)

    async def story() -> None:
        tally = await Relay(store, ScriptedSink(down), channel, SETTINGS).once()
        assert tally.released == 5

    run(story)
    (gate,) = store.gates("things")
    assert (gate.scope, gate.consecutive_failures) == ("*", 1)
    assert "connect_refused" in gate.reason
    assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [0] * 5
    assert set(states(store, waiting)) == {State.PENDING}


def test_after_the_gates_time_one_entry_tries_and_then_all_go(store: Store, clock: Clock) -> None:
    channel = declare(store)
    waiting = put_run(store, 5)

    async def story() -> None:
        sink = ScriptedSink(down)
        relay = Relay(store, sink, channel, SETTINGS)
        await relay.once()
        await asyncio.to_thread(clock.shift, 10)
        sink.calls.clear()
        sink.answer = delivered
        tally = await Relay(store, sink, channel, SETTINGS).once()
        assert [len(call) for call in sink.calls] == [1, 4]
        assert tally.delivered == 5

    run(story)
    assert not store.gates("things")
    assert set(states(store, waiting)) == {State.DELIVERED}


def test_a_probe_in_vain_closes_the_gate_for_longer(store: Store, clock: Clock) -> None:
    channel = declare(store)
    put_run(store, 5)

    async def story() -> None:
        sink = ScriptedSink(down)
        for _ in range(6):
            await Relay(store, sink, channel, SETTINGS).once()
            await asyncio.to_thread(clock.shift, 1000)
        assert [len(call) for call in sink.calls] == [5, 1, 1, 1, 1, 1]
        sink.answer = lambda _: Unavailable(code="http_503", message="later", seconds=2000)
        await Relay(store, sink, channel, SETTINGS).once()

    run(story)
    (gate,) = store.gates("things")
    assert gate.consecutive_failures == 6
    assert gate.reason == "http_503: later"


def test_a_returning_network_is_noticed_before_the_backoff_is_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = declare(store)
    waiting = put_run(store, 5)
    store.close_gate("things", "*", 0, "warm-up")
    for _ in range(12):
        store.fail_gate("things", "*", "connect_refused: long outage", cap_seconds=3600, probe=True)
    store.close_gate("things", "*", 0, "connect_refused: long outage")
    monkeypatch.setattr(breaker, "KNOCK_SECONDS", 0.01)

    async def story() -> None:
        sink = ScriptedSink(down)
        sink.up = False
        async with running(store, sink, channel):
            await sink.until(lambda: len(sink.calls) == 1)
            await until(lambda: bool(store.gates("things")))
            sink.answer = delivered
            sink.up = True
            await until(all_in(store, waiting, State.DELIVERED))

    run(story)
    assert not store.gates("things")


def closed_for_long(store: Store) -> None:
    """The gate as an outage of hours has left it."""
    for _ in range(12):
        store.fail_gate("things", "*", "connect_refused: long outage", cap_seconds=3600, probe=True)


async def has_begun(store: Store) -> None:
    """Return when the relay has delivered an entry."""
    entry_id = await asyncio.to_thread(put, store)
    await until(all_in(store, [entry_id], State.DELIVERED))


def test_a_relay_that_starts_tries_at_once_whatever_the_backoff(store: Store) -> None:
    channel = declare(store)
    waiting = put_run(store, 5)
    closed_for_long(store)

    async def story() -> None:
        async with running(store, ScriptedSink(), channel):
            await until(all_in(store, waiting, State.DELIVERED))

    run(story)
    assert not store.gates("things")


def test_a_gate_that_another_relay_has_closed_is_opened_when_the_network_returns(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = declare(store)
    monkeypatch.setattr(breaker, "KNOCK_SECONDS", 0.01)

    async def story() -> None:
        sink = ScriptedSink()
        async with running(store, sink, channel):
            await has_begun(store)
            sink.up = False
            await asyncio.to_thread(closed_for_long, store)
            waiting = await asyncio.to_thread(put_run, store, 5)
            await sink.knocked.wait()
            sink.up = True
            await until(all_in(store, waiting, State.DELIVERED))

    run(story)
    assert not store.gates("things")


def test_a_gate_that_another_relay_has_closed_for_an_answer_is_not_opened_for_a_connection(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = declare(store)
    monkeypatch.setattr(breaker, "KNOCK_SECONDS", 0.01)

    async def story() -> None:
        sink = ScriptedSink()
        async with running(store, sink, channel) as relay:
            await has_begun(store)
            await asyncio.to_thread(closed_for_long, store)
            await asyncio.to_thread(put_run, store, 5)
            await sink.knocked.wait()
            await until(lambda: not relay._breaker._is_knocking)
        assert len(sink.calls) == 1

    run(story)
    assert store.gates("things")


def test_a_destination_that_asks_for_time_gets_it(store: Store, clock: Clock) -> None:
    channel = declare(store)
    waiting = put_run(store, 2)

    async def story() -> None:
        sink = ScriptedSink(lambda _: Unavailable(code="http_429", message="slow down", seconds=30))
        await Relay(store, sink, channel, SETTINGS).once()
        sink.answer = delivered
        await asyncio.to_thread(clock.shift, 29)
        assert (await Relay(store, sink, channel, SETTINGS).once()).claimed == 0
        await asyncio.to_thread(clock.shift, 2)
        assert (await Relay(store, sink, channel, SETTINGS).once()).delivered == 2
        assert [len(call) for call in sink.calls] == [2, 2]

    run(story)
    assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [1, 1]


@pytest.mark.parametrize(
    "report",
    [
        Unavailable(code="http_503", message="later", seconds=1),
        Unavailable(code="connect_refused", message="nobody"),
        Results(outcomes={}),
    ],
    ids=["asked for time", "down", "answered"],
)
@pytest.mark.parametrize("seconds", [None, 3600], ids=["until opened", "for an hour"])
def test_a_gate_that_a_person_closed_meanwhile_stays_closed(
    store: Store, clock: Clock, report: Report, seconds: float | None
) -> None:
    channel = declare(store)
    put_run(store, 2)
    store.fail_gate("things", "*", "connect_refused: before", cap_seconds=60)
    clock.shift(60)
    closed: list[Gate] = []

    async def story() -> None:
        def meanwhile(_: Sequence[Entry]) -> Report:
            store.close_gate("things", "*", seconds, "closed by hand")
            closed.extend(store.gates("things"))
            return report

        await Relay(store, ScriptedSink(meanwhile), channel, SETTINGS).once()

    run(story)
    assert store.gates("things") == closed
    assert [gate.reason for gate in closed] == ["closed by hand"]


@pytest.mark.parametrize(
    ("report", "write"),
    [
        (Unavailable(code="http_503", message="later", seconds=1), "close_gate"),
        (Results(outcomes={}), "open_gate"),
        (Unavailable(code="connect_refused", message="nobody"), "fail_gate"),
    ],
    ids=["asked for time", "answered", "down"],
)
def test_a_gate_that_a_person_closes_between_a_look_and_the_write_stays_closed(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, report: Report, write: str
) -> None:
    channel = declare(store)
    put_run(store, 2)
    store.fail_gate("things", "*", "connect_refused: before", cap_seconds=60)
    clock.shift(60)
    close, original = store.close_gate, getattr(store, write)

    def after_a_person(*args: Any, **options: Any) -> Any:
        close("things", "*", None, "closed by hand")
        return original(*args, **options)

    async def story() -> None:
        monkeypatch.setattr(store, write, after_a_person)
        await Relay(store, ScriptedSink(lambda _: report), channel, SETTINGS).once()

    run(story)
    assert [(gate.reason, gate.closed_until) for gate in store.gates("things")] == [("closed by hand", None)]


def test_a_relay_that_starts_does_not_open_what_a_person_closes_just_then(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = declare(store)
    put(store)
    store.fail_gate("things", "*", "connect_refused: before", cap_seconds=60)
    close = store.close_gate

    def after_a_person(*args: Any, **options: Any) -> None:
        close("things", "*", None, "closed by hand")
        close(*args, **options)

    async def story() -> None:
        monkeypatch.setattr(store, "close_gate", after_a_person)
        asked: list[str] = []
        monkeypatch.setattr(store, "rest", counted(store.rest, "rest", asked))
        async with running(store, ScriptedSink(), channel):
            await until(lambda: "rest" in asked)

    run(story)
    assert [(gate.reason, gate.closed_until) for gate in store.gates("things")] == [("closed by hand", None)]


def test_a_returning_network_does_not_open_what_a_person_closed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = declare(store)
    put(store)
    asked: list[str] = []
    monkeypatch.setattr(breaker, "KNOCK_SECONDS", 0.01)

    async def story() -> None:
        sink = ScriptedSink(down)
        sink.up = False
        async with running(store, sink, channel):
            await until(lambda: bool(store.gates("things")))
            await asyncio.to_thread(store.close_gate, "things", "*", 3600, "closed by hand")
            for name in ("gates", "rest"):  # the knock looks at the gates, then it rings; the relay finds nothing
                monkeypatch.setattr(store, name, counted(getattr(store, name), name, asked))
            sink.up = True
            await until(lambda: "gates" in asked and "rest" in asked[asked.index("gates") :])

    run(story)
    assert [gate.reason for gate in store.gates("things")] == ["closed by hand"]
