"""Standing and explain: G10, one sentence for every entry that is not delivered."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from carrick.entry import Outcome, State
from carrick.errors import InvalidToken
from carrick.outbox.channel import Mode, OnFull
from carrick.outbox.explain import Explanation, explain
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, finish_each, put, put_run


def delivered(store: Store) -> UUID:
    declare(store)
    entry_id = put(store)
    store.finish_all(claim(store).token)
    return entry_id


def rejected(store: Store) -> UUID:
    declare(store)
    entry_id = put(store)
    finish_each(store, claim(store), Outcome.rejected("no", code="http_422"))
    return entry_id


def claimed(store: Store) -> UUID:
    declare(store)
    entry_id = put(store)
    claim(store, owner="w-7", lease_seconds=60)
    return entry_id


def held(store: Store) -> UUID:
    declare(store)
    store.close_gate("things", "tenant:t", HOUR, "unpaid")
    return put(store, tenant_id="t")


def held_as_a_channel(store: Store) -> UUID:
    declare(store)
    store.close_gate("things", "*", None, "the destination is being moved")
    return put(store)


def held_as_a_principal(store: Store) -> UUID:
    declare(store)
    store.close_gate("things", "principal:ann", None, "must sign in again")
    return put(store, principal="ann")


def spent(store: Store) -> UUID:
    declare(store, max_attempts=1)
    entry_id = put(store)
    finish_each(store, claim(store), Outcome.retry(code="http_500"))
    return entry_id


def evicted(store: Store) -> UUID:
    declare(store, max_backlog_bytes=10, on_full=OnFull.EVICT)
    entry_id = put(store)
    put(store, priority=1)
    return entry_id


def unsure(store: Store) -> UUID:
    declare(store)
    entry_id = put(store)
    finish_each(store, claim(store), Outcome.unsure(after=HOUR, code="timeout"))
    return entry_id


def group_claimed(store: Store) -> UUID:
    declare(store, mode=Mode.ORDERED)
    put(store, group_key="g")
    claim(store)
    return put(store, group_key="g")


def behind_head(store: Store) -> UUID:
    declare(store, mode=Mode.ORDERED)
    put(store, group_key="g", delay_seconds=HOUR)
    return put(store, group_key="g")


def behind_unsure(store: Store) -> UUID:
    declare(store, mode=Mode.COALESCE)
    put(store, group_key="g")
    finish_each(store, claim(store), Outcome.unsure(after=HOUR))
    return put(store, group_key="g")


def backoff(store: Store) -> UUID:
    declare(store)
    entry_id = put(store)
    finish_each(store, claim(store), Outcome.retry(after=HOUR, code="http_500"))
    return entry_id


def debounced(store: Store) -> UUID:
    declare(store, mode=Mode.COALESCE)
    put(store, group_key="g", delay_seconds=HOUR)
    return put(store, group_key="g", delay_seconds=2 * HOUR)


def not_due(store: Store) -> UUID:
    declare(store)
    return put(store, delay_seconds=HOUR)


def in_turn(store: Store) -> UUID:
    declare(store)
    put_run(store, 3)
    return put(store)


def due(store: Store) -> UUID:
    declare(store)
    return put(store)


SITUATIONS: list[tuple[Callable[[Store], UUID], str, bool, str]] = [
    (delivered, "delivered", False, "Delivered"),
    (rejected, "dead", False, "http_422: no"),
    (spent, "dead", False, "were spent"),
    (evicted, "dead", False, "full"),
    (claimed, "claimed", True, "w-7"),
    (held, "held", True, "tenant 't' is closed"),
    (held_as_a_channel, "held", False, "channel 'things' is closed until somebody opens it"),
    (held_as_a_principal, "held", False, "principal 'ann' is closed"),
    (unsure, "unsure", True, "In doubt"),
    (group_claimed, "group_claimed", False, "'g'"),
    (behind_head, "behind_head", False, "'g'"),
    (behind_unsure, "behind_head", False, "'g'"),
    (backoff, "backoff", True, "http_500"),
    (debounced, "debounced", True, "'g'"),
    (not_due, "not_due", True, "Not due"),
    (in_turn, "in_turn", False, "3 entries"),
    (due, "due", False, "Due now"),
]
"""A way into each situation, its reason, whether it has an end that is known, and a word of its sentence."""


def explained(store: Store, entry_id: UUID) -> Explanation:
    return explain(store.standing(entry_id))


class StandingContract:
    """G10 Explained."""

    @pytest.mark.parametrize(
        ("situation", "reason", "ends", "word"), SITUATIONS, ids=[situation.__name__ for situation, *_ in SITUATIONS]
    )
    def test_every_situation_has_its_sentence(
        self, store: Store, situation: Callable[[Store], UUID], reason: str, ends: bool, word: str
    ) -> None:
        entry_id = situation(store)
        explanation = explained(store, entry_id)
        assert explanation.reason == reason
        assert (explanation.until is not None) is ends
        assert explanation.until is None or explanation.until > store.now()
        assert word in explanation.sentence
        assert explanation.sentence.count(". ") == 0

    def test_an_unsure_entry_that_is_due_says_so(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.unsure())
        clock.shift(60)
        assert explained(store, entry_id).reason == "unsure"

    def test_a_claim_whose_lease_is_over_says_that_the_next_one_takes_it(self, store: Store, clock: Clock) -> None:
        entry_id = claimed(store)
        clock.shift(61)
        explanation = explained(store, entry_id)
        assert (explanation.reason, explanation.until) == ("lease_over", None)
        assert "w-7" in explanation.sentence

    def test_an_entry_that_kills_its_workers_is_dead_with_that_reason(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        for _ in range(5):
            assert claim(store, lease_seconds=1)
            clock.shift(2)
        store.release_expired("things")
        assert "5 workers died" in explained(store, entry_id).sentence

    def test_the_longest_gate_is_named(self, store: Store) -> None:
        declare(store)
        entry_id = put(store, tenant_id="t", principal="p")
        store.close_gate("things", "*", 10, "short")
        store.close_gate("things", "tenant:t", 1000, "longer")
        assert "longer" in explained(store, entry_id).sentence
        store.close_gate("things", "principal:p", None, "longest")
        explanation = explained(store, entry_id)
        assert "longest" in explanation.sentence
        assert explanation.until is None

    def test_standing_names_the_entry_that_blocks_its_group(self, store: Store) -> None:
        declare(store, mode=Mode.ORDERED)
        head, *_, last = put_run(store, 3, group_key="g")
        standing = store.standing(last)
        assert (standing.blocked_by, standing.group_held) == (head, False)
        assert store.standing(head).blocked_by is None

    def test_standing_of_a_stream_is_not_about_groups(self, store: Store) -> None:
        declare(store)
        put(store, group_key="g")
        claim(store)
        standing = store.standing(put(store, group_key="g"))
        assert (standing.blocked_by, standing.group_held, standing.group_due_at) == (None, False, None)

    def test_standing_of_a_debounced_group_says_when_it_is_due(self, store: Store) -> None:
        declare(store, mode=Mode.COALESCE)
        first = put(store, group_key="g", delay_seconds=100)
        second = put(store, group_key="g", delay_seconds=100, max_wait_seconds=5000)
        due_at = store.standing(second).next_attempt_at
        assert store.standing(first).group_due_at == store.standing(second).group_due_at == due_at

    def test_standing_of_a_claimed_entry_says_who_holds_it(self, store: Store) -> None:
        entry_id = claimed(store)
        standing = store.standing(entry_id)
        assert (standing.state, standing.claimed_by) == (State.CLAIMED, "w-7")
        assert standing.claimed_at is not None
        assert standing.lease_expires_at is not None
        assert (standing.lease_expires_at - standing.claimed_at).total_seconds() == pytest.approx(60)

    def test_standing_counts_the_entries_of_its_tenant_that_go_first(self, store: Store) -> None:
        declare(store)
        put_run(store, 5, tenant_id="other")
        put_run(store, 2)
        last = put(store)
        put(store, priority=1)
        put(store, priority=-1)
        assert store.standing(last).rank_ahead == 3

    def test_standing_repeats_what_was_put(self, store: Store) -> None:
        declare(store)
        entry_id = put(store, tenant_id="t", principal="p", group_key="g", event_type="e.f")
        standing = store.standing(entry_id)
        assert standing.id == entry_id
        assert (standing.channel, standing.tenant_id, standing.principal) == ("things", "t", "p")
        assert (standing.group_key, standing.event_type, standing.created_at) == ("g", "e.f", standing.next_attempt_at)

    def test_an_id_that_is_no_uuid_is_refused(self, store: Store) -> None:
        bad: UUID = "nonsense"  # type: ignore[assignment]
        with pytest.raises(InvalidToken, match="nonsense"):
            store.standing(bad)
