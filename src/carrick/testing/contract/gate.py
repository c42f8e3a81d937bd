"""Gates: G7, a closed gate costs nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import pytest

from carrick.entry import ClosedBy, Outcome
from carrick.errors import InvalidInput
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import DAY, HOUR, claim, declare, finish_each, ids, put, put_run


class GateContract:
    """G7 Outages are free."""

    @pytest.mark.parametrize("mode", list(Mode))
    @pytest.mark.parametrize("scope", ["*", "tenant:t", "principal:p"])
    def test_a_closed_gate_holds_its_entries_until_it_opens(self, store: Store, scope: str, mode: Mode) -> None:
        declare(store, mode=mode)
        entry_id = put(store, tenant_id="t", principal="p", group_key="g")
        store.close_gate("things", scope, None, "maintenance")
        assert not claim(store)
        assert not claim(store, tenant="t")
        store.open_gate("things", scope)
        assert ids(claim(store)) == [entry_id]

    @pytest.mark.parametrize("scope", ["*", "tenant:t", "principal:p"])
    def test_a_day_behind_a_gate_spends_no_attempt_and_moves_no_time(
        self, store: Store, clock: Clock, scope: str
    ) -> None:
        declare(store)
        entry_id = put(store, tenant_id="t", principal="p")
        before = store.standing(entry_id)
        store.close_gate("things", scope, DAY, "no network")
        for _ in range(3):
            clock.shift(DAY / 4)
            assert not claim(store)
        held = store.standing(entry_id)
        assert (held.attempt_count, held.crash_count, held.next_attempt_at) == (0, 0, before.next_attempt_at)
        clock.shift(DAY / 4 + 1)
        assert ids(claim(store)) == [entry_id]

    def test_a_gate_does_not_hold_others(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        store.close_gate("things", "tenant:t", None, "x")
        store.close_gate("things", "principal:p", None, "x")
        put(store, tenant_id="t")
        put(store, tenant_id="u", principal="p")
        free = [put(store, tenant_id="u"), put(store, tenant_id="u", principal="q"), put(store, tenant_id="tt")]
        elsewhere = put(store, "others", tenant_id="t", principal="p")
        assert set(ids(claim(store))) == set(free)
        assert ids(claim(store, "others")) == [elsewhere]

    @pytest.mark.parametrize("name", ["%", "_", "t%", "a:b", "ü", "*"])
    def test_a_gates_name_matches_only_itself(self, store: Store, name: str) -> None:
        declare(store)
        store.close_gate("things", f"tenant:{name}", None, "x")
        store.close_gate("things", f"principal:{name}", None, "x")
        put(store, tenant_id=name)
        put(store, tenant_id="free", principal=name)
        free = put(store, tenant_id="tenant", principal="principal")
        assert ids(claim(store)) == [free]

    def test_a_closed_gate_does_not_touch_what_is_claimed(self, store: Store) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        store.close_gate("things", "*", None, "x")
        assert store.renew(batch.token, 60) == 1
        assert len(store.finish_all(batch.token)) == 1

    def test_leases_still_end_behind_a_closed_gate(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        claim(store, lease_seconds=10)
        store.close_gate("things", "*", None, "x")
        clock.shift(11)
        assert not claim(store)
        store.open_gate("things", "*")
        assert len(claim(store)) == 1

    def test_suspected_and_unsure_entries_are_held_too(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store, tenant_id="t", principal="p")
        claim(store, lease_seconds=10)
        clock.shift(11)
        store.close_gate("things", "tenant:t", None, "x")
        assert not claim(store)
        store.open_gate("things", "tenant:t")
        finish_each(store, claim(store), Outcome.unsure())
        clock.shift(60)
        store.close_gate("things", "principal:p", None, "x")
        assert not claim(store)
        store.open_gate("things", "principal:p")
        assert len(claim(store)) == 1

    def test_a_gate_closed_for_a_time_opens_by_itself(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        store.close_gate("things", "*", 100, "x")
        clock.shift(90)
        assert not claim(store)
        clock.shift(11)
        assert len(claim(store)) == 1
        assert store.gates() == []

    def test_closing_again_moves_the_time_and_the_reason(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        store.close_gate("things", "*", None, "first")
        store.close_gate("things", "*", 10, "second")
        (gate,) = store.gates()
        assert gate.reason == "second"
        clock.shift(11)
        assert len(claim(store)) == 1

    @pytest.mark.parametrize(
        ("first", "second", "stands"),
        [
            (("person", HOUR), ("destination", 10), "first"),
            (("person", HOUR), ("destination", None), "first"),
            (("person", HOUR), ("failures", 0), "first"),
            (("person", None), ("person", 10), "second"),
            (("destination", None), ("destination", 10), "first"),
            (("destination", 10), ("destination", HOUR), "second"),
            (("destination", HOUR), ("failures", 0), "first"),
            (("destination", HOUR), ("person", 10), "second"),
            (("failures", HOUR), ("destination", 10), "second"),
            (("failures", HOUR), ("person", 10), "second"),
        ],
    )
    def test_who_closed_a_gate_says_who_may_close_it_for_another_time(
        self, store: Store, first: tuple[ClosedBy, float | None], second: tuple[ClosedBy, float | None], stands: str
    ) -> None:
        declare(store)
        for reason, (closed_by, seconds) in {"first": first, "second": second}.items():
            store.close_gate("things", "*", seconds, reason, closed_by=closed_by)
        (gate,) = store.gates()
        assert (gate.reason, gate.closed_by) == (stands, {"first": first, "second": second}[stands][0])

    def test_when_its_time_is_over_anybody_may_close_it_again(self, store: Store, clock: Clock) -> None:
        declare(store)
        store.close_gate("things", "*", 10, "maintenance")
        clock.shift(11)
        store.close_gate("things", "*", 5, "slow down", closed_by="destination")
        assert [gate.reason for gate in store.gates()] == ["slow down"]

    @pytest.mark.parametrize("closed_by", get_args(ClosedBy))
    def test_a_gate_may_be_opened_only_if_it_was_closed_by_that(self, store: Store, closed_by: ClosedBy) -> None:
        declare(store)
        store.close_gate("things", "*", 10, "x", closed_by=closed_by)
        for other in set(get_args(ClosedBy)) - {closed_by}:
            store.open_gate("things", "*", closed_by=other)
            assert len(store.gates()) == 1
        store.open_gate("things", "*", closed_by=closed_by)
        assert store.gates() == []

    def test_who_closes_no_gate_is_refused_by_name(self, store: Store) -> None:
        declare(store)
        nobody: Any = "nobody"
        with pytest.raises(InvalidInput) as closing:
            store.close_gate("things", "*", 1, "x", closed_by=nobody)
        with pytest.raises(InvalidInput) as opening:
            store.open_gate("things", "*", closed_by=nobody)
        assert (closing.value.field, opening.value.field) == ("closed_by", "closed_by")

    def test_a_gate_whose_time_is_over_is_pruned(self, store: Store, clock: Clock) -> None:
        declare(store)
        store.close_gate("things", "tenant:t", 10, "over")
        store.close_gate("things", "tenant:u", HOUR, "closed")
        clock.shift(11)
        store.prune("things")
        clock.shift(-11)
        assert [gate.reason for gate in store.gates()] == ["closed"]

    def test_gates_lists_what_is_closed_now(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        store.close_gate("things", "*", HOUR, "down")
        store.close_gate("things", "tenant:t", None, "unpaid")
        store.close_gate("others", "principal:p", 0, "over at once")
        now = store.now()
        first, second = store.gates("things")
        assert (first.channel, first.scope, first.reason, first.consecutive_failures) == ("things", "*", "down", 0)
        assert first.closed_until is not None
        assert timedelta(minutes=50) < first.closed_until - now <= timedelta(hours=1)
        assert (second.scope, second.closed_until) == ("tenant:t", None)
        assert store.gates() == [first, second]
        assert store.gates("others") == []

    def test_opening_an_open_gate_changes_nothing(self, store: Store) -> None:
        declare(store)
        store.open_gate("things", "*")
        assert store.gates() == []

    @pytest.mark.parametrize("scope", ["", "t", "tenant", "tenant:", "principal:", "group:g", "**"])
    def test_a_scope_that_is_none_is_refused(self, store: Store, scope: str) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as closing:
            store.close_gate("things", scope, 1, "x")
        with pytest.raises(InvalidInput) as opening:
            store.open_gate("things", scope)
        assert (closing.value.field, opening.value.field) == ("scope", "scope")
        assert store.gates() == []

    @pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e300])
    def test_an_absurd_time_for_a_gate_is_refused(self, store: Store, seconds: float) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            store.close_gate("things", "*", seconds, "x")
        assert caught.value.field == "seconds"
        assert store.gates() == []

    @pytest.mark.parametrize("text", ["a\x00b", "\ud800"], ids=ascii)
    def test_text_that_no_database_holds_is_refused_or_cleaned(self, store: Store, text: str) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            store.close_gate("things", f"tenant:{text}", 10, "x")
        assert caught.value.field == "scope"
        try:
            store.close_gate("things", "*", 10, text)
        except InvalidInput as error:
            assert error.field == "reason"  # noqa: PT017  either is fine, an error of the driver is not

    def test_a_principal_behind_a_gate_does_not_stop_its_tenant(self, store: Store) -> None:
        declare(store)
        put_run(store, 200, principal="p")
        free = put(store, principal="q")
        store.close_gate("things", "principal:p", None, "revoked")
        assert ids(claim(store, max_rows=10)) == [free]
