"""What relays in two PostgreSQL sessions may do to each other and to producers, step by step, in real transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import UUID

import psycopg
import pytest

from carrick.entry import Outcome
from carrick.outbox.adapters.psycopg import PsycopgAdapter
from carrick.outbox.channel import Channel
from carrick.outbox.postgres.putting import put_many_steps
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.producing import new_entry
from carrick.testing import PostgresClock
from carrick.testing.samples import claim as claim_batch
from carrick.testing.samples import finish_each, sample
from tests.contract.sessions import TOKEN_A, TOKEN_B, Open, channel, claim, put

FAIL = "select carrick.fail_gate('c', '*', 'no answer', 60, %s)"
MODES = pytest.mark.parametrize("mode", ["stream", "ordered", "coalesce"])


class TestTwoClaimersAtAHalfOpenGate:
    """One probe among all replicas."""

    @pytest.fixture
    def half_open(self, opened: Open, postgres_dsn: str) -> Callable[[str], list[UUID]]:
        """A channel of that mode with two entries behind a gate whose time is up."""

        def make(mode: str) -> list[UUID]:
            session = opened()
            channel(session, "c", f'{{"mode": "{mode}"}}')
            waiting = [put(session, "c", group=group) for group in "gh"]
            session.run(FAIL, False)
            PostgresClock(postgres_dsn).shift(2)
            return waiting

        return make

    @MODES
    def test_exactly_one_gets_the_probe(self, opened: Open, half_open: Callable[[str], list[UUID]], mode: str) -> None:
        waiting = half_open(mode)
        first, second = opened(), opened()
        second.never_wait()
        first.begin()
        assert claim(first, "c", TOKEN_A) == waiting[:1]
        assert claim(second, "c", TOKEN_B) == []
        first.commit()
        assert claim(second, "c", TOKEN_B) == []

    @MODES
    def test_a_probe_that_is_rolled_back_is_the_next_ones(
        self, opened: Open, half_open: Callable[[str], list[UUID]], mode: str
    ) -> None:
        waiting = half_open(mode)
        first, second = opened(), opened()
        first.begin()
        assert claim(first, "c", TOKEN_A) == waiting[:1]
        first.rollback()
        assert claim(second, "c", TOKEN_B) == waiting[:1]

    def test_a_claimer_does_not_wait_for_a_failure_that_is_being_counted(
        self, opened: Open, half_open: Callable[[str], list[UUID]]
    ) -> None:
        half_open("stream")
        first, second = opened(), opened()
        second.never_wait()
        first.begin()
        first.run(FAIL, False)
        assert claim(second, "c", TOKEN_B) == []
        first.commit()
        assert claim(second, "c", TOKEN_B) == []

    def test_failures_at_once_count_once(
        self, opened: Open, half_open: Callable[[str], list[UUID]], postgres_dsn: str
    ) -> None:
        half_open("stream")
        first, second = opened(), opened()
        first.begin()
        first.run(FAIL, False)
        late = second.start(FAIL, False)
        late.until_it_waits(postgres_dsn)
        first.commit()
        assert late.result()[0][0] <= 2
        assert first.run("select consecutive_failures from carrick.gate") == [(2,)]


@pytest.fixture
def store(postgres_dsn: str) -> Iterator[PostgresStore]:
    """A store with the channels `things` and `others`."""
    with closing(PostgresStore(postgres_dsn)) as store:
        store.declare(Channel(name="things"))
        store.declare(Channel(name="others"))
        yield store


class TestAPutWhileARelayGoesToRest:
    """Either the put sees the sleeper, or the relay sees the put."""

    def test_a_put_in_an_open_transaction_is_unseen(self, store: PostgresStore, opened: Open) -> None:
        producer = opened()
        producer.begin()
        put(producer, "things")
        rest = store.rest("things", "r", 60)
        assert (rest.due_in, rest.unseen) == (None, True)
        producer.commit()
        rest = store.rest("things", "r", 60)
        assert rest.due_in is not None
        assert rest.due_in <= 0
        assert not rest.unseen

    def test_a_bulk_put_that_has_only_begun_is_unseen(self, store: PostgresStore, opened: Open) -> None:
        producer = opened()
        producer.begin()
        steps = put_many_steps([new_entry(channel="things", event_type="e", payload=1)], can_bulk=True)
        first = next(steps)
        producer.connection.execute(first.sql.encode(), first.params)  # type: ignore[union-attr]
        assert store.rest("things", "r", 60).unseen

    def test_a_gate_that_is_being_opened_is_unseen(self, store: PostgresStore, opened: Open) -> None:
        store.close_gate("things", "*", None, "x")
        other = opened()
        other.begin()
        other.run("select carrick.open_gate('things', '*')")
        assert store.rest("things", "r", 60).unseen

    def test_a_transaction_that_has_put_nothing_is_not_taken_for_one(self, store: PostgresStore, opened: Open) -> None:
        other = opened()
        other.begin()
        other.run("select count(*) from carrick.work")
        assert not store.rest("things", "r", 60).unseen

    def test_a_put_in_another_database_is_not_taken_for_one(
        self, store: PostgresStore, newest_postgres_dsn: str
    ) -> None:
        with psycopg.connect(newest_postgres_dsn) as elsewhere:
            elsewhere.execute("lock table carrick.work in row exclusive mode")
            assert not store.rest("things", "r", 60).unseen


class TestNotifications:
    """Puts notify only relays that rest, once per transaction."""

    @pytest.fixture
    def heard(self, postgres_dsn: str) -> Iterator[Callable[[], list[str]]]:
        """What a listener has heard since the last time. A word of its own marks the end: the queue keeps its order."""
        with psycopg.connect(postgres_dsn, autocommit=True) as listener:
            listener.execute("listen carrick_put")

            def since() -> list[str]:
                listener.execute("select pg_notify('carrick_put', 'the end')")
                words: list[str] = []
                for notification in listener.notifies(timeout=20):
                    if notification.payload == "the end":
                        return words
                    words.append(notification.payload)
                raise AssertionError("the listener did not hear itself")

            yield since

    Heard = Callable[[], list[str]]

    def test_a_put_is_silent_while_nobody_rests(self, store: PostgresStore, heard: Heard) -> None:
        store.put(sample())
        assert heard() == []

    def test_a_put_is_heard_while_a_relay_of_its_channel_rests(self, store: PostgresStore, heard: Heard) -> None:
        store.rest("things", "r", 60)
        store.put(sample("others"))
        assert heard() == []
        store.put(sample())
        assert heard() == ["things"]

    def test_a_relay_that_is_awake_is_left_alone(self, store: PostgresStore, heard: Heard) -> None:
        store.rest("things", "r", 60)
        store.stir("things", "r")
        store.put(sample())
        assert heard() == []

    def test_waking_up_leaves_others_asleep(self, store: PostgresStore, heard: Heard) -> None:
        store.rest("things", "r", 60)
        store.rest("things", "s", 60)
        store.stir("things", "r")
        store.put(sample())
        assert heard() == ["things"]

    def test_a_relay_that_never_came_back_is_forgotten(
        self, store: PostgresStore, heard: Heard, postgres_dsn: str
    ) -> None:
        store.rest("things", "r", 60)
        PostgresClock(postgres_dsn).shift(59)
        store.put(sample())
        assert heard() == ["things"]
        PostgresClock(postgres_dsn).shift(600)
        store.put(sample())
        assert heard() == []

    def test_a_transaction_is_heard_once(self, store: PostgresStore, heard: Heard, opened: Open) -> None:
        store.rest("things", "r", 60)
        producer = opened()
        producer.begin()
        for _ in range(3):
            put(producer, "things")
        producer.commit()
        assert heard() == ["things"]

    def test_a_put_that_is_rolled_back_is_silent(self, store: PostgresStore, heard: Heard, opened: Open) -> None:
        store.rest("things", "r", 60)
        producer = opened()
        producer.begin()
        put(producer, "things")
        producer.rollback()
        assert heard() == []

    @pytest.mark.parametrize("key", [None, "k"], ids=["by COPY", "one by one"])
    def test_a_bulk_put_is_heard_once(self, store: PostgresStore, heard: Heard, opened: Open, key: str | None) -> None:
        store.rest("things", "r", 60)
        entries = [new_entry(channel="things", event_type="e", payload=1, key=key)] * 3
        PsycopgAdapter(opened().connection).run(put_many_steps(entries, can_bulk=True))
        assert heard() == ["things"]

    def test_what_lets_entries_go_is_heard(self, store: PostgresStore, heard: Heard) -> None:
        store.put_many([sample(), sample()])
        batch = claim_batch(store, max_rows=1)
        dead = claim_batch(store, max_rows=1)
        store.rest("things", "r", 60)
        finish_each(store, dead, Outcome.rejected("no"))
        assert heard() == []
        store.release(batch.token)
        assert heard() == ["things"]
        store.redrive("things")
        assert heard() == ["things"]
        store.close_gate("things", "*", 60, "x")
        assert heard() == []
        store.close_gate("things", "*", 0, "x")
        assert heard() == ["things"]
        store.open_gate("things", "*")
        assert heard() == ["things"]
        store.open_gate("things", "*")
        assert heard() == []
        store.fail_gate("things", "*", "x", cap_seconds=60)
        assert heard() == []
        store.fail_gate("things", "*", "x", cap_seconds=60, probe=True)
        assert heard() == ["things"]

    def test_resting_again_and_again_writes_only_now_and_then(self, store: PostgresStore, opened: Open) -> None:
        """An idle relay costs few transactions."""
        seen = set()
        session = opened()
        for _ in range(5):
            store.rest("things", "r", 60)
            seen |= set(session.run("select xmin::text from carrick.sleeper"))
        assert len(seen) == 1
