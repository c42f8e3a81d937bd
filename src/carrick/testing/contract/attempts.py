"""What is kept of deliveries that did not go through: the story of an entry is whole."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from carrick.entry import Attempt, Outcome
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import HOUR, claim, declare, finish_each, put, put_run

KEPT = 20


def told(store: Store, entry_id: UUID) -> list[tuple[Any, ...]]:
    attempts = store.standing(entry_id).attempts
    assert [attempt.at for attempt in attempts] == sorted(attempt.at for attempt in attempts)
    return [(attempt.outcome, attempt.number, attempt.code, attempt.message) for attempt in attempts]


def fail(store: Store, clock: Clock, code: str) -> Attempt:
    """One more attempt in vain; what is kept of it."""
    clock.shift(HOUR)
    batch = claim(store)
    finish_each(store, batch, Outcome.retry(code=code, message="no"))
    return store.standing(batch.entries[0].id).attempts[-1]


class AttemptsContract:
    """Of every entry, the last twenty."""

    def test_each_attempt_in_vain_is_kept_with_its_time_and_what_it_met(self, store: Store, clock: Clock) -> None:
        declare(store)
        entry_id = put(store)
        before = store.now()
        first, second = fail(store, clock, "http_500"), fail(store, clock, "http_503")
        assert told(store, entry_id) == [("failed", 1, "http_500", "no"), ("failed", 2, "http_503", "no")]
        assert before < first.at < second.at == store.standing(entry_id).last_attempt_at
        clock.shift(HOUR)
        store.finish_all(claim(store).token)
        assert len(told(store, entry_id)) == 2

    def test_an_entry_that_goes_through_at_once_leaves_nothing(self, store: Store) -> None:
        declare(store)
        entry_id = put(store)
        store.finish_all(claim(store).token)
        assert told(store, entry_id) == []

    def test_entries_given_back_have_not_been_tried(self, store: Store) -> None:
        declare(store)
        entry_id = put(store)
        finish_each(store, claim(store), Outcome.released())
        assert told(store, entry_id) == []

    def test_every_lease_that_ran_out_is_kept(self, store: Store, clock: Clock) -> None:
        declare(store)
        first, second = put_run(store, 2)
        for rows in (2, 1):
            assert len(claim(store, max_rows=rows, lease_seconds=1)) == rows
            clock.shift(2)
            store.release_expired("things")
        assert told(store, first) == [("lapsed", 0, None, None)] * 2
        assert told(store, second) == [("lapsed", 0, None, None)]

    def test_a_lease_that_ran_out_after_an_attempt_does_not_repeat_what_that_met(
        self, store: Store, clock: Clock
    ) -> None:
        declare(store)
        entry_id = put(store)
        fail(store, clock, "http_500")
        clock.shift(HOUR)
        assert claim(store, lease_seconds=1)
        clock.shift(2)
        store.release_expired("things")
        assert told(store, entry_id) == [("failed", 1, "http_500", "no"), ("lapsed", 1, None, None)]

    def test_an_entry_sent_round_again_keeps_how_it_died(self, store: Store, clock: Clock) -> None:
        declare(store, max_attempts=2)
        entry_id = put(store)
        for code in ("http_500", "http_503"):
            clock.shift(HOUR)
            finish_each(store, claim(store), Outcome.retry(code=code))
        store.redrive("things", ids=[entry_id])
        fail(store, clock, "http_404")
        assert told(store, entry_id) == [
            ("failed", 1, "http_500", None),
            ("dead", 2, "http_503", None),
            ("failed", 1, "http_404", "no"),
        ]

    def test_of_an_entry_that_goes_on_failing_the_last_ones_are_kept(self, store: Store, clock: Clock) -> None:
        declare(store, max_attempts=100)
        entry_id = put(store)
        for number in range(1, KEPT + 4):
            fail(store, clock, f"e{number}")
        assert [number for _, number, *_ in told(store, entry_id)] == list(range(4, KEPT + 4))
