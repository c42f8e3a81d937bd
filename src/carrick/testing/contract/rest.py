"""Relays that rest until something is due, and duties that one replica has for all."""

from __future__ import annotations

import pytest

from carrick.entry import Outcome
from carrick.errors import InvalidInput, UnknownChannel
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import DAY, HOUR, OWNER, claim, declare, finish_each, put, put_run


def due_in(store: Store, channel: str = "things") -> float | None:
    """What a relay that is about to sleep hears."""
    return store.rest(channel, OWNER, 60).due_in


def about(seconds: float) -> object:
    """That many seconds from some moment of this test."""
    return pytest.approx(seconds, abs=20)


class RestContract:
    """What a relay that is about to sleep hears."""

    def test_nothing_is_in_sight_in_an_empty_channel(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        put(store, "others")
        rest = store.rest("things", OWNER, 60)
        assert (rest.due_in, rest.unseen) == (None, False)

    def test_a_group_is_due_when_those_of_it_are_whom_no_gate_holds(self, store: Store) -> None:
        declare(store, mode=Mode.COALESCE)
        put(store, group_key="g", principal="p")
        finish_each(store, claim(store), Outcome.retry(after=HOUR))
        store.close_gate("things", "principal:p", None, "revoked")
        due_in(store)  # says that it rests; nobody need look before that is known
        put(store, group_key="g", principal="q", delay_seconds=100)
        assert due_in(store) == about(100)

    def test_resting_again_and_again_tells_what_changed(self, store: Store, clock: Clock) -> None:
        declare(store)
        assert due_in(store) is None
        put(store, delay_seconds=1000)
        assert due_in(store) == about(1000)
        clock.shift(900)
        assert due_in(store) == about(100)

    @pytest.mark.parametrize("mode", list(Mode))
    def test_something_that_is_due_is_due_now(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        put(store, tenant_id="a", delay_seconds=HOUR)
        put(store, tenant_id="b")
        put(store, tenant_id="c", delay_seconds=HOUR)
        rest = store.rest("things", OWNER, 60)
        assert rest.due_in is not None
        assert rest.due_in <= 0

    @pytest.mark.parametrize("mode", list(Mode))
    def test_the_earliest_of_all_tenants_counts(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        for tenant, delay in (("a", 2000), ("b", 1000), ("c", 3000)):
            put(store, tenant_id=tenant, delay_seconds=delay)
        assert due_in(store) == about(1000)

    @pytest.mark.parametrize("priority", [-3, 3])
    def test_an_entry_with_a_priority_is_due_at_its_time(self, store: Store, priority: int) -> None:
        declare(store)
        put(store, priority=priority, delay_seconds=1000)
        assert due_in(store) == about(1000)

    def test_one_of_high_priority_that_is_due_later_hides_nothing(self, store: Store) -> None:
        declare(store)
        put(store, priority=10, delay_seconds=4000)
        put(store, delay_seconds=1000)
        assert due_in(store) == about(1000)

    def test_one_of_low_priority_that_is_due_earlier_is_not_hidden(self, store: Store) -> None:
        declare(store)
        put(store, delay_seconds=1000)
        put(store, priority=-10, delay_seconds=500)
        assert due_in(store) == about(500)

    def test_a_retry_is_due_after_its_backoff(self, store: Store) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), Outcome.retry(after=1000))
        assert due_in(store) == about(1000)

    def test_the_end_of_a_lease_is_waited_for(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        batch = claim(store, owner="another", lease_seconds=1000)
        assert due_in(store) == about(1000)
        clock.shift(1001)
        rest = store.rest("things", OWNER, 60)
        assert rest.due_in is not None
        assert rest.due_in <= 0
        store.finish_all(batch.token)
        assert due_in(store) is None

    @pytest.mark.parametrize("scope", ["*", "tenant:t", "principal:p"])
    def test_behind_a_closed_gate_its_end_is_waited_for(self, store: Store, scope: str) -> None:
        declare(store)
        put(store, tenant_id="t", principal="p")
        store.close_gate("things", scope, 1000, "x")
        assert due_in(store) == about(1000)

    @pytest.mark.parametrize("scope", ["*", "tenant:t", "principal:p"])
    def test_behind_a_gate_without_an_end_nothing_is_in_sight(self, store: Store, scope: str) -> None:
        declare(store)
        put(store, tenant_id="t", principal="p")
        store.close_gate("things", scope, None, "x")
        assert due_in(store) is None

    def test_a_gate_hides_only_what_it_holds(self, store: Store) -> None:
        declare(store)
        put(store, tenant_id="t")
        put(store, tenant_id="u", principal="p")
        put(store, tenant_id="u", delay_seconds=500)
        store.close_gate("things", "tenant:t", 1000, "x")
        store.close_gate("things", "principal:p", 1000, "x")
        assert due_in(store) == about(500)

    def test_behind_a_half_open_gate_what_is_due_is_due_now(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 2)
        store.fail_gate("things", "*", "x", cap_seconds=1)
        clock.shift(2)
        rest = store.rest("things", OWNER, 60)
        assert rest.due_in is not None
        assert rest.due_in <= 0
        claim(store, lease_seconds=1000)
        assert due_in(store) == about(1000)

    def test_followers_wait_for_the_head_of_their_group(self, store: Store) -> None:
        declare(store, mode=Mode.ORDERED)
        put(store, group_key="g", delay_seconds=1000)
        put(store, group_key="g")
        assert due_in(store) == about(1000)

    @pytest.mark.parametrize("mode", [Mode.ORDERED, Mode.COALESCE])
    def test_a_group_that_is_being_delivered_is_waited_for_until_the_lease_ends(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        put(store, group_key="g")
        claim(store, lease_seconds=1000)
        put(store, group_key="g")
        assert due_in(store) == about(1000)

    def test_a_debounced_group_is_due_as_a_whole(self, store: Store) -> None:
        declare(store, mode=Mode.COALESCE)
        put(store, group_key="g", delay_seconds=500)
        put(store, group_key="g", delay_seconds=1000)
        assert due_in(store) == about(1000)

    def test_the_longest_wait_of_a_group_is_kept(self, store: Store) -> None:
        declare(store, mode=Mode.COALESCE)
        put(store, group_key="g", delay_seconds=500, max_wait_seconds=700)
        put(store, group_key="g", delay_seconds=1000)
        assert due_in(store) == about(700)

    def test_waking_up_and_resting_again_is_fine(self, store: Store) -> None:
        declare(store)
        store.stir("things", OWNER)
        store.rest("things", OWNER, 60)
        store.stir("things", OWNER)
        store.stir("things", OWNER)
        assert due_in(store) is None

    @pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e300])
    def test_an_absurd_time_is_refused_by_name(self, store: Store, seconds: float) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            store.rest("things", OWNER, seconds)
        assert caught.value.field == "seconds"

    def test_nobody_rests_at_an_unknown_channel(self, store: Store) -> None:
        declare(store)
        with pytest.raises(UnknownChannel):
            store.rest("nowhere", OWNER, 60)


class DutyContract:
    """What one replica at a time does for all."""

    def test_the_first_who_asks_has_the_duty(self, store: Store) -> None:
        assert store.take_duty("prune", "a", 60)
        assert not store.take_duty("prune", "b", 60)
        assert store.take_duty("compact", "b", 60)

    def test_who_has_it_keeps_it_by_asking_again(self, store: Store, clock: Clock) -> None:
        assert store.take_duty("prune", "a", 60)
        clock.shift(50)
        assert store.take_duty("prune", "a", 60)
        clock.shift(50)
        assert not store.take_duty("prune", "b", 60)

    def test_when_its_time_is_over_another_may_have_it(self, store: Store, clock: Clock) -> None:
        assert store.take_duty("prune", "a", 60)
        clock.shift(61)
        assert store.take_duty("prune", "b", 60)
        assert not store.take_duty("prune", "a", 60)

    @pytest.mark.parametrize(
        ("duty", "owner", "seconds"), [("", "a", 1), ("d", "", 1), ("d", "a", 0), ("d", "a", 2 * DAY)]
    )
    def test_absurd_duties_are_refused(self, store: Store, duty: str, owner: str, seconds: float) -> None:
        with pytest.raises(InvalidInput):
            store.take_duty(duty, owner, seconds)
