"""What two users of one SQLite file may do to each other: two stores, or a store and an application's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier

import pytest

from carrick.entry import Put, State
from carrick.errors import EntryNotFound, KeyReused
from carrick.outbox.channel import Mode
from carrick.outbox.outbox import Outbox
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing import SqliteClock
from carrick.testing.samples import claim, declare, ids, put, put_run, sample, states
from tests.sqlite_file import engine_file

Stores = tuple[SqliteStore, SqliteStore]


@pytest.fixture
def path(sqlite_path: Path) -> Path:
    engine_file(sqlite_path)
    return sqlite_path


@pytest.fixture
def stores(path: Path) -> Iterator[Stores]:
    """Two stores on one file, as two processes have them."""
    with ExitStack() as stack:
        yield stack.enter_context(closing(SqliteStore(path))), stack.enter_context(closing(SqliteStore(path)))


@pytest.mark.parametrize("mode", [Mode.ORDERED, Mode.COALESCE])
def test_a_group_that_one_store_has_claimed_is_not_claimed_by_the_other(stores: Stores, mode: Mode) -> None:
    first, second = stores
    declare(first, mode=mode)
    put_run(first, 3, group_key="g")
    held = claim(first, max_rows=1)
    later = put(second, group_key="g")
    assert not claim(second)
    first.finish_all(held.token)
    assert later in ids(claim(second))


def test_finish_after_the_lease_moved_to_the_other_store_changes_nothing(stores: Stores, path: Path) -> None:
    first, second = stores
    declare(first)
    put(first)
    stale = claim(first, lease_seconds=10)
    SqliteClock(path).shift(11)
    current = claim(second)
    assert ids(current) == ids(stale)
    assert first.finish_all(stale.token) == {}
    assert first.renew(stale.token, 60) == 0
    assert second.finish_all(current.token) == {ids(current)[0]: State.DELIVERED}


def test_a_lease_renewed_after_its_end_is_not_taken_over(stores: Stores, path: Path) -> None:
    first, second = stores
    declare(first)
    put(first)
    batch = claim(first, lease_seconds=10)
    SqliteClock(path).shift(11)
    assert first.renew(batch.token, 60) == 1
    assert not claim(second)


def test_of_two_stores_at_a_half_open_gate_exactly_one_gets_the_probe(stores: Stores, path: Path) -> None:
    declare(stores[0])
    put_run(stores[0], 3)
    stores[0].fail_gate("things", "*", "no answer", cap_seconds=60)
    SqliteClock(path).shift(2)
    together = Barrier(2)

    def claim_it(store: SqliteStore) -> tuple[int, bool]:
        together.wait()
        batch = claim(store)
        return len(batch), batch.probe

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(claim_it, stores)) == [(0, False), (1, True)]


def test_a_put_in_an_open_transaction_is_due_when_it_commits(stores: Stores, path: Path) -> None:
    """The file's data version wakes the relay then: nothing can be unseen."""
    store, other = stores
    declare(store)
    outbox = Outbox(store, dialect="sqlite")
    with closing(sqlite3.connect(path)) as application:
        outbox.put(application, channel="things", event_type="e", payload=1)
        rest = other.rest("things", "r", 60)
        assert (rest.due_in, rest.unseen) == (None, False)
        application.commit()
    due_in = other.rest("things", "r", 60).due_in
    assert due_in is not None
    assert due_in <= 0


def test_an_open_transaction_of_an_application_is_invisible_until_it_commits(stores: Stores, path: Path) -> None:
    store, other = stores
    declare(store)
    outbox = Outbox(store, dialect="sqlite")
    with closing(sqlite3.connect(path)) as application:
        answer = outbox.put(application, channel="things", event_type="e", payload=1)
        with pytest.raises(EntryNotFound):
            other.standing(answer.id)
        assert [stats.pending_count for stats in other.stats() if stats.channel == "things"] == [0]
        application.commit()
    assert ids(claim(other)) == [answer.id]


def test_a_transaction_of_an_application_that_dies_leaves_nothing(stores: Stores, path: Path) -> None:
    store, other = stores
    declare(store)
    outbox = Outbox(store, dialect="sqlite")
    with closing(sqlite3.connect(path)) as application:
        answer = outbox.put(application, channel="things", event_type="e", payload=1)
    with pytest.raises(EntryNotFound):
        other.standing(answer.id)
    assert not claim(other)


def at_once(stores: Stores, payloads: list[bytes]) -> list[Put | KeyReused]:
    """Both stores put one key at the same moment, from threads of their own."""
    together = Barrier(len(stores))

    def put_it(store: SqliteStore, payload: bytes) -> Put | KeyReused:
        together.wait()
        try:
            return store.put(sample(key="k", payload=payload))
        except KeyReused as error:
            return error

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(put_it, stores, payloads))


def test_the_same_key_put_by_two_stores_at_once_is_one_entry(stores: Stores) -> None:
    declare(stores[0])
    answers = at_once(stores, [b"1", b"1"])
    assert all(isinstance(answer, Put) for answer in answers)
    assert len({answer.id for answer in answers if isinstance(answer, Put)}) == 1
    assert sorted(answer.created for answer in answers if isinstance(answer, Put)) == [False, True]


def test_other_content_under_one_key_put_at_once_is_refused_to_one_of_them(stores: Stores) -> None:
    declare(stores[0])
    answers = at_once(stores, [b"1", b"2"])
    assert sorted(type(answer).__name__ for answer in answers) == ["KeyReused", "Put"]


def test_two_stores_that_declare_at_once_agree(stores: Stores) -> None:
    together = Barrier(2)

    def declare_it(store: SqliteStore) -> None:
        together.wait()
        declare(store, mode=Mode.ORDERED)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(declare_it, stores))
    assert stores[0].channels()["things"] == stores[1].channels()["things"]


def test_an_entry_that_the_other_store_evicted_is_not_claimed(stores: Stores) -> None:
    first, second = stores
    declare(first, max_backlog_bytes=2, on_full="evict")
    waiting = [put(first, payload=b"1"), put(first, payload=b"2")]
    new = put(second, payload=b"3")
    assert ids(claim(first)) == [waiting[0], new]
    assert states(first, waiting[1:]) == [State.DEAD]
