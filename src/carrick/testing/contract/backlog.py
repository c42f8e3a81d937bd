"""Bounded channels: reject or evict, and what counts."""

from __future__ import annotations

import pytest

from carrick.entry import Outcome, State
from carrick.errors import BacklogFull
from carrick.outbox.channel import OnFull
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import claim, declare, finish_each, ids, put, put_run, sample, states

TEN = b'"01234567"'
FORTY = b'"' + b"x" * 38 + b'"'


class BacklogContract:
    """A channel with max_backlog_bytes never holds more; entries that ended do not count."""

    def test_a_full_channel_rejects_a_put_and_writes_nothing(self, store: Store) -> None:
        declare(store, max_backlog_bytes=30)
        kept = put_run(store, 3, payload=TEN)
        with pytest.raises(BacklogFull) as caught:
            store.put(sample(payload=b"1"))
        assert caught.value.channel == "things"
        assert ids(claim(store)) == kept

    def test_put_many_into_a_channel_that_gets_full_writes_nothing(self, store: Store) -> None:
        declare(store, max_backlog_bytes=30)
        with pytest.raises(BacklogFull):
            store.put_many([sample(payload=TEN)] * 4)
        assert not claim(store)

    def test_claimed_entries_count_and_delivered_ones_do_not(self, store: Store) -> None:
        declare(store, max_backlog_bytes=20)
        put_run(store, 2, payload=TEN)
        batch = claim(store)
        with pytest.raises(BacklogFull):
            store.put(sample(payload=TEN))
        store.finish_all(batch.token)
        put_run(store, 2, payload=TEN)

    @pytest.mark.parametrize("outcome", [Outcome.delivered(), Outcome.rejected()], ids=["delivered", "rejected"])
    def test_each_entry_that_ends_makes_room_for_one_more(self, store: Store, outcome: Outcome) -> None:
        declare(store, max_backlog_bytes=20)
        first, _ = put_run(store, 2, payload=TEN)
        store.finish(claim(store).token, {first: outcome})
        put(store, payload=TEN)
        with pytest.raises(BacklogFull):
            store.put(sample(payload=b"1"))

    def test_entries_that_come_back_still_count(self, store: Store, clock: Clock) -> None:
        declare(store, max_backlog_bytes=20)
        put_run(store, 2, payload=TEN)
        finish_each(store, claim(store), Outcome.retry())
        clock.shift(10)
        store.release(claim(store).token)
        claim(store, lease_seconds=1)
        clock.shift(10)
        store.release_expired("things")
        with pytest.raises(BacklogFull):
            store.put(sample(payload=b"1"))

    def test_a_crash_loop_makes_room(self, store: Store, clock: Clock) -> None:
        declare(store, max_backlog_bytes=10)
        poison = put(store, payload=TEN)
        for _ in range(5):
            claim(store, lease_seconds=1)
            clock.shift(2)
            store.release_expired("things")
        assert states(store, [poison]) == [State.DEAD]
        put(store, payload=TEN)

    def test_redriven_entries_count_again(self, store: Store) -> None:
        declare(store, max_backlog_bytes=10)
        put(store, payload=TEN)
        finish_each(store, claim(store), Outcome.rejected())
        store.redrive("things", spread_seconds=0)
        with pytest.raises(BacklogFull):
            store.put(sample(payload=b"1"))

    def test_a_known_key_is_answered_even_when_the_channel_is_full(self, store: Store) -> None:
        declare(store, max_backlog_bytes=10)
        first = put(store, payload=TEN, key="k")
        again = store.put(sample(payload=TEN, key="k"))
        assert (again.id, again.created) == (first, False)

    def test_a_limit_declared_later_counts_what_already_waits(self, store: Store) -> None:
        declare(store)
        put_run(store, 2, payload=TEN)
        claim(store, max_rows=1)
        declare(store, max_backlog_bytes=25)
        with pytest.raises(BacklogFull):
            store.put(sample(payload=TEN))
        put(store, payload=b"12345")

    def test_an_evicting_channel_buries_its_newest_entries_of_the_same_priority(self, store: Store) -> None:
        declare(store, max_backlog_bytes=40, on_full=OnFull.EVICT)
        waiting = put_run(store, 4, payload=TEN)
        new = store.put(sample(payload=TEN))
        assert new.state is State.PENDING
        assert states(store, waiting) == [State.PENDING, State.PENDING, State.PENDING, State.DEAD]
        buried = store.standing(waiting[3])
        assert (buried.dlq_reason, buried.attempt_count) == ("evicted", 0)
        assert set(ids(claim(store))) == {*waiting[:3], new.id}

    def test_eviction_takes_the_lowest_rank_first(self, store: Store) -> None:
        declare(store, max_backlog_bytes=40, on_full=OnFull.EVICT)
        low = put(store, payload=TEN, priority=-5)
        rest = put_run(store, 3, payload=TEN)
        put(store, payload=TEN)
        assert states(store, [low, *rest]) == [State.DEAD, State.PENDING, State.PENDING, State.PENDING]

    def test_an_entry_of_higher_priority_does_not_make_way(self, store: Store) -> None:
        declare(store, max_backlog_bytes=20, on_full=OnFull.EVICT)
        waiting = put_run(store, 2, payload=TEN, priority=1)
        new = store.put(sample(payload=TEN))
        assert (new.created, new.state) == (True, State.DEAD)
        assert store.standing(new.id).dlq_reason == "evicted"
        assert set(ids(claim(store))) == set(waiting)

    def test_nothing_is_evicted_for_an_entry_that_does_not_get_in(self, store: Store) -> None:
        declare(store, max_backlog_bytes=40, on_full=OnFull.EVICT)
        important = put_run(store, 3, payload=TEN, priority=1)
        usual = put(store, payload=TEN)
        new = store.put(sample(payload=FORTY))
        assert new.state is State.DEAD
        assert states(store, [*important, usual]) == [State.PENDING] * 4

    def test_claimed_entries_are_never_evicted(self, store: Store) -> None:
        declare(store, max_backlog_bytes=20, on_full=OnFull.EVICT)
        put_run(store, 2, payload=TEN)
        held = claim(store, max_rows=2)
        new = store.put(sample(payload=TEN, priority=9))
        assert new.state is State.DEAD
        assert len(store.finish_all(held.token)) == 2

    def test_an_entry_larger_than_the_whole_backlog_is_refused(self, store: Store) -> None:
        declare(store, max_backlog_bytes=20, on_full=OnFull.EVICT)
        kept = put(store, payload=TEN)
        with pytest.raises(BacklogFull):
            store.put(sample(payload=FORTY))
        assert states(store, [kept]) == [State.PENDING]
