"""Claims of fresh entries, and finishing one batch with the claim of the next."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest

from carrick.entry import Outcome, State
from carrick.errors import InvalidInput, UnknownChannel
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, OWNER, claim, declare, finish_each, ids, put, put_run, states

FAIR = pytest.mark.parametrize("fair", [True, False], ids=["fair", "unfair"])


class FreshContract:
    """A claim that passes over an old backlog."""

    @pytest.mark.parametrize("mode", list(Mode))
    @FAIR
    def test_only_entries_that_rank_within_the_time_are_taken(
        self, store: Store, clock: Clock, mode: Mode, fair: bool
    ) -> None:
        declare(store, mode=mode, fair=fair)
        old = put(store, group_key="a")
        clock.shift(HOUR)
        new = put(store, group_key="b")
        assert ids(claim(store, fresh_seconds=60)) == [new]
        assert not claim(store, fresh_seconds=60)
        assert ids(claim(store)) == [old]

    @pytest.mark.parametrize("mode", list(Mode))
    def test_it_narrows_to_a_tenant(self, store: Store, clock: Clock, mode: Mode) -> None:
        declare(store, mode=mode)
        put(store, tenant_id="t")
        clock.shift(HOUR)
        new = put(store, tenant_id="t")
        put(store, tenant_id="u")
        assert ids(claim(store, tenant="t", fresh_seconds=60)) == [new]

    @FAIR
    def test_a_fresh_entry_behind_an_old_one_of_its_group_stays(self, store: Store, clock: Clock, fair: bool) -> None:
        """G5: what is asked for changes which groups go, never their order."""
        declare(store, mode=Mode.ORDERED, fair=fair)
        old = put(store, group_key="g")
        clock.shift(HOUR)
        new = put(store, group_key="g")
        assert not claim(store, fresh_seconds=60)
        assert ids(claim(store)) == [old, new]

    def test_a_follower_that_ranks_below_ends_the_run(self, store: Store) -> None:
        declare(store, mode=Mode.ORDERED)
        head = put(store, group_key="g")
        put(store, group_key="g", priority=1)
        put(store, group_key="g")
        assert ids(claim(store, fresh_seconds=60)) == [head]

    def test_a_group_whose_first_due_entry_is_old_is_not_coalesced(self, store: Store, clock: Clock) -> None:
        declare(store, mode=Mode.COALESCE)
        old = put(store, group_key="g")
        clock.shift(HOUR)
        new = put(store, group_key="g")
        assert not claim(store, fresh_seconds=60)
        assert ids(claim(store)) == [old, new]

    def test_a_priority_counts_as_age(self, store: Store) -> None:
        declare(store)
        put(store, priority=1)
        low = put(store, priority=-1)
        assert ids(claim(store, fresh_seconds=500)) == [low]
        assert len(claim(store, fresh_seconds=700)) == 1

    @pytest.mark.parametrize("mode", list(Mode))
    def test_entries_that_come_back_apart_are_left_to_other_claims(
        self, store: Store, clock: Clock, mode: Mode
    ) -> None:
        declare(store, mode=mode)
        entry_id = put(store)
        claim(store, lease_seconds=10)
        clock.shift(11)
        assert not claim(store, fresh_seconds=HOUR)
        batch = claim(store)
        assert ids(batch) == [entry_id]
        finish_each(store, batch, Outcome.unsure())
        clock.shift(60)
        assert not claim(store, fresh_seconds=HOUR)
        assert ids(claim(store)) == [entry_id]

    @FAIR
    def test_fresh_entries_are_shared_between_tenants(self, store: Store, clock: Clock, fair: bool) -> None:
        declare(store, fair=fair)
        for tenant in "ab":
            put_run(store, 5, tenant_id=tenant)
        clock.shift(HOUR)
        new = [put(store, tenant_id=tenant) for tenant in "ab" for _ in range(2)]
        assert set(ids(claim(store, fresh_seconds=60))) == set(new)

    @pytest.mark.parametrize("mode", list(Mode))
    def test_fresh_entries_of_one_tenant_cost_no_other_its_turn(self, store: Store, clock: Clock, mode: Mode) -> None:
        """G8 among the claims that go for the backlog."""
        declare(store, mode=mode)
        for tenant in "ab":
            put_run(store, 10, tenant_id=tenant)
        clock.shift(HOUR)
        served = []
        for _ in range(4):
            fresh = put(store, tenant_id="c")
            assert ids(claim(store, max_rows=1, fresh_seconds=60)) == [fresh]
            served += [entry.tenant_id for entry in claim(store, max_rows=1)]
        assert sorted(served) == ["a", "a", "b", "b"]

    def test_full_batches_of_fresh_entries_hide_nothing_from_other_claims(self, store: Store, clock: Clock) -> None:
        declare(store)
        old = put_run(store, 4)
        clock.shift(HOUR)
        new = put_run(store, 4)
        assert ids(claim(store, max_rows=2, fresh_seconds=60)) == new[:2]
        assert ids(claim(store, max_rows=2)) == old[:2]
        assert ids(claim(store, max_rows=2, fresh_seconds=60)) == new[2:]
        assert ids(claim(store, max_rows=2)) == old[2:]

    @pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e300, "1"])
    def test_an_absurd_time_is_refused_by_name(self, store: Store, seconds: float) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            claim(store, fresh_seconds=seconds)
        assert caught.value.field == "fresh_seconds"

    def test_a_batch_tells_how_long_its_lease_was(self, store: Store) -> None:
        declare(store, lease_seconds=77)
        put_run(store, 2)
        assert claim(store, max_rows=1).lease_seconds == 77
        assert claim(store, lease_seconds=33).lease_seconds == 33
        assert claim(store).lease_seconds == 0


class FinishAndClaimContract:
    """Finishing one batch and claiming the next together."""

    def test_it_delivers_the_one_and_takes_the_next(self, store: Store) -> None:
        declare(store, lease_seconds=77)
        waiting = put_run(store, 3)
        first = claim(store, max_rows=2)
        changed, second = store.finish_and_claim(first.token, None, "things", OWNER)
        assert changed == dict.fromkeys(waiting[:2], State.DELIVERED)
        assert ids(second) == waiting[2:]
        assert second.lease_seconds == 77
        assert second.token != first.token
        assert store.finish_all(second.token) == {waiting[2]: State.DELIVERED}

    def test_outcomes_are_applied_one_by_one(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 3)
        batch = claim(store)
        outcomes = dict(
            zip(waiting, (Outcome.delivered(), Outcome.rejected("no"), Outcome.retry(after=60)), strict=True)
        )
        changed, following = store.finish_and_claim(batch.token, outcomes, "things", OWNER)
        assert list(changed.values()) == [State.DELIVERED, State.DEAD, State.PENDING]
        assert not following

    def test_limits_hold_for_the_claim(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        clock.shift(HOUR)
        new = put_run(store, 3)
        batch = claim(store, max_rows=1)
        _, following = store.finish_and_claim(
            batch.token, None, "things", OWNER, max_rows=2, lease_seconds=33, fresh_seconds=60
        )
        assert ids(following) == new[:2]
        assert following.lease_seconds == 33

    @pytest.mark.parametrize("mode", list(Mode))
    def test_entries_given_back_can_be_taken_again_at_once(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        entry_id = put(store, group_key="g")
        batch = claim(store, max_rows=1)
        changed, following = store.finish_and_claim(
            batch.token, {entry_id: Outcome.released()}, "things", OWNER, max_rows=1
        )
        assert changed == {entry_id: State.PENDING}
        assert ids(following) == [entry_id]

    def test_what_a_full_batch_gave_back_is_found_again(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 4)
        batch = claim(store, max_rows=2)
        given_back = dict.fromkeys(ids(batch), Outcome.released())
        _, following = store.finish_and_claim(batch.token, given_back, "things", OWNER, max_rows=2)
        assert ids(following) == waiting[:2]

    @pytest.mark.parametrize("mode", [Mode.ORDERED, Mode.COALESCE])
    def test_the_rest_of_a_group_is_free_in_the_same_step(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        put(store, group_key="g")
        batch = claim(store)
        later = put(store, group_key="g")
        _, following = store.finish_and_claim(batch.token, None, "things", OWNER)
        assert ids(following) == [later]

    def test_a_lost_lease_changes_nothing_and_the_claim_goes_on(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        declare(store)
        entry_id = put(store)
        with caplog.at_level(logging.WARNING, "carrick.outbox"):
            changed, following = store.finish_and_claim(uuid4(), None, "things", OWNER)
        assert changed == {}
        assert ids(following) == [entry_id]
        assert [record.message for record in caplog.records] == ["outbox.lease_lost"]

    def test_both_happen_or_neither(self, store: Store) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        with pytest.raises(UnknownChannel):
            store.finish_and_claim(batch.token, None, "nowhere", OWNER)
        assert states(store, ids(batch)) == [State.CLAIMED]
        assert store.renew(batch.token, 60) == 1

    def test_absurd_limits_are_refused_before_anything_is_finished(self, store: Store) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        with pytest.raises(InvalidInput) as caught:
            store.finish_and_claim(batch.token, None, "things", OWNER, max_rows=0)
        assert caught.value.field == "max_rows"
        assert states(store, ids(batch)) == [State.CLAIMED]
