"""What two sessions may do to each other on PostgreSQL, step by step: real transactions, held open where it matters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import UUID

import psycopg
import pytest

from carrick.entry import State
from carrick.outbox.postgres import marks
from carrick.outbox.postgres.store import PostgresStore
from carrick.testing import PostgresClock
from carrick.testing.interleaving import Barrier, Session

CLAIM = "select id from carrick.claim(%s, %s, %s, null, 60, null, %s)"
PUT = "select id, created from carrick.put(%s, 'e', %s::json, key => %s, group_key => %s)"
TOKEN_A, TOKEN_B = UUID(int=0xA), UUID(int=0xB)

Open = Callable[[], Session]


def channel(session: Session, name: str, options: str = "{}") -> None:
    session.run("select carrick.declare_channel(%s, %s)", name, options)


def put(session: Session, name: str, *, payload: str = "1", key: str | None = None, group: str | None = None) -> UUID:
    entry_id: UUID = session.run(PUT, name, payload, key, group)[0][0]
    return entry_id


def claim(session: Session, name: str, token: UUID, rows: int = 100) -> list[UUID]:
    return [row[0] for row in session.run(CLAIM, name, "w", rows, token)]


def deliver(session: Session, token: UUID) -> int:
    return len(session.run("select * from carrick.finish_all(%s)", token))


def states(session: Session, *entry_ids: UUID) -> list[str]:
    found = dict(session.run("select id, state from carrick.entry where id = any(%s)", list(entry_ids)))
    return [found[entry_id] for entry_id in entry_ids]


@pytest.fixture
def opened(postgres_dsn: str) -> Iterator[Open]:
    """Opens sessions to one database; all are closed at the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Session(postgres_dsn))


GROUPED = pytest.mark.parametrize("mode", ["ordered", "coalesce"])


class TestTwoClaimers:
    """G4: one group, two claimers."""

    @GROUPED
    def test_a_group_that_is_being_claimed_is_passed_over_without_waiting(self, opened: Open, mode: str) -> None:
        first, second = opened(), opened()
        channel(first, "c", f'{{"mode": "{mode}"}}')
        members = [put(first, "c", group="g") for _ in range(3)]
        other = put(first, "c", group="h")
        second.never_wait()
        first.begin()
        assert claim(first, "c", TOKEN_A, 1) == (members[:1] if mode == "ordered" else members)
        assert claim(second, "c", TOKEN_B) == [other]
        first.commit()
        assert claim(second, "c", TOKEN_B) == []

    @GROUPED
    def test_a_claim_that_is_rolled_back_leaves_the_group_to_the_next(self, opened: Open, mode: str) -> None:
        first, second = opened(), opened()
        channel(first, "c", f'{{"mode": "{mode}"}}')
        members = [put(first, "c", group="g") for _ in range(3)]
        first.begin()
        claim(first, "c", TOKEN_A, 1)
        first.rollback()
        assert claim(second, "c", TOKEN_B) == members
        assert deliver(first, TOKEN_A) == 0

    @GROUPED
    def test_the_rest_of_a_group_is_free_after_its_entries_are_finished_and_not_before(
        self, opened: Open, mode: str
    ) -> None:
        first, second = opened(), opened()
        channel(first, "c", f'{{"mode": "{mode}"}}')
        put(first, "c", group="g")
        claim(first, "c", TOKEN_A)
        later = put(first, "c", group="g")
        first.begin()
        assert deliver(first, TOKEN_A) == 1
        assert claim(second, "c", TOKEN_B) == []
        first.commit()
        assert claim(second, "c", TOKEN_B) == [later]

    def test_two_open_claims_of_a_stream_share_its_entries_without_waiting(self, opened: Open) -> None:
        first, second = opened(), opened()
        channel(first, "c")
        waiting = [put(first, "c") for _ in range(4)]
        for session in (first, second):
            session.never_wait()
            session.begin()
        taken = claim(first, "c", TOKEN_A, 2), claim(second, "c", TOKEN_B, 2)
        assert taken == (waiting[:2], waiting[2:])
        first.commit()
        second.commit()
        assert deliver(second, TOKEN_B) == 2

    @pytest.mark.parametrize("mode", ["stream", "ordered", "coalesce"])
    def test_entries_of_a_dead_worker_go_to_one_of_two_claimers(
        self, opened: Open, postgres_dsn: str, mode: str
    ) -> None:
        first, second = opened(), opened()
        channel(first, "c", f'{{"mode": "{mode}"}}')
        entry_id = put(first, "c", group="g")
        claim(first, "c", UUID(int=1))
        PostgresClock(postgres_dsn).shift(61)
        second.never_wait()
        first.begin()
        assert claim(first, "c", TOKEN_A) == [entry_id]
        assert claim(second, "c", TOKEN_B) == []
        first.commit()
        assert claim(second, "c", TOKEN_B) == []
        assert deliver(first, TOKEN_A) == 1


class TestPutWhileAClaimIsOpen:
    """Producers and claimers never wait for each other."""

    @pytest.mark.parametrize("mode", ["stream", "ordered", "coalesce"])
    @pytest.mark.parametrize("bounds", ["", ', "max_backlog_bytes": 1000'], ids=["free", "bounded"])
    def test_a_producer_never_waits_for_a_claimer(self, opened: Open, mode: str, bounds: str) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c", f'{{"mode": "{mode}"{bounds}}}')
        put(claimer, "c", key="k", group="g")
        producer.never_wait()
        claimer.begin()
        assert len(claim(claimer, "c", TOKEN_A)) == 1
        put(producer, "c", group="g")
        put(producer, "c", key="k", group="g")
        put(producer, "c", key="l", group="g")
        claimer.rollback()

    def test_a_bulk_put_never_waits_for_a_claimer(self, opened: Open) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c")
        put(claimer, "c")
        producer.never_wait()
        claimer.begin()
        claim(claimer, "c", TOKEN_A)
        with producer.connection.cursor().copy("copy carrick.record (channel, event_type, payload) from stdin") as copy:
            for _ in range(3):
                copy.write_row(("c", "e", "1"))
        assert len(claim(producer, "c", TOKEN_B)) == 3

    @pytest.mark.parametrize("mode", ["stream", "ordered", "coalesce"])
    @pytest.mark.parametrize("bounds", ["", ', "max_backlog_bytes": 1000'], ids=["free", "bounded"])
    def test_a_claimer_never_waits_for_a_producer(self, opened: Open, mode: str, bounds: str) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c", f'{{"mode": "{mode}"{bounds}}}')
        known = put(claimer, "c", group="h")
        claimer.never_wait()
        producer.begin()
        put(producer, "c", key="k", group="g")
        assert claim(claimer, "c", TOKEN_A) == [known]
        assert deliver(claimer, TOKEN_A) == 1
        assert claim(claimer, "c", TOKEN_B) == []

    @GROUPED
    def test_an_entry_put_while_its_group_is_being_claimed_waits_for_it(self, opened: Open, mode: str) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c", f'{{"mode": "{mode}"}}')
        head = put(claimer, "c", group="g")
        claimer.begin()
        assert claim(claimer, "c", TOKEN_A) == [head]
        late = put(producer, "c", group="g")
        claimer.commit()
        assert claim(producer, "c", TOKEN_B) == []
        deliver(claimer, TOKEN_A)
        assert claim(producer, "c", TOKEN_B) == [late]

    def test_an_entry_put_into_a_stream_while_a_claim_is_open_is_free_at_once(self, opened: Open) -> None:
        claimer, producer = opened(), opened()
        channel(claimer, "c")
        put(claimer, "c")
        claimer.begin()
        claim(claimer, "c", TOKEN_A)
        new = put(producer, "c")
        assert claim(producer, "c", TOKEN_B) == [new]


class TestLeaseThatMovesOn:
    """G3 under real locks: the old worker's write meets the claim that takes over."""

    WRITES = (
        "select * from carrick.finish_all(%s)",
        "select carrick.release(%s)",
        "select carrick.renew(%s, 100)",
        "select carrick.note(%s, '{}')",
    )

    @pytest.fixture
    def expired(self, opened: Open, postgres_dsn: str) -> tuple[Session, Session, UUID]:
        """Worker A's lease has ended; nobody has taken over yet."""
        a, b = opened(), opened()
        channel(a, "c")
        entry_id = put(a, "c")
        claim(a, "c", TOKEN_A)
        PostgresClock(postgres_dsn).shift(61)
        return a, b, entry_id

    @pytest.mark.parametrize("write", WRITES)
    def test_a_write_that_waits_for_the_takeover_has_no_effect(
        self, expired: tuple[Session, Session, UUID], postgres_dsn: str, write: str
    ) -> None:
        a, b, entry_id = expired
        b.begin()
        assert claim(b, "c", TOKEN_B) == [entry_id]
        late = a.start(write, TOKEN_A)
        late.until_it_waits(postgres_dsn)
        b.commit()
        assert late.result() in ([], [(0,)])
        assert states(b, entry_id) == ["claimed"]
        assert deliver(b, TOKEN_B) == 1

    @pytest.mark.parametrize("write", WRITES)
    def test_a_write_that_waits_for_a_takeover_that_fails_takes_effect(
        self, expired: tuple[Session, Session, UUID], postgres_dsn: str, write: str
    ) -> None:
        a, b, entry_id = expired
        b.begin()
        assert claim(b, "c", TOKEN_B) == [entry_id]
        late = a.start(write, TOKEN_A)
        late.until_it_waits(postgres_dsn)
        b.rollback()
        assert late.result() in ([(1,)], [(entry_id, "delivered")])

    def test_a_lease_that_is_being_renewed_when_it_ends_is_not_taken_over(
        self, expired: tuple[Session, Session, UUID]
    ) -> None:
        a, b, entry_id = expired
        b.never_wait()
        a.begin()
        assert a.run("select carrick.renew(%s, 60)", TOKEN_A) == [(1,)]
        assert claim(b, "c", TOKEN_B) == []
        a.commit()
        assert claim(b, "c", TOKEN_B) == []
        assert deliver(a, TOKEN_A) == 1
        assert states(a, entry_id) == ["delivered"]

    def test_a_lease_whose_renewal_was_rolled_back_is_taken_over(self, expired: tuple[Session, Session, UUID]) -> None:
        a, b, entry_id = expired
        a.begin()
        a.run("select carrick.renew(%s, 60)", TOKEN_A)
        a.rollback()
        assert claim(b, "c", TOKEN_B) == [entry_id]

    def test_a_lease_that_is_being_finished_when_it_ends_is_not_taken_over(
        self, expired: tuple[Session, Session, UUID]
    ) -> None:
        a, b, entry_id = expired
        b.never_wait()
        a.begin()
        assert deliver(a, TOKEN_A) == 1
        assert claim(b, "c", TOKEN_B) == []
        a.commit()
        assert claim(b, "c", TOKEN_B) == []
        assert states(b, entry_id) == ["delivered"]

    def test_finish_after_the_lease_moved_on_leaves_the_new_holder_alone(
        self, expired: tuple[Session, Session, UUID]
    ) -> None:
        a, b, entry_id = expired
        assert claim(b, "c", TOKEN_B) == [entry_id]
        for write in self.WRITES:
            assert a.run(write, TOKEN_A) in ([], [(0,)])
        outcome = f'[{{"id": "{entry_id}", "outcome": "rejected"}}]'
        assert a.run("select * from carrick.finish(%s, %s)", TOKEN_A, outcome) == []
        assert deliver(b, TOKEN_B) == 1


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


