"""Outcomes: what each does to the entry, its attempts and its next time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from carrick.entry import Outcome, OutcomeKind, State
from carrick.errors import InvalidInput
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.outbox.transitions import TRANSITIONS, after_attempt
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, finish_each, ids, put, put_run, states

MARGIN = timedelta(seconds=30)
"""More than a test takes, less than the times it tells apart."""


class OutcomeContract:
    """The table of outcomes; G2, an entry is always pending, claimed, delivered or dead."""

    @pytest.mark.parametrize("mode", list(Mode))
    @pytest.mark.parametrize("kind", list(OutcomeKind))
    def test_an_outcome_leads_to_its_state_and_spends_its_attempts(
        self, store: Store, kind: OutcomeKind, mode: Mode
    ) -> None:
        declare(store, mode=mode)
        entry_id = put(store, group_key="g")
        changed = store.finish(claim(store).token, {entry_id: Outcome(kind=kind)})
        expected = TRANSITIONS[kind]
        assert changed == {entry_id: expected.next_state}
        standing = store.standing(entry_id)
        assert (standing.state, standing.attempt_count) == (expected.next_state, int(expected.spends_attempt))
        assert standing.frozen is expected.freezes

    @pytest.mark.parametrize("kind", list(OutcomeKind))
    def test_the_last_attempt_decides(self, store: Store, clock: Clock, kind: OutcomeKind) -> None:
        declare(store, max_attempts=3)
        entry_id = put(store)
        for _ in range(2):
            finish_each(store, claim(store), Outcome.retry())
            clock.shift(HOUR)
        store.finish(claim(store).token, {entry_id: Outcome(kind=kind)})
        spent = 2 + TRANSITIONS[kind].spends_attempt
        standing = store.standing(entry_id)
        assert (standing.state, standing.attempt_count) == (after_attempt(kind, spent, 3), spent)

    def test_an_entry_that_spent_its_attempts_is_dead_with_that_reason(self, store: Store) -> None:
        declare(store, max_attempts=1)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.retry(code="http_500", message="boom"))
        standing = store.standing(entry_id)
        assert (standing.state, standing.dlq_reason) == (State.DEAD, "max_attempts")
        assert (standing.last_error_code, standing.last_error_message) == ("http_500", "boom")
        assert standing.failed_at is not None

    def test_a_rejected_entry_is_dead_at_once_with_what_was_said(self, store: Store) -> None:
        declare(store)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.rejected("no such account", code="http_422"))
        standing = store.standing(entry_id)
        assert (standing.state, standing.dlq_reason, standing.attempt_count) == (State.DEAD, "rejected", 1)
        assert (standing.last_error_code, standing.last_error_message) == ("http_422", "no such account")

    def test_one_batch_may_have_every_outcome(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, len(OutcomeKind))
        batch = claim(store)
        given = {entry_id: Outcome(kind=kind) for entry_id, kind in zip(waiting, OutcomeKind, strict=True)}
        changed = store.finish(batch.token, given)
        assert changed == {
            entry_id: TRANSITIONS[kind].next_state for entry_id, kind in zip(waiting, OutcomeKind, strict=True)
        }
        assert store.renew(batch.token, 10) == 0

    def test_entries_that_finish_does_not_mention_stay_claimed(self, store: Store) -> None:
        declare(store)
        first, second, third = put_run(store, 3)
        batch = claim(store)
        assert store.finish(batch.token, {second: Outcome.delivered()}) == {second: State.DELIVERED}
        assert states(store, [first, second, third]) == [State.CLAIMED, State.DELIVERED, State.CLAIMED]
        assert store.finish(batch.token, {second: Outcome.retry()}) == {}
        assert set(store.finish_all(batch.token)) == {first, third}

    def test_finish_with_no_outcomes_changes_nothing(self, store: Store) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        assert store.finish(batch.token, {}) == {}
        assert states(store, ids(batch)) == [State.CLAIMED]

    def test_finish_all_delivers_entries_that_were_tried_before(self, store: Store, clock: Clock) -> None:
        declare(store)
        first, second = put_run(store, 2)
        store.finish(claim(store).token, {first: Outcome.retry(code="x"), second: Outcome.released()})
        clock.shift(HOUR)
        assert store.finish_all(claim(store).token) == dict.fromkeys([first, second], State.DELIVERED)
        assert [store.standing(entry_id).attempt_count for entry_id in (first, second)] == [2, 1]

    def test_a_retry_keeps_what_went_wrong_and_counts_for_the_next_claim(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.retry(code="c", message="m" * 5000))
        standing = store.standing(entry_id)
        assert standing.last_error_code == "c"
        assert standing.last_error_message is not None
        assert standing.last_error_message.startswith("mmm")
        assert standing.last_attempt_at is not None
        clock.shift(HOUR)
        assert [entry.attempt_count for entry in claim(store)] == [1]

    @pytest.mark.parametrize("said", ["a\x00b", "\ud800", "\U0001f44b", "'\\\"%s", "x" * 100_000], ids=ascii)
    def test_whatever_a_destination_said_the_entry_is_finished(self, store: Store, said: str) -> None:
        declare(store)
        retried, dead = put_run(store, 2)
        batch = claim(store)
        outcomes = {retried: Outcome.retry(code=said, message=said), dead: Outcome.rejected(said, code=said)}
        assert store.finish(batch.token, outcomes) == {retried: State.PENDING, dead: State.DEAD}
        assert all(store.standing(entry_id).last_error_message for entry_id in (retried, dead))

    @pytest.mark.parametrize("after", [float("nan"), float("inf"), -5.0, 1e300])
    def test_an_absurd_time_to_wait_does_not_bury_an_entry(self, store: Store, after: float) -> None:
        declare(store)
        entry_id = put(store)
        batch = claim(store)
        try:
            store.finish(batch.token, {entry_id: Outcome.retry(after=after)})
        except InvalidInput:
            assert states(store, [entry_id]) == [State.CLAIMED]
            return
        due = store.standing(entry_id).next_attempt_at
        assert due is not None
        assert due - store.now() < timedelta(days=400)

    @pytest.mark.parametrize("kind", [OutcomeKind.RETRY, OutcomeKind.UNSURE])
    def test_backoff_doubles_up_to_its_cap_between_half_and_all_of_it(
        self, store: Store, clock: Clock, kind: OutcomeKind
    ) -> None:
        declare(store, backoff_base_seconds=1000, backoff_cap_seconds=5000)
        entry_id = put(store)
        for whole in (1000, 2000, 4000, 5000, 5000):
            before = store.now()
            store.finish(claim(store).token, {entry_id: Outcome(kind=kind)})
            due = store.standing(entry_id).next_attempt_at
            assert due is not None
            assert timedelta(seconds=whole / 2) <= due - before <= timedelta(seconds=whole) + MARGIN
            clock.shift(whole + 60)

    def test_backoff_is_spread(self, store: Store) -> None:
        declare(store, backoff_base_seconds=1000, backoff_cap_seconds=1000)
        waiting = put_run(store, 50)
        finish_each(store, claim(store), Outcome.retry())
        dues = [store.standing(entry_id).next_attempt_at for entry_id in waiting]
        assert len(set(dues)) > 25

    def test_retry_after_wins_when_it_is_later_than_the_backoff(self, store: Store) -> None:
        declare(store, backoff_base_seconds=10, backoff_cap_seconds=10)
        first, second = put_run(store, 2)
        now = store.now()
        store.finish(claim(store).token, {first: Outcome.retry(after=5000), second: Outcome.retry(after=0.5)})
        due_first, due_second = (store.standing(entry_id).next_attempt_at for entry_id in (first, second))
        assert due_first is not None
        assert due_second is not None
        assert timedelta(seconds=5000) <= due_first - now <= timedelta(seconds=5000) + MARGIN
        assert timedelta(seconds=5) <= due_second - now <= timedelta(seconds=10) + MARGIN

    def test_released_with_a_time_waits_until_then_and_spends_nothing(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        store.finish(claim(store).token, {entry_id: Outcome(kind=OutcomeKind.RELEASED, after=100)})
        assert not claim(store)
        clock.shift(101)
        assert [entry.attempt_count for entry in claim(store)] == [0]

    def test_an_entry_to_retry_does_not_hold_up_others(self, store: Store) -> None:
        declare(store)
        first, second = put_run(store, 2)
        store.finish(claim(store, max_rows=1).token, {first: Outcome.retry(after=HOUR)})
        assert ids(claim(store)) == [second]

    @pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
    def test_an_unsure_batch_comes_back_together_alone_and_with_its_intent(
        self, store: Store, clock: Clock, mode: Mode
    ) -> None:
        declare(store, mode=mode)
        unsure = put_run(store, 3)
        batch = claim(store)
        store.note(batch.token, {"id": "b1"})
        finish_each(store, batch, Outcome.unsure())
        put_run(store, 5)
        clock.shift(HOUR)
        again = claim(store, max_rows=2)
        assert ids(again) == unsure
        assert [entry.intent for entry in again] == [{"id": "b1"}] * 3

    @pytest.mark.parametrize("mode", list(Mode))
    def test_an_unsure_batch_waits_for_the_latest_of_its_times(self, store: Store, clock: Clock, mode: Mode) -> None:
        declare(store, mode=mode)
        first, second = put_run(store, 2, group_key="g")
        batch = claim(store)
        store.finish(batch.token, {first: Outcome.unsure(), second: Outcome.unsure(after=1000)})
        clock.shift(500)
        assert not claim(store)
        clock.shift(501)
        assert ids(claim(store)) == [first, second]

    def test_an_unsure_batch_of_two_tenants_waits_for_both_gates(self, store: Store, clock: Clock) -> None:
        declare(store)
        unsure = {put(store, tenant_id="a"), put(store, tenant_id="b")}
        finish_each(store, claim(store), Outcome.unsure())
        clock.shift(60)
        store.close_gate("things", "tenant:a", None, "closed")
        assert not claim(store)
        store.open_gate("things", "tenant:a")
        assert set(ids(claim(store))) == unsure

    def test_a_claim_for_one_tenant_leaves_an_unsure_batch_of_several_alone(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store, tenant_id="a")
        put(store, tenant_id="b")
        finish_each(store, claim(store), Outcome.unsure())
        clock.shift(60)
        assert all(entry.tenant_id == "b" for entry in claim(store, tenant="b"))
