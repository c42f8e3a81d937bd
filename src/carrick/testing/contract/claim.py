"""Claiming: limits, order, priority, times, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from carrick.entry import State
from carrick.errors import InvalidInput, UnknownChannel
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, drain, ids, put, put_run, sample, states

TEN = b'"01234567"'


class ClaimContract:
    """What a claim takes and in which order; G9, the times are the database's."""

    def test_a_claim_of_nothing_is_an_empty_batch(self, store: Store) -> None:
        declare(store)
        batch = claim(store)
        assert not batch
        assert (len(batch), batch.lease_expires_at, batch.entries) == (0, None, ())

    def test_a_claimed_entry_is_not_claimed_again(self, store: Store) -> None:
        declare(store)
        put(store)
        assert claim(store)
        assert not claim(store)

    def test_in_a_stream_entries_of_a_group_are_claimed_by_several(self, store: Store) -> None:
        declare(store)
        put(store, group_key="g")
        assert claim(store)
        put(store, group_key="g")
        assert claim(store)

    def test_a_claim_takes_at_most_the_rows_asked_for_oldest_first(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 5)
        assert ids(claim(store, max_rows=2)) == waiting[:2]
        assert ids(claim(store, max_rows=2)) == waiting[2:4]
        assert ids(claim(store, max_rows=2)) == waiting[4:]

    def test_limits_that_are_not_given_are_those_of_the_channel(self, store: Store) -> None:
        declare(store, batch_rows=3, batch_bytes=20, lease_seconds=777)
        put_run(store, 3, payload=b"1")
        put_run(store, 3, payload=TEN)
        first = claim(store)
        assert len(first) == 3
        assert len(claim(store)) == 2
        assert first.lease_expires_at is not None
        remaining = first.lease_expires_at - store.now()
        assert timedelta(seconds=700) < remaining <= timedelta(seconds=777)

    def test_a_claim_takes_at_most_the_bytes_asked_for(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 5, payload=TEN)
        assert ids(claim(store, max_bytes=29)) == waiting[:2]
        assert ids(claim(store, max_bytes=30)) == waiting[2:5]

    def test_a_claim_takes_at_least_one_entry_whatever_its_size(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 2, payload=TEN)
        assert ids(claim(store, max_bytes=1)) == waiting[:1]

    def test_a_large_entry_is_taken_though_another_tenant_comes_first_and_has_nothing_due(self, store: Store) -> None:
        declare(store)
        put(store, tenant_id="a", delay_seconds=HOUR)
        large = put(store, tenant_id="b", payload=TEN)
        assert ids(claim(store, max_bytes=1)) == [large]

    def test_bytes_left_over_by_one_tenant_go_to_the_next(self, store: Store) -> None:
        declare(store)
        for tenant in "abc":
            put_run(store, 2, tenant_id=tenant, payload=TEN)
        assert len(claim(store, max_bytes=45)) == 4

    @pytest.mark.parametrize("mode", list(Mode))
    def test_a_claim_with_a_tenant_takes_only_that_tenant(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        put(store, tenant_id="a")
        wanted = [put(store, tenant_id="b"), put(store, tenant_id="b")]
        assert ids(claim(store, tenant="b")) == wanted
        assert not claim(store, tenant="b")
        assert not claim(store, tenant="nobody")

    def test_a_claim_can_take_only_the_tenant_without_a_name(self, store: Store) -> None:
        declare(store)
        put(store, tenant_id="a")
        nameless = put(store)
        assert ids(claim(store, tenant="")) == [nameless]

    @pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
    def test_a_one_tenant_channel_never_mixes_tenants_in_a_batch(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode, one_tenant=True)
        for tenant in ("a", "b", "c", "a", "b"):
            put(store, tenant_id=tenant, group_key=f"g{tenant}")
        taken = []
        while batch := claim(store):
            assert len({entry.tenant_id for entry in batch}) == 1
            taken += ids(batch)
            store.finish_all(batch.token)
        assert len(set(taken)) == 5

    def test_entries_of_other_channels_stay_where_they_are(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        other = put(store, "others")
        mine = put(store)
        assert ids(claim(store)) == [mine]
        assert states(store, [other]) == [State.PENDING]

    def test_a_delayed_entry_is_not_claimed_before_its_time(self, store: Store, clock: Clock) -> None:
        declare(store)
        late = put(store, delay_seconds=HOUR)
        assert not claim(store)
        clock.shift(HOUR - 60)
        assert not claim(store)
        clock.shift(61)
        assert ids(claim(store)) == [late]

    def test_a_claim_carries_the_token_it_was_given(self, store: Store) -> None:
        declare(store)
        put(store)
        token = uuid4()
        batch = claim(store, token=token)
        assert batch.token == token
        assert len(store.finish_all(token)) == 1

    def test_a_claim_without_a_token_makes_a_new_one_each_time(self, store: Store) -> None:
        declare(store)
        put_run(store, 2)
        assert claim(store, max_rows=1).token != claim(store, max_rows=1).token

    @pytest.mark.parametrize("mode", list(Mode))
    def test_what_a_claim_returns_is_sorted(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        for n in range(40):
            put(store, group_key=f"g{n * 7 % 5}", priority=n * 3 % 2, payload=b"%d" % n)
        entries = list(claim(store, max_rows=40))
        assert len(entries) == 40
        if mode is Mode.STREAM:
            assert entries == sorted(entries, key=lambda entry: (-entry.priority, entry.seq))
            return
        groups = list(dict.fromkeys(entry.group_key for entry in entries))
        assert entries == sorted(entries, key=lambda entry: (groups.index(entry.group_key), entry.seq))

    @pytest.mark.parametrize(
        "limits",
        [
            {"max_rows": 0},
            {"max_rows": -1},
            {"max_rows": 10_001},
            {"max_rows": 10**12},
            {"max_bytes": 0},
            {"max_bytes": -5},
            {"max_bytes": 10**12},
            {"lease_seconds": 0},
            {"lease_seconds": -1},
            {"lease_seconds": 86_401},
            {"owner": ""},
            {"owner": "a\x00b"},
        ],
        ids=str,
    )
    def test_absurd_limits_are_refused_by_name_and_nothing_is_claimed(
        self, store: Store, limits: dict[str, Any]
    ) -> None:
        declare(store)
        waiting = put(store)
        with pytest.raises(InvalidInput) as caught:
            claim(store, **limits)
        assert caught.value.field == next(iter(limits))
        assert states(store, [waiting]) == [State.PENDING]

    def test_operations_on_an_unknown_channel_are_refused_with_the_known_ones(self, store: Store) -> None:
        declare(store)
        operations: list[Callable[[], object]] = [
            lambda: claim(store, "nowhere"),
            lambda: store.release_expired("nowhere"),
            lambda: store.close_gate("nowhere", "*", 1, "x"),
            lambda: store.open_gate("nowhere", "*"),
            lambda: store.redrive("nowhere"),
            lambda: store.prune("nowhere"),
        ]
        for operation in operations:
            with pytest.raises(UnknownChannel) as caught:
                operation()
            assert "things" in caught.value.known

    def test_times_come_from_the_clock_of_the_database(self, store: Store, clock: Clock) -> None:
        """G9: a process cannot know the shifted clock, so whoever used its own would show the wrong year."""
        declare(store)
        before = store.now()
        clock.shift(400 * 24 * HOUR)
        assert store.now() - before >= timedelta(days=400)
        entry_id = put(store)
        (bulk_id,) = [answer.id for answer in store.put_many([sample()])]
        batch = claim(store, lease_seconds=60)
        year_on = before + timedelta(days=400)
        assert batch.lease_expires_at is not None
        assert batch.lease_expires_at > year_on
        assert all(entry.created_at >= year_on for entry in batch)
        for known in (entry_id, bulk_id):
            standing = store.standing(known)
            assert standing.claimed_at is not None
            assert standing.claimed_at >= year_on
        store.finish_all(batch.token)
        delivered_at = store.standing(entry_id).delivered_at
        assert delivered_at is not None
        assert delivered_at >= year_on


class PriorityContract:
    """Priority that ages: ten minutes of waiting outweigh one step."""

    def test_a_higher_priority_goes_first(self, store: Store) -> None:
        declare(store)
        low, usual, high = (put(store, priority=priority) for priority in (-1, 0, 1))
        assert drain(store, max_rows=1) == [[high], [usual], [low]]

    def test_less_than_ten_minutes_of_waiting_do_not_outweigh_a_step(self, store: Store, clock: Clock) -> None:
        declare(store)
        older = put(store)
        clock.shift(590)
        higher = put(store, priority=1)
        assert ids(claim(store)) == [higher, older]

    def test_more_than_ten_minutes_of_waiting_outweigh_a_step(self, store: Store, clock: Clock) -> None:
        declare(store)
        older = put(store)
        clock.shift(610)
        higher = put(store, priority=1)
        assert ids(claim(store)) == [older, higher]

    def test_the_lowest_priority_is_claimable_at_once_when_nothing_else_waits(self, store: Store) -> None:
        declare(store)
        low = put(store, priority=-1000)
        assert ids(claim(store)) == [low]

    def test_a_new_entry_goes_before_low_ones_that_are_being_worked_off(self, store: Store) -> None:
        declare(store)
        low = put_run(store, 4, priority=-1)
        assert ids(claim(store, max_rows=1)) == low[:1]
        usual = put(store)
        assert ids(claim(store, max_rows=1)) == [usual]

    @pytest.mark.parametrize("mode", [Mode.ORDERED, Mode.COALESCE])
    def test_groups_rank_by_priority_too(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        usual = put(store, group_key="a")
        low = put(store, group_key="b", priority=-2)
        high = put(store, group_key="c", priority=2)
        assert drain(store, max_rows=1) == [[high], [usual], [low]]


class UnfairContract:
    """A channel that is not fair: the oldest first, whoever's it is."""

    @pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
    def test_the_oldest_goes_first_whoever_it_belongs_to(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode, fair=False)
        waiting = [put(store, tenant_id=tenant) for tenant in "bbbab"]
        assert drain(store, max_rows=2) == [waiting[:2], waiting[2:4], waiting[4:]]
