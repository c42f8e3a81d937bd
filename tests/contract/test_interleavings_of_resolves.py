"""Resolves of several sessions at once on PostgreSQL, step by step: one contact, no circle of waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest

from carrick.contacts.identity import given_identities
from carrick.contacts.postgres.store import PostgresContacts
from carrick.contacts.store import Request
from carrick.outbox.postgres.connections import run
from carrick.testing.interleaving import Barrier, Session, Step
from tests.contract.resolves import TENANT, events, living, resolve, start, start_many, start_traits
from tests.contract.sessions import Open, channel

LOCK = "carrick._lock_contacts(text,carrick._identity[])"


@pytest.fixture(autouse=True)
def declared(request: pytest.FixtureRequest) -> None:
    """The channel is there, as `Contacts.connect` sees to: else one would wait for the other's declaration."""
    dsn = "postgres_dsn" if "postgres_dsn" in request.fixturenames else "newest_postgres_dsn"
    with Session(request.getfixturevalue(dsn)) as session:
        channel(session, "events", '{"mode": "ordered"}')


class TestTwoSessions:
    """What the second does while the first has not committed."""

    def test_a_new_identity_given_by_both_is_one_contact(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        first.begin()
        made = resolve(first, "a")
        rival = start(second, "a", "b")
        rival.until_it_waits(postgres_dsn)
        first.commit()
        assert rival.result() == [(made, False, [], [])]
        assert events(first) == ["created", "updated"]

    def test_the_second_makes_the_contact_when_the_first_rolls_back(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        first.begin()
        resolve(first, "a")
        rival = start(second, "a")
        rival.until_it_waits(postgres_dsn)
        first.rollback()
        ((_, created, _, _),) = rival.result()
        assert created
        assert events(first) == ["created"]

    def test_two_sessions_that_add_to_one_contact_by_different_identities_lose_nothing(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        first, second = opened(), opened()
        known = resolve(first, "a", "b")
        first.begin()
        resolve(first, "a", traits='{"one": 1}')
        rival = start(second, "b", traits='{"two": 2}')
        rival.until_it_waits(postgres_dsn)
        first.commit()
        rival.result()
        assert first.run("select traits from carrick.contacts where id = %s", known) == [({"one": 1, "two": 2},)]

    def test_a_contact_that_is_merged_meanwhile_is_followed_to_the_one_it_became(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        first, second = opened(), opened()
        old, _ = resolve(first, "a"), resolve(first, "b", "c")
        first.begin()
        resolve(first, "a", "b")
        rival = start(second, "c", traits='{"n": 1}')
        rival.until_it_waits(postgres_dsn)
        first.commit()
        assert rival.result() == [(old, False, [], [])]
        assert first.run("select traits from carrick.contacts where id = %s", old) == [({"n": 1},)]

    def test_what_a_third_writes_to_the_survivor_meanwhile_is_not_lost(self, opened: Open, postgres_dsn: str) -> None:
        """Which of the two that wait comes to the survivor first is up to the server; neither loses what it says."""
        first, second, third = opened(), opened(), opened()
        old, _ = resolve(first, "a"), resolve(first, "b", "c")
        first.begin()
        resolve(first, "a", "b")
        third.begin()
        writes = start(third, "a", traits='{"three": 3}')
        writes.until_it_waits(postgres_dsn)
        follows = start(second, "c", traits='{"two": 2}')
        follows.until_it_waits(postgres_dsn)
        first.commit()
        writes.result()
        third.commit()
        follows.result()
        assert first.run("select traits from carrick.contacts where id = %s", old) == [({"two": 2, "three": 3},)]

    def test_the_same_merge_by_both_is_told_once(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        old, new = resolve(first, "a"), resolve(first, "b")
        first.begin()
        resolve(first, "a", "b")
        rival = start(second, "b", "a")
        rival.until_it_waits(postgres_dsn)
        first.commit()
        assert rival.result() == [(old, False, [], [])]
        assert events(first) == ["created", "created", "merged"]
        assert first.run("select merged_into from carrick.contacts where id = %s", new) == [(old,)]

    def test_two_merges_that_share_a_contact_end_as_one(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        old, _, _ = (resolve(first, name) for name in "abc")
        first.begin()
        resolve(first, "b", "c")
        rival = start(second, "a", "c")
        rival.until_it_waits(postgres_dsn)
        first.commit()
        assert rival.result()[0][0] == old
        assert living(first) == {old}
        assert events(first).count("merged") == 2

    def test_the_same_conflict_by_both_is_told_once(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        resolve(first, "x:1", "a@")
        resolve(first, "x:2", "b@")
        first.begin()
        resolve(first, "a@", "b@")
        rival = start(second, "b@", "a@")
        rival.until_it_waits(postgres_dsn)
        first.commit()
        rival.result()
        assert events(first).count("conflict") == 1

    def test_a_resolve_that_changes_nothing_waits_for_nobody(self, opened: Open) -> None:
        first, second = opened(), opened()
        known = resolve(first, "a", "b", traits='{"n": 1}')
        first.begin()
        resolve(first, "a", traits='{"n": 2}')
        second.never_wait()
        assert resolve(second, "a", "b", traits='{"n": 1}') == known

    def test_a_batch_that_changes_nothing_waits_for_nobody(self, opened: Open) -> None:
        first, second = opened(), opened()
        known = resolve(first, "a", "b", traits='{"n": 1}')
        first.begin()
        resolve(first, "a", traits='{"n": 2}')
        second.never_wait()
        step = start_traits(second, (("a",), {"n": 1}), (("a", "b"), {}))
        assert step.result() == [(known,), (known,)]

    def test_a_transaction_of_several_calls_can_take_the_locks_of_all_of_them_first(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        first, second, third = opened(), opened(), opened()
        known = resolve(first, "a", "b")
        first.begin()
        with closing(PostgresContacts(postgres_dsn, "events")) as store:
            run(first.connection, store.lock_many_steps(TENANT, [wanted("a"), wanted("new")]))
        rivals = [start(second, "new"), start(third, "b", traits='{"n": 1}')]
        for rival in rivals:
            rival.until_it_waits(postgres_dsn)
        assert resolve(first, "a", traits='{"m": 1}') == known
        made = resolve(first, "new")
        first.commit()
        assert [rival.result()[0][:2] for rival in rivals] == [(made, False), (known, False)]

    def test_other_contacts_of_the_tenant_are_not_held_up(self, opened: Open) -> None:
        first, second = opened(), opened()
        first.begin()
        resolve(first, "a")
        second.never_wait()
        resolve(second, "an id of another stripe")

    def test_a_serializable_transaction_that_comes_too_late_is_told_to_try_again(self, opened: Open) -> None:
        first, second = opened(), opened()
        resolve(first, "a")
        second.run("begin isolation level repeatable read")
        second.run("select 1 from carrick.contacts")
        resolve(first, "a", "b")
        with pytest.raises(psycopg.errors.SerializationFailure):
            resolve(second, "b", "c")


class TestCircles:
    """Orders of locking that would be a deadlock if they were not always the same."""

    @pytest.fixture
    def sessions(self, newest_postgres_dsn: str) -> Iterator[list[Session]]:
        """Three sessions on a database with a barrier before the locks."""
        Barrier(newest_postgres_dsn, LOCK).install()
        with ExitStack() as stack:
            yield [stack.enter_context(Session(newest_postgres_dsn)) for _ in range(3)]

    def test_merges_in_opposite_orders_started_together(
        self, sessions: list[Session], newest_postgres_dsn: str
    ) -> None:
        first, second, third = sessions
        old, *_ = [resolve(first, name) for name in "abcd"]
        with Barrier(newest_postgres_dsn, LOCK).closed(first, second, third):
            steps = [start(first, "a", "b", "c"), start(second, "c", "b", "d"), start(third, "d", "a")]
            for step in steps:
                step.until_it_waits(newest_postgres_dsn)
        for step in steps:
            step.result()
        assert living(first) == {old}
        assert events(first).count("merged") == 3

    def test_a_tombstone_met_while_waiting_does_not_lead_back_up(
        self, sessions: list[Session], newest_postgres_dsn: str
    ) -> None:
        """One waits for the newest; meanwhile it is merged into the middle one, and a third holds the oldest."""
        first, second, third = sessions
        oldest, middle, newest = (resolve(first, name) for name in "abc")
        first.begin()
        assert resolve(first, "b", "c") == middle  # holds the newest and the middle
        waits = start(second, "c", "a")
        waits.until_it_waits(newest_postgres_dsn)
        third.begin()
        third.run("select 1 from carrick.contacts where id = %s for no key update", oldest)
        first.commit()
        waits.until_it_waits(newest_postgres_dsn)  # has the newest and the middle, wants the oldest
        third.never_wait()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            resolve(third, "b", traits='{"n": 1}')
        third.rollback()
        assert waits.result() == [(oldest, False, [middle], [])]
        assert {row[0] for row in first.run("select id from carrick.contacts where merged_into is not null")} == {
            middle,
            newest,
        }

    def test_two_batches_in_opposite_orders(self, opened: Open, postgres_dsn: str) -> None:
        first, second = opened(), opened()
        for name in ("a", "b", "c"):
            resolve(first, name)
        names = [("a", "1"), ("b", "2"), ("c", "3")]
        first.begin()
        start_many(first, *names).result()
        rival = start_many(second, *reversed(names))
        rival.until_it_waits(postgres_dsn)
        start_many(first, *names).result()
        first.commit()
        assert len(rival.result()) == 3
        assert len(living(first)) == 3

    def test_a_request_that_an_earlier_one_of_its_batch_unsettles_has_its_locks_already(
        self, opened: Open, postgres_dsn: str
    ) -> None:
        """The last is settled until the first is through; a rival comes by the identity that only the last names."""
        first, rival, third = opened(), opened(), opened()
        known = resolve(first, "a", "b", traits='{"n": 1}')
        third.begin()
        third.run("select 1 from carrick.contacts where id = %s for no key update", known)
        batch = start_traits(first, (("a",), {"n": 2}), (("b",), {"n": 1}))
        batch.until_it_waits(postgres_dsn)
        single = start(rival, "b", traits='{"z": 1}')
        single.until_it_waits(postgres_dsn)
        third.rollback()
        assert batch.result() == [(known,), (known,)]
        assert single.result() == [(known, False, [], [])]
        assert first.run("select traits from carrick.contacts where id = %s", known) == [({"n": 1, "z": 1},)]


def test_single_resolves_in_one_transaction_can_meet_in_a_circle(opened: Open, postgres_dsn: str) -> None:
    """The proof that the order matters, and why resolve_contacts is there."""
    first, second = opened(), opened()
    first.begin()
    second.begin()
    resolve(first, "a")
    resolve(second, "b")
    steps = [start(first, "b")]
    steps[0].until_it_waits(postgres_dsn)
    steps.append(start(second, "a"))
    assert {failure(step) for step in steps} == {psycopg.errors.DeadlockDetected, None}


def wanted(name: str) -> Request:
    return Request(given_identities([("anonymous_id", name)]), b"{}")


def failure(step: Step) -> type[psycopg.Error] | None:
    """What the step failed with."""
    try:
        step.result()
    except psycopg.Error as error:
        return type(error)
    return None
