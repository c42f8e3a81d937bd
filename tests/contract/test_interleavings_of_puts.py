"""Commit order, keys, declarations, eviction, and barriers inside a claim, on PostgreSQL, step by step."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest

from carrick.entry import State
from carrick.outbox.postgres import marks
from carrick.outbox.postgres.store import PostgresStore
from carrick.testing.interleaving import Barrier, Session
from tests.contract.sessions import CLAIM, PUT, TOKEN_A, TOKEN_B, Open, channel, claim, deliver, put, states


class TestCommitOrder:
    """Sequence order is not commit order: a slow producer's lower number appears late and is not skipped."""

    def test_a_slow_producers_entry_is_claimed_after_later_ones_were_delivered(self, opened: Open) -> None:
        slow, quick, claimer = opened(), opened(), opened()
        channel(claimer, "c")
        slow.begin()
        late = put(slow, "c")
        early = put(quick, "c")
        assert claim(claimer, "c", TOKEN_A) == [early]
        deliver(claimer, TOKEN_A)
        slow.commit()
        assert claim(claimer, "c", TOKEN_B) == [late]

    def test_the_stores_marks_do_not_hide_a_slow_producers_entry_once_the_others_are_claimed(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        slow, quick = opened(), opened()
        channel(quick, "c")
        store = PostgresStore(postgres_dsn)
        slow.begin()
        late = put(slow, "c")
        others = [put(quick, "c") for _ in range(4)]
        taken = [entry.id for _ in range(2) for entry in store.claim("c", "w", max_rows=2)]
        assert taken == others
        slow.commit()
        assert [entry.id for entry in store.claim("c", "w", max_rows=2)] == [late]
        store.close()

    def test_the_stores_marks_hide_a_slow_producers_entry_for_a_second_at_most(
        self, opened: Open, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passed = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: passed[0])
        slow, quick = opened(), opened()
        channel(quick, "c")
        store = PostgresStore(postgres_dsn)
        slow.begin()
        late = put(slow, "c")
        for _ in range(20):
            put(quick, "c")
        store.claim("c", "w", max_rows=2)
        slow.commit()
        passed[0] += marks.FULL_LOOK_EVERY_SECONDS
        assert late in [entry.id for entry in store.claim("c", "w", max_rows=2)]
        store.close()

    def test_a_late_lower_number_of_a_group_is_not_handed_to_a_second_claimer(self, opened: Open) -> None:
        slow, quick, first, second = opened(), opened(), opened(), opened()
        channel(first, "c", '{"mode": "ordered"}')
        slow.begin()
        late = put(slow, "c", group="g")
        early = put(quick, "c", group="g")
        first.begin()
        assert claim(first, "c", TOKEN_A) == [early]
        slow.commit()
        rival = second.start(CLAIM, "c", "w", 100, TOKEN_B)
        first.commit()
        assert rival.result() == []
        deliver(first, TOKEN_A)
        assert claim(second, "c", TOKEN_B) == [late]

    def test_a_late_lower_number_goes_to_the_second_claimer_when_the_first_rolls_back(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        slow, quick, first, second = opened(), opened(), opened(), opened()
        channel(first, "c", '{"mode": "ordered"}')
        slow.begin()
        late = put(slow, "c", group="g")
        put(quick, "c", group="g")
        first.begin()
        claim(first, "c", TOKEN_A)
        slow.commit()
        rival = second.start(CLAIM, "c", "w", 100, TOKEN_B)
        first.rollback()
        taken = [row[0] for row in rival.result()] or claim(second, "c", TOKEN_B)
        assert taken[0] == late

    def test_a_coalesced_group_takes_the_late_entry_with_its_next_delivery(self, opened: Open) -> None:
        slow, quick, claimer = opened(), opened(), opened()
        channel(claimer, "c", '{"mode": "coalesce"}')
        slow.begin()
        late = put(slow, "c", group="g")
        early = put(quick, "c", group="g")
        assert claim(claimer, "c", TOKEN_A) == [early]
        slow.commit()
        assert claim(claimer, "c", TOKEN_B) == []
        deliver(claimer, TOKEN_A)
        assert claim(claimer, "c", TOKEN_B) == [late]


class TestPutsOfTwoSessions:
    """G1 and G6 when two transactions are open at once."""

    def test_an_uncommitted_put_is_invisible_and_a_rolled_back_one_never_appears(self, opened: Open) -> None:
        producer, claimer = opened(), opened()
        channel(claimer, "c")
        producer.begin()
        put(producer, "c")
        assert claim(claimer, "c", TOKEN_A) == []
        assert claimer.run("select count(*) from carrick.entry where channel = 'c'") == [(0,)]
        producer.rollback()
        assert claim(claimer, "c", TOKEN_A) == []

    def test_the_same_key_put_by_two_open_transactions_is_one_entry(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        channel(first, "c")
        first.begin()
        entry_id = put(first, "c", key="k")
        rival = second.start(PUT, "c", "1", "k", None)
        rival.until_it_waits(postgres_dsn)
        first.commit()
        assert rival.result() == [(entry_id, False)]
        assert claim(first, "c", TOKEN_A) == [entry_id]

    def test_the_second_puts_the_key_when_the_first_rolls_back(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        channel(first, "c")
        first.begin()
        put(first, "c", key="k")
        rival = second.start(PUT, "c", "2", "k", None)
        rival.until_it_waits(postgres_dsn)
        first.rollback()
        ((entry_id, created),) = rival.result()
        assert created
        assert claim(first, "c", TOKEN_A) == [entry_id]

    def test_other_content_under_a_key_that_another_transaction_commits_is_refused(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        first, second = opened(), opened()
        channel(first, "c", '{"max_backlog_bytes": 2}')
        first.begin()
        put(first, "c", key="k")
        rival = second.start(PUT, "c", "2", "k", None)
        rival.until_it_waits(postgres_dsn)
        first.commit()
        with pytest.raises(psycopg.Error) as caught:
            rival.result()
        assert caught.value.sqlstate == "CK002"
        put(second, "c")  # the refused put has left no bytes behind in the bounded channel
        assert claim(first, "c", TOKEN_A) != []

    def test_a_channel_declared_by_two_open_transactions_is_declared_once(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        first, second = opened(), opened()
        first.begin()
        channel(first, "c", '{"batch_rows": 1}')
        rival = second.start("select carrick.declare_channel('c', '{\"batch_rows\": 2}')")
        rival.until_it_waits(postgres_dsn)
        first.commit()
        rival.result()
        assert first.run("select batch_rows from carrick.channel where name = 'c'") == [(2,)]
        assert len(put(first, "c").bytes) == 16

    def test_ten_sessions_that_declare_at_once_all_succeed(self, opened: Open) -> None:
        sessions = [opened() for _ in range(10)]
        declare = "select carrick.declare_channel('c', '{\"mode\": \"ordered\"}')"
        steps = [session.start(declare) for session in sessions]
        for step in steps:
            step.result()
        assert sessions[0].run("select mode from carrick.channel where name = 'c'") == [("ordered",)]


class TestEviction:
    """A bounded channel that evicts, while entries are being claimed."""

    OPTIONS = '{"max_backlog_bytes": 4, "on_full": "evict"}'

    def test_an_entry_that_is_being_claimed_is_not_evicted(self, opened: Open) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c", self.OPTIONS)
        waiting = [put(claimer, "c") for _ in range(4)]
        producer.never_wait()
        claimer.begin()
        taken = claim(claimer, "c", TOKEN_A, 3)
        put(producer, "c")
        claimer.commit()
        assert taken == waiting[:3]
        assert states(claimer, *waiting) == ["claimed", "claimed", "claimed", "dead"]
        assert deliver(claimer, TOKEN_A) == 3

    def test_a_claimer_passes_over_an_entry_that_is_being_evicted(self, opened: Open) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c", self.OPTIONS)
        waiting = [put(claimer, "c") for _ in range(4)]
        claimer.never_wait()
        producer.begin()
        put(producer, "c")
        assert claim(claimer, "c", TOKEN_A) == waiting[:3]
        producer.commit()
        assert states(claimer, waiting[3]) == ["dead"]

    def test_an_eviction_that_is_rolled_back_leaves_its_entry_waiting(self, opened: Open) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c", self.OPTIONS)
        waiting = [put(claimer, "c") for _ in range(4)]
        producer.begin()
        put(producer, "c")
        producer.rollback()
        assert claim(claimer, "c", TOKEN_A) == waiting


class TestBetweenTheStatementsOfAClaim:
    """Barriers inside a claim: what another session commits between choosing and taking."""

    @pytest.fixture
    def sessions(self, newest_postgres_dsn: str) -> Iterator[tuple[Session, Session]]:
        with Session(newest_postgres_dsn) as first, Session(newest_postgres_dsn) as second:
            channel(first, "c", '{"mode": "coalesce", "backoff_base_seconds": 1000, "backoff_cap_seconds": 1000}')
            yield first, second

    @pytest.mark.parametrize("outcome", ["retry", "unsure"])
    def test_a_group_that_was_tried_meanwhile_is_not_taken_before_its_time(
        self, sessions: tuple[Session, Session], newest_postgres_dsn: str, outcome: str
    ) -> None:
        slow, quick = sessions
        entry_id = put(slow, "c", group="g")
        slow.run("select carrick.put('c', 'e', '1', group_key => 'later', delay_seconds => 1000)")  # there is a choice
        barrier = Barrier(newest_postgres_dsn, "carrick._lock_groups(bigint[])")
        barrier.install()
        with barrier.closed(slow):
            step = slow.start(CLAIM, "c", "w", 100, TOKEN_A)
            step.until_it_waits(newest_postgres_dsn)
            assert claim(quick, "c", TOKEN_B) == [entry_id]
            given = f'[{{"id": "{entry_id}", "outcome": "{outcome}"}}]'
            assert quick.run("select state from carrick.finish(%s, %s)", TOKEN_B, given) == [("pending",)]
        assert step.result() == []
        assert states(quick, entry_id) == [State.PENDING]

    def test_a_group_of_which_one_entry_was_tried_meanwhile_is_not_taken_in_part(
        self, sessions: tuple[Session, Session], newest_postgres_dsn: str
    ) -> None:
        slow, quick = sessions
        tried, given_back = put(slow, "c", group="g"), put(slow, "c", group="g")
        barrier = Barrier(newest_postgres_dsn, "carrick._lock_groups(bigint[])")
        barrier.install()
        with barrier.closed(slow):
            step = slow.start(CLAIM, "c", "w", 100, TOKEN_A)
            step.until_it_waits(newest_postgres_dsn)
            assert claim(quick, "c", TOKEN_B) == [tried, given_back]
            given = f'[{{"id": "{tried}", "outcome": "retry"}}, {{"id": "{given_back}", "outcome": "released"}}]'
            quick.run("select state from carrick.finish(%s, %s)", TOKEN_B, given)
        assert step.result() == []
        assert states(quick, tried, given_back) == [State.PENDING, State.PENDING]

    def test_a_group_that_another_lease_got_first_drops_out(
        self, sessions: tuple[Session, Session], newest_postgres_dsn: str
    ) -> None:
        slow, quick = sessions
        put(slow, "c", group="taken")
        free = put(slow, "c", group="free")
        barrier = Barrier(newest_postgres_dsn, "carrick._hold_groups(text,uuid,tid[])")
        barrier.install()
        with barrier.closed(slow):
            step = slow.start(CLAIM, "c", "w", 100, TOKEN_A)
            step.until_it_waits(newest_postgres_dsn)
            quick.run("insert into carrick.hold values ('c', '', 'taken', %s) returning 1", TOKEN_B)
        assert step.result() == [(free,)]


@pytest.mark.parametrize(
    "call",
    ["carrick.redrive('c', array[%s]::uuid[])", "carrick.discard('c', array[%s]::uuid[])"],
    ids=["redrive", "discard"],
)
def test_what_was_dead_when_it_was_looked_for_and_is_delivered_by_now_stays_so(
    newest_postgres_dsn: str, call: str
) -> None:
    barrier = Barrier(newest_postgres_dsn, "carrick._lock_dead(bigint[])")
    barrier.install()
    with Session(newest_postgres_dsn) as slow, Session(newest_postgres_dsn) as quick:
        channel(slow, "c")
        entry_id = put(slow, "c")
        claim(slow, "c", TOKEN_A)
        slow.run("select from carrick.finish(%s, %s)", TOKEN_A, f'[{{"id": "{entry_id}", "outcome": "rejected"}}]')
        with barrier.closed(slow):
            step = slow.start(f"select {call}", entry_id)
            step.until_it_waits(newest_postgres_dsn)
            assert quick.run("select carrick.redrive('c', array[%s]::uuid[])", entry_id) == [(1,)]
            assert claim(quick, "c", TOKEN_B) == [entry_id]
            assert deliver(quick, TOKEN_B) == 1
        assert step.result() == [(0,)]
        assert states(quick, entry_id) == [State.DELIVERED]


def test_a_session_that_would_wait_is_told_so(opened: Open) -> None:
    """The proof that never_wait proves something."""
    first, second = opened(), opened()
    channel(first, "c")
    second.never_wait()
    first.begin()
    put(first, "c", key="k")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        put(second, "c", key="k")


def test_a_step_that_does_not_wait_is_told_apart(opened: Open, postgres_dsn: str) -> None:
    """The proof that until_it_waits proves something."""
    session = opened()
    step = session.start("select 1")
    step.result()
    with pytest.raises(AssertionError, match="did not wait"):
        step.until_it_waits(postgres_dsn)
