"""What claims, puts and writes of two PostgreSQL sessions may do to each other, step by step, in real transactions."""

from __future__ import annotations

from uuid import UUID

import pytest

from carrick.outbox.adapters.psycopg import PsycopgAdapter
from carrick.outbox.postgres.putting import put_many_steps
from carrick.outbox.producing import new_entry
from carrick.testing import PostgresClock
from carrick.testing.interleaving import Session
from tests.contract.sessions import GROUPED, TOKEN_A, TOKEN_B, Open, channel, claim, deliver, put, states


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

    def test_an_open_claim_of_one_entry_keeps_no_other_from_anybody(self, opened: Open) -> None:
        first, second = opened(), opened()
        channel(first, "c")
        waiting = [put(first, "c") for _ in range(3)]
        second.never_wait()
        first.begin()
        assert claim(first, "c", TOKEN_A, 1) == waiting[:1]
        assert claim(second, "c", TOKEN_B) == waiting[1:]
        first.commit()

    @pytest.mark.parametrize("mode", ["stream", "ordered", "coalesce"])
    def test_the_only_entry_goes_to_one_of_two_open_claims_and_neither_waits(self, opened: Open, mode: str) -> None:
        first, second = opened(), opened()
        channel(first, "c", f'{{"mode": "{mode}"}}')
        only = put(first, "c", group="g")
        for session in (first, second):
            session.never_wait()
            session.begin()
        assert (claim(first, "c", TOKEN_A), claim(second, "c", TOKEN_B)) == ([only], [])
        first.commit()
        second.commit()

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
        entries = [new_entry(channel="c", event_type="e", payload=1)] * 3
        PsycopgAdapter(producer.connection).run(put_many_steps(entries, can_bulk=True))
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
