from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from carrick import Outbox, wiring
from carrick.entry import OutcomeKind
from carrick.errors import StoreUnavailable
from carrick.ops.simulation import CHANNELS, Balance, Destination, Simulation


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    url = f"sqlite:///{tmp_path / 'demo.db'}"
    wiring.migrate(url)
    with wiring.open_outbox(url) as opened:
        yield opened


def test_what_was_put_is_delivered_dead_or_waiting_after_a_run(outbox: Outbox) -> None:
    stopping = threading.Event()
    simulation = Simulation(outbox, stopping, seed=7)
    with simulation.running():
        while not all(simulation.delivered().values()) and not stopping.is_set():
            stopping.wait(0.05)
    assert simulation.balance().delivered > 0
    assert simulation.balance().adds_up


def test_entries_that_were_there_before_are_part_of_the_balance(outbox: Outbox) -> None:
    for name, mode in CHANNELS.items():
        outbox.channel(name, mode=mode)
        outbox.put(channel=name, event_type="earlier", payload={})
    stopping = threading.Event()
    stopping.set()
    simulation = Simulation(outbox, stopping)
    with simulation.running():
        pass
    assert simulation.balance().put == len(CHANNELS)
    assert simulation.balance().adds_up


def test_a_failing_worker_ends_the_run_with_its_error(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def claim(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the database is gone")

    monkeypatch.setattr(outbox, "claim", claim)
    stopping = threading.Event()
    with pytest.raises(StoreUnavailable, match="the database is gone"), Simulation(outbox, stopping).running():
        assert stopping.wait(60)


def test_no_gate_stays_closed_after_a_run(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrick.ops.simulation.SECONDS_BETWEEN_CLOSINGS", 2.51)
    stopping = threading.Event()
    simulation = Simulation(outbox, stopping)
    with simulation.running():
        while not outbox.store.gates() and not stopping.is_set():
            stopping.wait(0.02)
    assert outbox.store.gates() == []


def test_entries_folded_into_one_delivery_share_its_outcome(outbox: Outbox) -> None:
    outbox.channel("demo.scores", mode=CHANNELS["demo.scores"])
    for number in range(30):
        outbox.put(channel="demo.scores", event_type="scored", payload=number, tenant_id="mill", group=f"g{number % 3}")
    batch = outbox.claim("demo.scores", owner="test", max_rows=3)
    assert len(batch) == 30
    for seed in range(50):
        outcomes = Destination(Random(seed)).deliver(batch)
        kinds = {(entry.group_key, outcomes[entry.id].kind) for entry in batch}
        assert len(kinds) == 3


def test_the_destination_delivers_mostly_fails_sometimes_and_refuses_rarely(outbox: Outbox) -> None:
    outbox.channel("demo.readings")
    outbox.put_many([{"channel": "demo.readings", "event_type": "read", "payload": n} for n in range(5000)])
    batch = outbox.claim("demo.readings", owner="test", max_rows=5000)
    kinds = [outcome.kind for outcome in Destination(Random(1)).deliver(batch).values()]
    assert kinds.count(OutcomeKind.DELIVERED) > kinds.count(OutcomeKind.RETRY) > kinds.count(OutcomeKind.REJECTED) > 0


@pytest.mark.parametrize("wrong", [Balance(10, 9, 0, 0), Balance(10, 9, 1, 1)])
def test_a_lost_or_a_doubled_entry_does_not_add_up(wrong: Balance) -> None:
    assert not wrong.adds_up
