"""Ordered channels: G4 and G5."""

from __future__ import annotations

from uuid import UUID

import pytest

from carrick.entry import Outcome, State
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, drain, finish_each, ids, put, put_run, states

LONG = 60
"""Far more entries than a claim of a few looks at."""


class OrderedContract:
    """G4 One at a time per group; G5 In order per group."""

    @pytest.fixture
    def ordered(self, store: Store) -> Store:
        """A store with one ordered channel."""
        declare(store, mode=Mode.ORDERED)
        return store

    @pytest.mark.parametrize("max_backlog_bytes", [None, 1_000_000])
    def test_a_long_queue_behind_a_waiting_head_hides_no_other_group(
        self, store: Store, max_backlog_bytes: int | None
    ) -> None:
        declare(store, mode=Mode.ORDERED, max_backlog_bytes=max_backlog_bytes)
        _long_queue(store)
        others = [put(store, group_key="other"), put(store)]
        assert ids(claim(store, max_rows=2)) == others
        assert not claim(store, max_rows=2)

    def test_a_long_queue_behind_a_waiting_head_hides_none_of_many_groups(self, ordered: Store) -> None:
        _long_queue(ordered)
        others = [put(ordered, group_key=name) for name in "hgfedcba"]
        found = [ids(claim(ordered, max_rows=2)) for _ in range(4)]
        assert found == [others[n : n + 2] for n in range(0, 8, 2)]

    def test_an_entry_without_a_group_goes_with_what_is_found_behind_a_long_queue(self, ordered: Store) -> None:
        _waiting_head(ordered)
        alone = put(ordered)
        put_run(ordered, LONG, group_key="busy")
        other = put(ordered, group_key="other")
        assert ids(claim(ordered, max_rows=5)) == [alone, other]

    def test_a_long_queue_behind_a_waiting_head_does_not_cost_its_tenant_the_turn(self, ordered: Store) -> None:
        _long_queue(ordered, tenant_id="slow")
        put_run(ordered, 20, tenant_id="quick")
        other = put(ordered, tenant_id="slow", group_key="other")
        assert other in ids(claim(ordered, max_rows=4))

    def test_a_long_queue_behind_a_waiting_head_does_not_hide_what_was_redriven(self, ordered: Store) -> None:
        alone = put(ordered)
        ordered.finish(claim(ordered).token, {alone: Outcome.rejected("no")})
        _long_queue(ordered)
        ordered.redrive("things", spread_seconds=0)
        assert ids(claim(ordered, max_rows=2)) == [alone]

    def test_a_batch_is_filled_with_followers_that_are_younger_than_a_queue_behind_a_waiting_head(
        self, ordered: Store
    ) -> None:
        head = put(ordered, group_key="busy")
        ordered.finish(claim(ordered).token, {head: Outcome.retry(after=HOUR)})
        heads = [put(ordered, group_key=name) for name in "abc"]
        put_run(ordered, 7, group_key="busy")
        followers = [put(ordered, group_key=name) for _ in range(3) for name in "abc"]
        assert sorted(ids(claim(ordered, max_rows=10))) == sorted([*heads, *followers[:7]])

    @pytest.mark.parametrize("tenant", ["a", "b"])
    def test_entries_without_a_group_before_it_do_not_carry_a_waiting_group_along(
        self, ordered: Store, tenant: str
    ) -> None:
        head = put(ordered, tenant_id=tenant, group_key="g")
        ordered.finish(claim(ordered).token, {head: Outcome.retry(after=HOUR)})
        alone = [put(ordered, tenant_id="a"), put(ordered, tenant_id="b")]
        put(ordered, tenant_id=tenant, group_key="g")
        assert drain(ordered) == [alone]

    def test_a_group_that_is_claimed_is_not_claimed_again(self, ordered: Store) -> None:
        put_run(ordered, 3, group_key="g")
        first = claim(ordered, max_rows=1)
        assert not claim(ordered)
        ordered.finish_all(first.token)
        assert len(claim(ordered)) == 2

    def test_a_new_entry_of_a_claimed_group_waits(self, ordered: Store) -> None:
        put(ordered, group_key="g")
        first = claim(ordered)
        new = put(ordered, group_key="g")
        assert not claim(ordered)
        ordered.finish_all(first.token)
        assert ids(claim(ordered)) == [new]

    def test_a_batch_holds_runs_of_many_groups_each_in_order(self, ordered: Store) -> None:
        groups: dict[str, list[UUID]] = {name: [] for name in "abc"}
        for n in range(12):
            name = "abc"[n % 3]
            groups[name].append(put(ordered, group_key=name))
        batch = claim(ordered)
        assert len(batch) == 12
        for name, members in groups.items():
            assert [entry.id for entry in batch if entry.group_key == name] == members

    def test_one_long_group_fills_a_batch(self, ordered: Store) -> None:
        waiting = put_run(ordered, 30, group_key="g")
        assert ids(claim(ordered, max_rows=20)) == waiting[:20]

    def test_a_run_stops_at_the_byte_limit_without_a_gap(self, ordered: Store) -> None:
        small = put(ordered, group_key="g", payload=b"1")
        put(ordered, group_key="g", payload=b'"large, too large"')
        put(ordered, group_key="g", payload=b"2")
        assert ids(claim(ordered, max_bytes=5)) == [small]

    def test_a_head_that_waits_blocks_its_group_only(self, ordered: Store, clock: Clock) -> None:
        head = put(ordered, group_key="g", delay_seconds=HOUR)
        follower = put(ordered, group_key="g")
        other = put(ordered, group_key="h")
        assert drain(ordered) == [[other]]
        clock.shift(HOUR + 1)
        assert drain(ordered) == [[head, follower]]

    def test_a_follower_that_waits_ends_the_run(self, ordered: Store, clock: Clock) -> None:
        head = put(ordered, group_key="g")
        waiting = put(ordered, group_key="g", delay_seconds=HOUR)
        last = put(ordered, group_key="g")
        assert drain(ordered) == [[head]]
        clock.shift(HOUR + 1)
        assert drain(ordered) == [[waiting, last]]

    def test_a_head_that_is_tried_again_keeps_its_place(self, ordered: Store, clock: Clock) -> None:
        head, follower = put_run(ordered, 2, group_key="g")
        batch = claim(ordered)
        ordered.finish(batch.token, {head: Outcome.retry(after=100), follower: Outcome.released()})
        assert not claim(ordered)
        clock.shift(101)
        assert ids(claim(ordered)) == [head, follower]

    def test_a_dead_head_lets_its_group_go_on(self, ordered: Store) -> None:
        head, follower = put_run(ordered, 2, group_key="g")
        batch = claim(ordered, max_rows=1)
        ordered.finish(batch.token, {head: Outcome.rejected()})
        assert ids(claim(ordered)) == [follower]

    def test_a_group_is_free_when_the_last_of_its_claimed_entries_is_finished(self, ordered: Store) -> None:
        first, second, third = put_run(ordered, 3, group_key="g")
        batch = claim(ordered, max_rows=2)
        ordered.finish(batch.token, {first: Outcome.delivered()})
        assert not claim(ordered)
        ordered.finish(batch.token, {second: Outcome.delivered()})
        assert ids(claim(ordered)) == [third]

    def test_finishing_one_group_frees_that_group_only(self, ordered: Store) -> None:
        one = put(ordered, group_key="g")
        put(ordered, group_key="h")
        batch = claim(ordered)
        next_of_g = put(ordered, group_key="g")
        put(ordered, group_key="h")
        ordered.finish(batch.token, {one: Outcome.delivered()})
        assert ids(claim(ordered)) == [next_of_g]

    def test_groups_of_the_same_name_of_two_tenants_are_two_groups(self, ordered: Store) -> None:
        first = put(ordered, group_key="g", tenant_id="a")
        assert ids(claim(ordered, tenant="a")) == [first]
        other = put(ordered, group_key="g", tenant_id="b")
        assert ids(claim(ordered)) == [other]

    def test_entries_without_a_group_are_independent(self, ordered: Store) -> None:
        put(ordered, delay_seconds=HOUR)
        free = put(ordered)
        held = claim(ordered)
        assert ids(held) == [free]
        assert len(ids(claim(ordered))) == 0
        another = put(ordered)
        assert ids(claim(ordered)) == [another]

    def test_higher_priority_does_not_overtake_in_its_group(self, ordered: Store) -> None:
        first = put(ordered, group_key="g", priority=-5)
        second = put(ordered, group_key="g", priority=5)
        assert drain(ordered, max_rows=1) == [[first], [second]]

    def test_a_held_principal_blocks_the_entries_behind_it(self, ordered: Store) -> None:
        first = put(ordered, group_key="g")
        second = put(ordered, group_key="g", principal="p")
        third = put(ordered, group_key="g")
        ordered.close_gate("things", "principal:p", None, "revoked")
        assert drain(ordered) == [[first]]
        ordered.open_gate("things", "principal:p")
        assert drain(ordered) == [[second, third]]

    def test_a_released_group_comes_back_in_order(self, ordered: Store) -> None:
        waiting = put_run(ordered, 4, group_key="g")
        ordered.release(claim(ordered, max_rows=2).token)
        assert ids(claim(ordered)) == waiting

    def test_an_expired_group_is_taken_over_in_order(self, ordered: Store, clock: Clock) -> None:
        waiting = put_run(ordered, 4, group_key="g")
        claim(ordered, max_rows=2, lease_seconds=10)
        clock.shift(11)
        assert [member for batch in drain(ordered) for member in batch] == waiting

    def test_unsure_entries_do_not_overtake_an_earlier_one_that_is_tried_later(
        self, ordered: Store, clock: Clock
    ) -> None:
        head, second = put_run(ordered, 2, group_key="g")
        other = put(ordered, group_key="h")
        batch = claim(ordered)
        ordered.finish(
            batch.token,
            {head: Outcome.retry(after=HOUR), second: Outcome.unsure(), other: Outcome.unsure()},
        )
        clock.shift(60)
        assert second not in ids(claim(ordered))
        assert states(ordered, [head, second]) == [State.PENDING, State.PENDING]

    def test_an_unsure_batch_comes_back_in_the_order_in_which_it_was_put(self, ordered: Store, clock: Clock) -> None:
        unsure = [put(ordered), put(ordered, group_key="g"), put(ordered), put(ordered, group_key="f")]
        batch = claim(ordered)
        ordered.finish(batch.token, {entry.id: Outcome.unsure(after=60) for entry in batch})
        clock.shift(120)
        assert ids(claim(ordered)) == unsure

    def test_redriven_entries_go_before_later_ones_of_their_group(self, ordered: Store) -> None:
        first, second = put_run(ordered, 2, group_key="g")
        finish_each(ordered, claim(ordered, max_rows=1), Outcome.rejected())
        ordered.redrive("things", spread_seconds=0)
        assert ids(claim(ordered)) == [first, second]


def _long_queue(store: Store, **fields: str) -> None:
    """A group whose head waits, and many entries behind it."""
    _waiting_head(store, **fields)
    put_run(store, LONG, group_key="busy", **fields)


def _waiting_head(store: Store, **fields: str) -> None:
    head = put(store, group_key="busy", **fields)
    store.finish(claim(store).token, {head: Outcome.retry(after=1000)})
