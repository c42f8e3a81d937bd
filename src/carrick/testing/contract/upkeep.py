"""Redrive, prune and stats: G2, nothing but retention removes an entry."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from carrick.entry import ChannelStats, Outcome, State
from carrick.errors import EntryNotFound, InvalidInput
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import DAY, HOUR, claim, declare, finish_each, ids, put, put_run, states


class RedriveContract:
    """Dead entries are sent round again: chosen, limited, previewed, spread over time."""

    def test_a_redriven_entry_starts_again_with_no_attempts(self, store: Store, clock: Clock) -> None:
        declare(store, max_attempts=2)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.retry(code="a"))
        clock.shift(60)
        finish_each(store, claim(store), Outcome.retry(code="b"))
        assert store.redrive("things", spread_seconds=0) == 1
        standing = store.standing(entry_id)
        assert (standing.state, standing.attempt_count, standing.crash_count) == (State.PENDING, 0, 0)
        assert (standing.dlq_reason, standing.failed_at) == (None, None)
        assert [entry.attempt_count for entry in claim(store)] == [0]

    def test_a_crash_loop_is_forgotten_by_a_redrive(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        for _ in range(5):
            claim(store, lease_seconds=10)
            clock.shift(11)
        store.release_expired("things")
        assert store.redrive("things", reason="crash_loop", spread_seconds=0) == 1
        new = put(store)
        batch = claim(store)
        assert len(batch) == 2
        assert new in ids(batch)
        assert {entry.crash_count for entry in batch} == {0}

    def test_redrive_takes_only_dead_entries_of_its_channel(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        first, second, third = put_run(store, 3)
        other = put(store, "others")
        batch = claim(store)
        store.finish(batch.token, {first: Outcome.rejected(), second: Outcome.delivered()})
        finish_each(store, claim(store, "others"), Outcome.rejected())
        given = [first, second, third, other, uuid4()]
        assert store.redrive("things", ids=given, spread_seconds=0) == 1
        assert states(store, [first, second, third, other]) == [
            State.PENDING,
            State.DELIVERED,
            State.CLAIMED,
            State.DEAD,
        ]

    def test_redrive_of_no_ids_takes_none(self, store: Store) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), Outcome.rejected())
        assert store.redrive("things", ids=[]) == 0

    def test_redrive_can_choose_by_reason(self, store: Store) -> None:
        declare(store, max_attempts=1)
        rejected, spent = put_run(store, 2)
        store.finish(claim(store).token, {rejected: Outcome.rejected(), spent: Outcome.retry()})
        assert store.redrive("things", reason="max_attempts", spread_seconds=0) == 1
        assert states(store, [rejected, spent]) == [State.DEAD, State.PENDING]
        assert store.redrive("things", reason="nothing like it") == 0
        assert store.redrive("things", ids=[rejected], reason="max_attempts") == 0

    def test_redrive_can_be_limited_and_takes_the_oldest_dead_first(self, store: Store, clock: Clock) -> None:
        declare(store)
        waiting = put_run(store, 4)
        batch = claim(store)
        for entry_id in reversed(waiting):
            store.finish(batch.token, {entry_id: Outcome.rejected()})
            clock.shift(1)
        assert store.redrive("things", max_rows=2, spread_seconds=0) == 2
        assert states(store, waiting) == [State.DEAD, State.DEAD, State.PENDING, State.PENDING]

    def test_a_dry_run_counts_and_changes_nothing(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 3)
        finish_each(store, claim(store), Outcome.rejected())
        assert store.redrive("things", dry_run=True) == 3
        assert store.redrive("things", dry_run=True, max_rows=2) == 2
        assert states(store, waiting) == [State.DEAD] * 3

    def test_redriven_entries_are_spread_evenly(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 10)
        finish_each(store, claim(store), Outcome.rejected())
        assert store.redrive("things", spread_seconds=1000) == 10
        dues = [standing.next_attempt_at for standing in map(store.standing, waiting)]
        steps = [(due - dues[0]).total_seconds() for due in dues if due is not None and dues[0] is not None]
        assert sorted(steps) == pytest.approx([100.0 * n for n in range(10)], abs=0.01)
        assert len(claim(store)) == 1

    @pytest.mark.parametrize("choice", [{"max_rows": 0}, {"max_rows": -1}, {"spread_seconds": -1}], ids=str)
    def test_redrive_refuses_absurd_limits(self, store: Store, choice: dict[str, float]) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), Outcome.rejected())
        with pytest.raises(InvalidInput) as caught:
            store.redrive("things", **choice)  # type: ignore[arg-type]
        assert caught.value.field == next(iter(choice))
        assert store.redrive("things", dry_run=True) == 1


class PruneContract:
    """G2 Not lost."""

    def test_only_ended_entries_past_their_retention_are_removed(self, store: Store, clock: Clock) -> None:
        declare(store, retention_days=2, dead_retention_days=4)
        delivered, dead, pending, claimed = put_run(store, 4)
        batch = claim(store, max_rows=3)
        store.finish(
            batch.token,
            {delivered: Outcome.delivered(), dead: Outcome.rejected(), pending: Outcome.retry(after=30 * DAY)},
        )
        claim(store, lease_seconds=86_400)
        removed = []
        for _ in range(5):
            clock.shift(DAY)
            removed.append(store.prune("things"))
        assert removed == [0, 1, 0, 1, 0]
        for gone in (delivered, dead):
            with pytest.raises(EntryNotFound):
                store.standing(gone)
        assert states(store, [pending, claimed]) == [State.PENDING, State.CLAIMED]

    def test_pending_and_claimed_entries_outlive_every_retention(self, store: Store, clock: Clock) -> None:
        declare(store, retention_days=0, dead_retention_days=0)
        waiting = put_run(store, 2)
        claim(store, max_rows=1, lease_seconds=86_400)
        clock.shift(300 * DAY)
        assert store.prune("things") == 0
        assert states(store, waiting) == [State.CLAIMED, State.PENDING]

    def test_prune_takes_at_most_the_rows_asked_for_oldest_first(self, store: Store, clock: Clock) -> None:
        declare(store, retention_days=0)
        waiting = put_run(store, 5)
        for _ in waiting:
            store.finish_all(claim(store, max_rows=1).token)
            clock.shift(1)
        assert store.prune("things", max_rows=2) == 2
        assert states(store, waiting[2:]) == [State.DELIVERED] * 3
        assert [store.prune("things", max_rows=2) for _ in range(3)] == [2, 1, 0]

    def test_a_sequence_number_is_not_used_again_when_all_were_pruned(self, store: Store, clock: Clock) -> None:
        declare(store, retention_days=0)
        numbers: list[int] = []
        for _ in range(3):
            put_run(store, 2)
            batch = claim(store)
            numbers += [entry.seq for entry in batch]
            store.finish_all(batch.token)
            clock.shift(1)
            assert store.prune("things") == 2
        assert numbers == sorted(set(numbers))

    def test_prune_leaves_other_channels_alone(self, store: Store, clock: Clock) -> None:
        declare(store, retention_days=0)
        declare(store, "others", retention_days=0)
        other = put(store, "others")
        store.finish_all(claim(store, "others").token)
        clock.shift(DAY)
        assert store.prune("things") == 0
        assert states(store, [other]) == [State.DELIVERED]

    def test_a_redriven_entry_is_not_pruned(self, store: Store, clock: Clock) -> None:
        declare(store, dead_retention_days=1)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.rejected())
        store.redrive("things", spread_seconds=0)
        clock.shift(2 * DAY)
        assert store.prune("things") == 0
        assert ids(claim(store)) == [entry_id]

    @pytest.mark.parametrize("max_rows", [0, -1])
    def test_prune_refuses_absurd_limits(self, store: Store, max_rows: int) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            store.prune("things", max_rows=max_rows)
        assert caught.value.field == "max_rows"


def stats_of(store: Store, channel: str = "things") -> ChannelStats:
    """One channel at a glance; a store may come with channels of its own."""
    (stats,) = [stats for stats in store.stats() if stats.channel == channel]
    return stats


class StatsContract:
    """Every channel at a glance."""

    def test_a_channel_without_entries_is_listed_with_zeros(self, store: Store) -> None:
        declare(store)
        stats = stats_of(store)
        assert stats.channel == "things"
        assert (stats.pending_count, stats.held_count, stats.claimed_count, stats.dead_count) == (0, 0, 0, 0)
        assert (stats.backlog_bytes, stats.oldest_pending_age_seconds) == (0, None)
        assert (stats.last_success_at, stats.last_error_at) == (None, None)

    def test_entries_are_counted_where_they_are(self, store: Store, clock: Clock) -> None:
        declare(store)
        declare(store, "others", mode=Mode.ORDERED)
        put_run(store, 6, payload=b"12345")
        put(store, "others", payload=b"1")
        clock.shift(HOUR)
        batch = claim(store, max_rows=4)
        first, second, *_ = ids(batch)
        store.finish(batch.token, {first: Outcome.rejected(), second: Outcome.delivered()})
        others, stats = stats_of(store, "others"), stats_of(store)
        assert (stats.pending_count, stats.claimed_count, stats.dead_count) == (2, 2, 1)
        assert stats.backlog_bytes == 4 * 5
        assert stats.oldest_pending_age_seconds == pytest.approx(HOUR, abs=60)
        assert stats.approximate == ()
        assert (others.channel, others.pending_count, others.backlog_bytes) == ("others", 1, 1)

    def test_held_entries_are_the_pending_ones_behind_a_closed_gate(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 2, tenant_id="t")
        put(store, tenant_id="u", principal="p")
        put(store, tenant_id="u")
        store.close_gate("things", "tenant:t", 10, "x")
        store.close_gate("things", "principal:p", 1000, "x")
        assert (stats_of(store).pending_count, stats_of(store).held_count) == (4, 3)
        clock.shift(11)
        assert stats_of(store).held_count == 1
        store.close_gate("things", "*", 10, "x")
        assert stats_of(store).held_count == 4

    def test_an_entry_behind_two_gates_is_held_once(self, store: Store) -> None:
        declare(store)
        put(store, tenant_id="t", principal="p")
        store.close_gate("things", "tenant:t", None, "x")
        store.close_gate("things", "principal:p", None, "x")
        assert (stats_of(store).pending_count, stats_of(store).held_count) == (1, 1)

    def test_the_last_success_and_the_last_error_are_dated(self, store: Store, clock: Clock) -> None:
        declare(store)
        first, second, _ = put_run(store, 3)
        batch = claim(store)
        start = store.now()
        store.finish(batch.token, {first: Outcome.retry(after=HOUR, code="x")})
        clock.shift(100)
        store.finish(batch.token, {second: Outcome.delivered()})
        stats = stats_of(store)
        assert stats.last_error_at is not None
        assert stats.last_success_at is not None
        assert timedelta(0) <= stats.last_error_at - start < timedelta(seconds=60)
        assert stats.last_success_at - start >= timedelta(seconds=100)

    def test_the_last_error_stays_when_its_entry_has_been_delivered(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), Outcome.retry(code="x"))
        told = stats_of(store).last_error_at
        clock.shift(HOUR)
        store.finish_all(claim(store).token)
        assert told is not None
        assert stats_of(store).last_error_at == told

    @pytest.mark.parametrize(
        ("outcome", "is_error"),
        [
            (Outcome.released(), False),
            (Outcome.released(code="connect_refused"), True),
            (Outcome.unsure(), True),
            (Outcome.rejected(), True),
            (Outcome.delivered(), False),
            (Outcome.duplicate(), False),
        ],
    )
    def test_what_was_given_back_because_of_the_destination_is_an_error(
        self, store: Store, outcome: Outcome, is_error: bool
    ) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), outcome)
        assert (stats_of(store).last_error_at is not None) is is_error

    def test_deliveries_of_the_last_minute_make_the_rate(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 12)
        store.finish_all(claim(store).token)
        assert stats_of(store).delivered_per_second == pytest.approx(0.2)
        clock.shift(61)
        assert stats_of(store).delivered_per_second == 0

    def test_a_high_rate_is_that_of_the_last_ten_thousand(self, store: Store, clock: Clock) -> None:
        declare(store, batch_bytes=1024**2)
        put_run(store, 10_001)
        while batch := claim(store, max_rows=10_000):
            store.finish_all(batch.token)
        clock.shift(20)
        assert 10_000 / 50 < stats_of(store).delivered_per_second <= 10_000 / 20

    def test_troubled_are_the_waiting_entries_that_were_tried_in_vain(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        retried, unsure, released, dead, _ = put_run(store, 5)
        put(store, "others")
        batch = claim(store)
        finish_each(store, claim(store, "others"), Outcome.retry(after=HOUR))
        outcomes = [Outcome.retry(after=HOUR, code="x"), Outcome.unsure(after=HOUR), Outcome.released()]
        store.finish(batch.token, dict(zip([retried, unsure, released], outcomes, strict=True)))
        store.finish(batch.token, {dead: Outcome.rejected()})
        put(store, delay_seconds=HOUR)
        assert (store.troubled("things"), store.troubled("others")) == (2, 1)

    def test_what_is_tried_again_is_not_troubled_meanwhile_nor_when_it_has_gone_through(
        self, store: Store, clock: Clock
    ) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), Outcome.retry())
        clock.shift(HOUR)
        again = claim(store)
        assert store.troubled("things") == 0
        store.release(again.token)
        assert store.troubled("things") == 1
        store.finish_all(claim(store).token)
        assert store.troubled("things") == 0

    def test_what_a_dead_worker_had_in_hand_was_not_tried_in_vain(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        claim(store, lease_seconds=10)
        clock.shift(11)
        assert store.release_expired("things") == 1
        assert store.troubled("things") == 0
