"""Leases that end: a worker died, perhaps because of one entry."""

from __future__ import annotations

import pytest

from carrick.entry import Outcome, State
from carrick.errors import InvalidInput
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import claim, declare, finish_each, ids, put, put_run, states

LEASE = 10
PAST_LEASE = 11


class ExpiryContract:
    """One poisonous entry never buries its neighbours, nor do five power cuts."""

    @pytest.mark.parametrize("mode", list(Mode))
    def test_entries_of_a_lease_that_ended_are_claimed_again(self, store: Store, clock: Clock, mode: Mode) -> None:
        declare(store, mode=mode)
        entry_id = put(store, group_key="g")
        claim(store, lease_seconds=LEASE)
        clock.shift(LEASE - 5)
        assert not claim(store)
        clock.shift(6)
        again = claim(store, owner="worker-2")
        assert ids(again) == [entry_id]
        assert [entry.attempt_count for entry in again] == [0]

    def test_a_batch_comes_back_at_most_half_as_large_each_time(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 8)
        sizes = []
        for _ in range(4):
            sizes.append(len(claim(store, lease_seconds=LEASE)))
            clock.shift(PAST_LEASE)
        assert sizes == [8, 4, 2, 1]

    def test_a_poisonous_entry_ends_up_alone_then_dead_and_its_neighbours_are_delivered(
        self, store: Store, clock: Clock
    ) -> None:
        declare(store)
        waiting = put_run(store, 8)
        poison = waiting[5]
        sizes = []
        while batch := claim(store, lease_seconds=LEASE):
            if poison in ids(batch):
                sizes.append(len(batch))
                clock.shift(PAST_LEASE)
            else:
                store.finish_all(batch.token)
        assert sizes == [8, 4, 2, 1, 1, 1, 1, 1]
        standing = store.standing(poison)
        assert (standing.state, standing.dlq_reason, standing.crash_count) == (State.DEAD, "crash_loop", 5)
        assert standing.attempt_count == 0
        assert [state for state in states(store, waiting) if state is not State.DEAD] == [State.DELIVERED] * 7

    def test_five_power_cuts_bury_nothing_that_was_not_alone(self, store: Store, clock: Clock) -> None:
        declare(store)
        waiting = put_run(store, 64)
        for _ in range(5):
            claim(store, lease_seconds=LEASE)
            clock.shift(PAST_LEASE)
        store.release_expired("things")
        assert states(store, waiting) == [State.PENDING] * 64
        assert {store.standing(entry_id).crash_count for entry_id in waiting} == {0}

    def test_only_an_expiry_alone_counts_as_a_crash(self, store: Store, clock: Clock) -> None:
        declare(store)
        first, second = put_run(store, 2)
        claim(store, lease_seconds=LEASE)
        clock.shift(PAST_LEASE)
        assert ids(claim(store, lease_seconds=LEASE)) == [first]
        clock.shift(PAST_LEASE)
        store.release_expired("things")
        assert [store.standing(entry_id).crash_count for entry_id in (first, second)] == [1, 0]

    def test_new_entries_do_not_join_a_suspected_batch(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 4)
        claim(store, lease_seconds=LEASE)
        new = put_run(store, 4)
        clock.shift(PAST_LEASE)
        sizes = []
        while batch := claim(store):
            sizes.append((len(batch), bool(set(ids(batch)) & set(new))))
        assert sorted(sizes) == [(2, False), (2, False), (4, True)]

    def test_an_attempt_that_ran_to_its_end_clears_the_suspicion(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        for _ in range(4):
            claim(store, lease_seconds=LEASE)
            clock.shift(PAST_LEASE)
        finish_each(store, claim(store), Outcome.retry())
        assert store.standing(entry_id).crash_count == 0
        clock.shift(60)
        others = put_run(store, 3)
        assert set(ids(claim(store))) == {entry_id, *others}

    def test_releasing_does_not_clear_the_suspicion(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        for _ in range(4):
            claim(store, lease_seconds=LEASE)
            clock.shift(PAST_LEASE)
        store.release(claim(store).token)
        assert store.standing(entry_id).crash_count == 4
        claim(store, lease_seconds=LEASE)
        clock.shift(PAST_LEASE)
        assert not claim(store)
        assert store.standing(entry_id).dlq_reason == "crash_loop"

    def test_suspected_entries_keep_to_the_byte_limit(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 8, payload=b'"01234567"')
        claim(store, lease_seconds=LEASE)
        clock.shift(PAST_LEASE)
        assert len(claim(store, max_bytes=25)) == 2
        assert len(claim(store, max_rows=1)) == 1

    def test_suspected_entries_of_a_one_tenant_channel_stay_apart(self, store: Store, clock: Clock) -> None:
        declare(store, one_tenant=True)
        for tenant in "ab":
            put_run(store, 4, tenant_id=tenant)
        for _ in range(2):
            claim(store, lease_seconds=LEASE)
        clock.shift(PAST_LEASE)
        for _ in range(4):
            batch = claim(store)
            assert len(batch) == 2
            assert len({entry.tenant_id for entry in batch}) == 1

    @pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
    def test_an_unsure_batch_that_kills_its_worker_does_not_do_so_for_ever(
        self, store: Store, clock: Clock, mode: Mode
    ) -> None:
        declare(store, mode=mode)
        waiting = put_run(store, 2)
        finish_each(store, claim(store), Outcome.unsure())
        clock.shift(60)
        for _ in range(12):
            claim(store, lease_seconds=LEASE)
            clock.shift(PAST_LEASE)
        store.release_expired("things")
        assert states(store, waiting) == [State.DEAD] * 2

    def test_release_expired_returns_what_ended_and_counts_it(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        claim(store, max_rows=2, lease_seconds=LEASE)
        held = claim(store, max_rows=1, lease_seconds=1000)
        assert store.release_expired("things") == 0
        clock.shift(PAST_LEASE)
        assert store.release_expired("things") == 2
        assert store.release_expired("things") == 0
        assert states(store, ids(held)) == [State.CLAIMED]

    def test_release_expired_can_wait_a_while_longer(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        claim(store, lease_seconds=LEASE)
        clock.shift(PAST_LEASE)
        assert store.release_expired("things", older_than_seconds=60) == 0
        clock.shift(60)
        assert store.release_expired("things", older_than_seconds=60) == 1

    def test_what_ended_leases_hold_is_counted(self, store: Store, clock: Clock) -> None:
        declare(store)
        declare(store, "others")
        put_run(store, 4)
        put(store, "others")
        claim(store, max_rows=2, lease_seconds=LEASE)
        claim(store, max_rows=1, lease_seconds=1000)
        claim(store, "others", lease_seconds=LEASE)
        assert store.count_expired("things") == 0
        clock.shift(PAST_LEASE)
        assert store.count_expired("things") == 2
        store.release_expired("things")
        assert store.count_expired("things") == 0

    @pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
    def test_release_expired_refuses_an_absurd_time(self, store: Store, seconds: float) -> None:
        declare(store)
        with pytest.raises(InvalidInput):
            store.release_expired("things", older_than_seconds=seconds)

    def test_finished_entries_of_a_lease_that_ends_stay_finished(self, store: Store, clock: Clock) -> None:
        declare(store)
        first, second = put_run(store, 2)
        batch = claim(store, lease_seconds=LEASE)
        store.finish(batch.token, {first: Outcome.delivered()})
        clock.shift(PAST_LEASE)
        assert store.release_expired("things") == 1
        assert states(store, [first, second]) == [State.DELIVERED, State.PENDING]
