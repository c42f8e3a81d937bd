"""Coalesce channels: whole groups, one tenant, unknown outcomes; and debounce."""

from __future__ import annotations

from uuid import UUID

import pytest

from carrick.entry import Outcome, State
from carrick.outbox.channel import Mode
from carrick.outbox.explain import explain
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, drain, finish_each, ids, put, put_run, states

TEN = b'"01234567"'


class CoalesceContract:
    """G4 for groups that become one delivery each."""

    @pytest.fixture
    def coalesce(self, store: Store) -> Store:
        """A store with one coalescing channel."""
        declare(store, mode=Mode.COALESCE)
        return store

    def test_a_claim_takes_whole_groups_and_counts_groups(self, coalesce: Store) -> None:
        first = put_run(coalesce, 3, group_key="g")
        second = put_run(coalesce, 2, group_key="h")
        third = put_run(coalesce, 1, group_key="i")
        assert drain(coalesce, max_rows=2) == [first + second, third]

    def test_entries_of_a_group_stand_together_whenever_they_were_put(self, coalesce: Store) -> None:
        a1, b1, a2, b2 = (put(coalesce, group_key=group) for group in "abab")
        assert ids(claim(coalesce)) == [a1, a2, b1, b2]

    def test_an_entry_without_a_group_is_a_group_by_itself(self, coalesce: Store) -> None:
        one, two = put_run(coalesce, 2)
        assert drain(coalesce, max_rows=1) == [[one], [two]]

    def test_a_claim_takes_groups_of_one_tenant_only(self, coalesce: Store) -> None:
        for tenant in "abab":
            put(coalesce, tenant_id=tenant, group_key="g")
        for _ in range(2):
            batch = claim(coalesce)
            assert len(batch) == 2
            assert len({entry.tenant_id for entry in batch}) == 1

    def test_a_claimed_group_is_not_claimed_again_and_new_entries_wait(self, coalesce: Store) -> None:
        put_run(coalesce, 2, group_key="g")
        held = claim(coalesce)
        new = put(coalesce, group_key="g")
        assert not claim(coalesce)
        coalesce.finish_all(held.token)
        assert ids(claim(coalesce)) == [new]

    def test_groups_are_taken_up_to_the_byte_limit(self, coalesce: Store) -> None:
        first = put_run(coalesce, 3, group_key="g", payload=TEN)
        second = put_run(coalesce, 3, group_key="h", payload=TEN)
        third = put_run(coalesce, 3, group_key="i", payload=TEN)
        assert drain(coalesce, max_bytes=60) == [first + second, third]

    def test_at_least_one_group_is_taken_whole_whatever_its_size(self, coalesce: Store) -> None:
        first = put_run(coalesce, 3, group_key="g", payload=TEN)
        put_run(coalesce, 3, group_key="h", payload=TEN)
        assert ids(claim(coalesce, max_bytes=1)) == first

    def test_a_principals_gate_keeps_only_its_entries_out_of_the_group(self, coalesce: Store) -> None:
        gated = put(coalesce, group_key="g", principal="p")
        free = put(coalesce, group_key="g", principal="q")
        nameless = put(coalesce, group_key="g")
        coalesce.close_gate("things", "principal:p", None, "revoked")
        assert drain(coalesce) == [[free, nameless]]
        coalesce.open_gate("things", "principal:p")
        assert drain(coalesce) == [[gated]]

    def test_a_retry_holds_its_whole_group_until_it_is_due(self, coalesce: Store, clock: Clock) -> None:
        members = put_run(coalesce, 2, group_key="g")
        finish_each(coalesce, claim(coalesce), Outcome.retry(after=100))
        new = put(coalesce, group_key="g")
        assert not claim(coalesce)
        clock.shift(101)
        assert ids(claim(coalesce)) == [*members, new]

    def test_a_group_of_which_a_part_was_delivered_comes_back_with_the_rest(self, coalesce: Store) -> None:
        first, second, third = put_run(coalesce, 3, group_key="g")
        batch = claim(coalesce)
        coalesce.finish(batch.token, {first: Outcome.delivered(), second: Outcome.released()})
        assert not claim(coalesce)
        coalesce.finish(batch.token, {third: Outcome.released()})
        assert ids(claim(coalesce)) == [second, third]

    def test_an_unsure_group_comes_back_alone_and_unchanged_with_its_intent(
        self, coalesce: Store, clock: Clock
    ) -> None:
        unsure = put_run(coalesce, 2, group_key="g")
        batch = claim(coalesce)
        coalesce.note(batch.token, {"total": 7})
        finish_each(coalesce, batch, Outcome.unsure(code="timeout"))
        later = put(coalesce, group_key="g")
        other = put(coalesce, group_key="h")
        clock.shift(60)
        again = claim(coalesce)
        assert ids(again) == unsure
        assert [entry.intent for entry in again] == [{"total": 7}] * 2
        assert [entry.attempt_count for entry in again] == [1, 1]
        assert ids(claim(coalesce)) == [other]
        coalesce.finish_all(again.token)
        assert ids(claim(coalesce)) == [later]

    def test_later_entries_of_an_unsure_group_wait_while_it_is_not_due(self, coalesce: Store) -> None:
        put(coalesce, group_key="g")
        finish_each(coalesce, claim(coalesce), Outcome.unsure(after=HOUR))
        put(coalesce, group_key="g")
        assert not claim(coalesce)

    def test_two_unsure_groups_come_back_one_by_one(self, coalesce: Store, clock: Clock) -> None:
        first = put_run(coalesce, 2, group_key="g")
        second = put_run(coalesce, 2, group_key="h")
        finish_each(coalesce, claim(coalesce), Outcome.unsure())
        clock.shift(60)
        assert sorted(drain(coalesce)) == sorted([first, second])

    def test_a_group_whose_worker_died_after_a_note_comes_back_frozen(self, coalesce: Store, clock: Clock) -> None:
        noted = put_run(coalesce, 2, group_key="g")
        batch = claim(coalesce, lease_seconds=10)
        coalesce.note(batch.token, {"to": 5})
        clock.shift(11)
        later = put(coalesce, group_key="g")
        again = claim(coalesce)
        assert ids(again) == noted
        assert [entry.intent for entry in again] == [{"to": 5}] * 2
        assert [entry.attempt_count for entry in again] == [0, 0]
        coalesce.finish_all(again.token)
        assert ids(claim(coalesce)) == [later]

    def test_a_group_whose_worker_died_without_a_note_comes_back_with_later_entries(
        self, coalesce: Store, clock: Clock
    ) -> None:
        members = put_run(coalesce, 2, group_key="g")
        claim(coalesce, lease_seconds=10)
        clock.shift(11)
        members.append(put(coalesce, group_key="g"))
        assert ids(claim(coalesce)) == members

    def test_a_retry_holds_its_group_also_when_the_worker_died_with_the_rest_of_it(
        self, coalesce: Store, clock: Clock
    ) -> None:
        first, second = put_run(coalesce, 2, group_key="g")
        batch = claim(coalesce, lease_seconds=10)
        coalesce.finish(batch.token, {second: Outcome.retry(after=100)})
        clock.shift(11)
        assert not claim(coalesce)
        clock.shift(100)
        assert ids(claim(coalesce)) == [first, second]

    def test_a_released_unsure_group_stays_frozen(self, coalesce: Store, clock: Clock) -> None:
        unsure = put_run(coalesce, 2, group_key="g")
        batch = claim(coalesce)
        coalesce.note(batch.token, 1)
        finish_each(coalesce, batch, Outcome.unsure())
        clock.shift(60)
        coalesce.release(claim(coalesce).token)
        put(coalesce, group_key="g")
        again = claim(coalesce)
        assert ids(again) == unsure
        assert [entry.intent for entry in again] == [1, 1]

    def test_an_unsure_entry_of_a_suspected_group_still_comes_back_alone(self, coalesce: Store, clock: Clock) -> None:
        unsure, released = put_run(coalesce, 2, group_key="g")
        claim(coalesce, lease_seconds=10)
        clock.shift(11)
        batch = claim(coalesce)
        coalesce.finish(batch.token, {unsure: Outcome.unsure(), released: Outcome.released()})
        clock.shift(60)
        assert drain(coalesce) == [[unsure], [released]]

    def test_a_retried_unsure_group_is_no_longer_frozen(self, coalesce: Store, clock: Clock) -> None:
        members = put_run(coalesce, 2, group_key="g")
        batch = claim(coalesce)
        coalesce.note(batch.token, 1)
        finish_each(coalesce, batch, Outcome.unsure())
        clock.shift(60)
        finish_each(coalesce, claim(coalesce), Outcome.retry())
        members.append(put(coalesce, group_key="g"))
        clock.shift(60)
        again = claim(coalesce)
        assert ids(again) == members
        assert [entry.intent for entry in again] == [None, None, None]

    def test_an_unsure_group_with_a_held_principal_waits_whole(self, coalesce: Store, clock: Clock) -> None:
        unsure = [put(coalesce, group_key="g", principal=name) for name in "pq"]
        finish_each(coalesce, claim(coalesce), Outcome.unsure())
        clock.shift(60)
        coalesce.close_gate("things", "principal:p", None, "revoked")
        assert not claim(coalesce)
        coalesce.open_gate("things", "principal:p")
        assert ids(claim(coalesce)) == unsure

    def test_who_waits_for_an_unsure_group_with_a_held_principal_is_told_of_that_gate(
        self, coalesce: Store, clock: Clock
    ) -> None:
        unsure = [put(coalesce, group_key="g", principal=name) for name in "pq"]
        finish_each(coalesce, claim(coalesce), Outcome.unsure())
        unsure.append(put(coalesce, group_key="g", principal="r"))
        clock.shift(60)
        coalesce.close_gate("things", "principal:p", None, "revoked")
        for entry_id in unsure:
            told = explain(coalesce.standing(entry_id))
            assert (told.reason, "principal 'p'" in told.sentence) == ("held", True)

    def test_others_of_a_group_go_past_an_unsure_part_behind_its_gate_and_are_told_its_intent(
        self, coalesce: Store, clock: Clock
    ) -> None:
        unsure = doubtful(coalesce, principal="p")
        clock.shift(60)
        coalesce.close_gate("things", "principal:p", None, "revoked")
        others = [put(coalesce, group_key="g", principal=name) for name in "qr"]
        assert coalesce.standing(others[0]).blocked_by is None
        batch = claim(coalesce)
        assert [(entry.id, entry.intent) for entry in batch] == [(other, {"to": 5}) for other in others]
        coalesce.finish_all(batch.token)
        coalesce.open_gate("things", "principal:p")
        (again,) = claim(coalesce)
        assert (again.id, again.intent) == (unsure, {"to": 5})

    def test_others_of_a_group_wait_while_an_unsure_part_of_it_is_behind_no_gate(
        self, coalesce: Store, clock: Clock
    ) -> None:
        held = doubtful(coalesce, principal="p")
        coalesce.close_gate("things", "principal:p", None, "revoked")
        free = doubtful(coalesce, principal="q")
        other = put(coalesce, group_key="g", principal="r")
        assert coalesce.standing(other).blocked_by == free
        clock.shift(60)
        assert drain(coalesce) == [[free], [other]]
        coalesce.open_gate("things", "principal:p")
        assert drain(coalesce) == [[held]]

    def test_a_doubt_behind_its_gate_is_told_in_a_claim_of_suspects_too(self, coalesce: Store, clock: Clock) -> None:
        doubtful(coalesce, principal="p")
        coalesce.close_gate("things", "principal:p", None, "revoked")
        suspect = put(coalesce, group_key="g")
        claim(coalesce, lease_seconds=10)
        clock.shift(60)
        (again,) = claim(coalesce)
        assert (again.id, again.intent) == (suspect, {"to": 5})

    def test_a_suspect_behind_its_gate_holds_nobody_else(self, coalesce: Store, clock: Clock) -> None:
        suspect = put(coalesce, group_key="g", principal="p")
        claim(coalesce, lease_seconds=10)
        clock.shift(11)
        coalesce.close_gate("things", "principal:p", None, "revoked")
        other = put(coalesce, group_key="g", principal="q")
        assert drain(coalesce) == [[other]]
        coalesce.open_gate("things", "principal:p")
        assert drain(coalesce) == [[suspect]]

    def test_what_a_worker_had_noted_when_it_died_is_frozen_and_the_rest_of_the_group_is_not(
        self, coalesce: Store, clock: Clock
    ) -> None:
        noted, other = (put(coalesce, group_key="g", principal=name) for name in "pq")
        batch = claim(coalesce, lease_seconds=10)
        coalesce.note(batch.token, {"to": 5}, [noted])
        clock.shift(11)
        coalesce.close_gate("things", "principal:p", None, "revoked")
        (again,) = claim(coalesce)
        assert (again.id, again.intent) == (other, {"to": 5})
        assert (coalesce.standing(noted).frozen, coalesce.standing(other).frozen) == (True, False)

    def test_an_unsure_outcome_keeps_the_intent_only_of_what_it_was_about(self, coalesce: Store, clock: Clock) -> None:
        noted, other = put_run(coalesce, 2, group_key="g")
        batch = claim(coalesce)
        coalesce.note(batch.token, {"to": 5}, [noted])
        finish_each(coalesce, batch, Outcome.unsure())
        clock.shift(60)
        assert [(entry.id, entry.intent) for entry in claim(coalesce)] == [(noted, {"to": 5}), (other, None)]

    def test_a_group_dies_of_its_fifth_crash_alone_as_one_unit(self, coalesce: Store, clock: Clock) -> None:
        poison = put_run(coalesce, 3, group_key="g")
        for _ in range(5):
            assert ids(claim(coalesce, lease_seconds=10)) == poison
            clock.shift(11)
        assert not claim(coalesce)
        assert states(coalesce, poison) == [State.DEAD] * 3
        assert {coalesce.standing(member).dlq_reason for member in poison} == {"crash_loop"}


def doubtful(store: Store, principal: str) -> UUID:
    """One entry of the group, of which nobody knows whether it went out."""
    entry_id = put(store, group_key="g", principal=principal)
    batch = claim(store)
    store.note(batch.token, {"to": 5})
    finish_each(store, batch, Outcome.unsure())
    return entry_id


class DebounceContract:
    """Debounce: due at the last put + delay, at the latest at the first put + max_wait."""

    @pytest.fixture
    def coalesce(self, store: Store) -> Store:
        """A store with one coalescing channel."""
        declare(store, mode=Mode.COALESCE)
        return store

    def test_a_group_is_due_at_its_last_put_plus_delay(self, coalesce: Store, clock: Clock) -> None:
        first = put(coalesce, group_key="g", delay_seconds=100)
        clock.shift(90)
        second = put(coalesce, group_key="g", delay_seconds=100)
        clock.shift(90)
        assert not claim(coalesce)
        clock.shift(11)
        assert ids(claim(coalesce)) == [first, second]

    def test_a_group_is_due_at_its_first_put_plus_max_wait_at_the_latest(self, coalesce: Store, clock: Clock) -> None:
        members = []
        for _ in range(4):
            members.append(put(coalesce, group_key="g", delay_seconds=100, max_wait_seconds=300))
            clock.shift(80)
        assert ids(claim(coalesce)) == members

    def test_a_group_is_not_due_before_its_max_wait(self, coalesce: Store, clock: Clock) -> None:
        for _ in range(3):
            put(coalesce, group_key="g", delay_seconds=100, max_wait_seconds=300)
            clock.shift(80)
        assert not claim(coalesce)

    def test_a_max_wait_shorter_than_the_delay_counts(self, coalesce: Store, clock: Clock) -> None:
        entry = put(coalesce, group_key="g", delay_seconds=1000, max_wait_seconds=100)
        assert not claim(coalesce)
        clock.shift(101)
        assert ids(claim(coalesce)) == [entry]

    def test_an_entry_without_delay_makes_its_whole_group_due_now(self, coalesce: Store) -> None:
        delayed = put(coalesce, group_key="g", delay_seconds=100)
        other = put(coalesce, group_key="h", delay_seconds=100)
        assert not claim(coalesce)
        urgent = put(coalesce, group_key="g")
        assert ids(claim(coalesce)) == [delayed, urgent]
        assert states(coalesce, [other]) == [State.PENDING]

    def test_a_debounced_group_that_was_released_is_due_at_once(self, coalesce: Store, clock: Clock) -> None:
        members = [put(coalesce, group_key="g", delay_seconds=100, max_wait_seconds=150) for _ in range(2)]
        clock.shift(90)
        members.append(put(coalesce, group_key="g", delay_seconds=100, max_wait_seconds=150))
        clock.shift(61)
        batch = claim(coalesce)
        assert ids(batch) == members
        coalesce.release(batch.token)
        assert ids(claim(coalesce)) == members

    def test_an_entry_behind_a_gate_does_not_make_its_group_due(self, coalesce: Store) -> None:
        put(coalesce, group_key="g", delay_seconds=100)
        put(coalesce, group_key="g", principal="p")
        coalesce.close_gate("things", "principal:p", None, "revoked")
        assert not claim(coalesce)
