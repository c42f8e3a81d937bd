"""Gates that failures close: they open by half, and one entry goes ahead to try."""

from __future__ import annotations

import math

import pytest

from carrick.entry import Outcome
from carrick.errors import InvalidInput, UnknownChannel
from carrick.outbox.channel import Mode
from carrick.outbox.explain import explain
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, finish_each, ids, put, put_run


def fail(store: Store, *, cap_seconds: float = 64, probe: bool = False, scope: str = "*") -> float:
    """One failure of the destination."""
    return store.fail_gate("things", scope, "no answer", cap_seconds=cap_seconds, probe=probe)


def half_open(store: Store, clock: Clock) -> None:
    """Close the gate by a failure, and let its time pass."""
    fail(store)
    clock.shift(2)


class HalfOpenContract:
    """A gate that opens by half after failures."""

    def test_each_failure_closes_the_gate_for_twice_as_long_up_to_the_cap(self, store: Store, clock: Clock) -> None:
        declare(store)
        for whole in (1, 2, 4, 5, 5):
            seconds = fail(store, cap_seconds=5)
            assert whole / 2 <= seconds <= whole
            clock.shift(whole + 1)

    def test_many_failures_do_not_overflow(self, store: Store, clock: Clock) -> None:
        declare(store)
        for _ in range(70):
            assert fail(store, cap_seconds=10) <= 10
            clock.shift(11)

    def test_the_gate_holds_with_its_reason_and_count(self, store: Store) -> None:
        declare(store)
        put(store)
        fail(store)
        (gate,) = store.gates("things")
        assert (gate.scope, gate.reason, gate.consecutive_failures) == ("*", "no answer", 1)
        assert not claim(store)

    def test_while_it_is_closed_other_failures_change_nothing(self, store: Store) -> None:
        declare(store)
        store.close_gate("things", "*", HOUR, "asked for a pause")
        before = store.gates()
        assert HOUR - 60 < fail(store) <= HOUR
        assert store.gates() == before

    def test_the_failure_of_the_probe_counts_although_the_gate_is_closed(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        half_open(store, clock)
        assert claim(store, lease_seconds=HOUR).probe
        assert 1 <= fail(store, probe=True) <= 2
        (gate,) = store.gates()
        assert gate.consecutive_failures == 2

    def test_a_gate_closed_until_opened_stays_so(self, store: Store) -> None:
        declare(store)
        store.close_gate("things", "*", None, "maintenance")
        assert fail(store) == math.inf
        assert fail(store, probe=True) == math.inf
        (gate,) = store.gates()
        assert (gate.closed_until, gate.reason) == (None, "maintenance")

    def test_the_failure_of_the_probe_does_not_shorten_what_was_asked_for(self, store: Store, clock: Clock) -> None:
        """A person closed the gate while the probe was under way."""
        declare(store)
        put(store)
        half_open(store, clock)
        assert claim(store, lease_seconds=HOUR).probe
        store.close_gate("things", "*", HOUR, "maintenance")
        assert HOUR - 60 < fail(store, probe=True) <= HOUR
        (gate,) = store.gates()
        assert (gate.reason, gate.consecutive_failures, gate.closed_by) == ("maintenance", 1, "person")
        clock.shift(HOUR)
        assert 1 <= fail(store, probe=True) <= 2

    def test_a_gate_tells_who_closed_it(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        for close, closed_by in (
            (lambda: fail(store), "failures"),
            (lambda: store.close_gate("things", "*", 5, "pause", closed_by="destination"), "destination"),
            (lambda: store.close_gate("things", "*", 10, "pause"), "person"),
            (lambda: fail(store), "person"),
        ):
            close()
            (gate,) = store.gates()
            assert (gate.closed_by, store.standing(entry_id).gate) == (closed_by, gate)
        clock.shift(11)
        assert claim(store).probe
        (gate,) = store.gates()
        assert gate.closed_by == "failures"

    @pytest.mark.parametrize("mode", list(Mode))
    @pytest.mark.parametrize("fair", [True, False], ids=["fair", "unfair"])
    def test_one_entry_or_group_goes_ahead_when_the_time_is_up(
        self, store: Store, clock: Clock, mode: Mode, fair: bool
    ) -> None:
        declare(store, mode=mode, fair=fair)
        for group in "ab":
            put_run(store, 2, group_key=group)
        half_open(store, clock)
        probe = claim(store)
        assert probe.probe
        assert len(probe) == (2 if mode is Mode.COALESCE else 1)
        assert len({entry.group_key for entry in probe}) == 1

    def test_nothing_else_goes_while_the_probe_is_under_way(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        half_open(store, clock)
        claim(store, lease_seconds=100)
        assert not claim(store)
        clock.shift(90)
        assert not claim(store)

    def test_the_next_goes_ahead_when_a_probe_is_never_heard_of(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        half_open(store, clock)
        claim(store, lease_seconds=100)
        clock.shift(101)
        batch = claim(store)
        assert (len(batch), batch.probe) == (1, True)

    def test_a_claim_that_finds_nothing_leaves_the_gate_half_open(self, store: Store, clock: Clock) -> None:
        declare(store)
        half_open(store, clock)
        assert not claim(store)
        assert store.gates() == []
        put(store)
        assert claim(store).probe

    def test_pruning_leaves_the_gate_half_open(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        half_open(store, clock)
        store.prune("things")
        assert claim(store).probe

    def test_opening_forgets_the_failures(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        half_open(store, clock)
        store.finish_all(claim(store).token)
        store.open_gate("things", "*")
        batch = claim(store)
        assert (len(batch), batch.probe) == (2, False)
        assert fail(store) <= 1

    def test_closing_for_no_time_lets_a_probe_go_at_once_and_keeps_the_count(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        half_open(store, clock)
        fail(store)
        store.close_gate("things", "*", 0, "it answers again")
        batch = claim(store)
        assert (len(batch), batch.probe) == (1, True)
        assert 2 <= fail(store, probe=True) <= 4

    def test_a_gate_that_was_closed_without_a_failure_opens_wholly(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        store.close_gate("things", "*", 10, "asked for a pause")
        clock.shift(11)
        batch = claim(store)
        assert (len(batch), batch.probe) == (3, False)

    @pytest.mark.parametrize("scope", ["tenant:t", "principal:p"])
    def test_the_gate_of_one_tenant_or_principal_opens_wholly(self, store: Store, clock: Clock, scope: str) -> None:
        declare(store)
        put_run(store, 3, tenant_id="t", principal="p")
        fail(store, scope=scope)
        assert not claim(store)
        clock.shift(2)
        batch = claim(store)
        assert (len(batch), batch.probe) == (3, False)
        assert 1 <= fail(store, scope=scope) <= 2

    def test_a_frozen_batch_goes_ahead_whole(self, store: Store, clock: Clock) -> None:
        """It must come back as it was; if it could not be the probe, it would wait for ever where nothing else does."""
        declare(store)
        frozen = put_run(store, 3)
        finish_each(store, claim(store), Outcome.unsure())
        clock.shift(60)
        half_open(store, clock)
        batch = claim(store)
        assert (ids(batch), batch.probe) == (frozen, True)

    def test_an_entry_behind_a_half_open_gate_is_not_held(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        fail(store)
        assert explain(store.standing(entry_id)).reason == "held"
        assert [stats.held_count for stats in store.stats() if stats.channel == "things"] == [1]
        clock.shift(2)
        assert explain(store.standing(entry_id)).reason == "due"
        assert [stats.held_count for stats in store.stats() if stats.channel == "things"] == [0]

    @pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e300])
    def test_an_absurd_cap_is_refused_by_name(self, store: Store, seconds: float) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            fail(store, cap_seconds=seconds)
        assert caught.value.field == "cap_seconds"
        assert store.gates() == []

    def test_a_failure_needs_a_scope_and_a_channel_that_are_known(self, store: Store) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            fail(store, scope="group:g")
        assert caught.value.field == "scope"
        with pytest.raises(UnknownChannel):
            store.fail_gate("nowhere", "*", "x", cap_seconds=1)
