"""Puts of many threads share commits; each gets its own answer or its own error."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from carrick.entry import NewEntry, Put, State
from carrick.errors import DiskFull, InvalidPayload, StoreUnavailable, UnknownChannel
from carrick.outbox.channel import Channel, OnFull
from carrick.outbox.sqlite import group_commit
from carrick.outbox.sqlite.database import Database
from carrick.outbox.sqlite.group_commit import GroupCommit, Waiting
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.statement import Steps
from carrick.testing.samples import claim, ids, sample, states

T = TypeVar("T")

THREADS = 8
PATIENCE_SECONDS = 20.0


def until(condition: Callable[[], bool]) -> None:
    """Return when it is so; fail when it never is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.001)


def puts_together(store: SqliteStore, path: Path, entries: list[NewEntry]) -> list[Future[Put]]:
    """Each entry put by a thread of its own, all of them waiting while the file is held against one put before them."""
    file = sqlite3.connect(path, isolation_level=None)
    with ThreadPoolExecutor(len(entries) + 1) as threads, closing(file) as holder:
        holder.execute("begin immediate")
        threads.submit(store.put, sample("before"))
        until(lambda: store._puts._busy)
        answers = [threads.submit(store.put, entry) for entry in entries]
        until(lambda: len(store._puts._queue) == len(entries))
        holder.execute("rollback")
        return answers


@pytest.fixture
def statements(store: SqliteStore) -> list[str]:
    """What the writing connection is asked to do."""
    seen: list[str] = []
    assert store._database._writer is not None
    store._database._writer.set_trace_callback(seen.append)
    return seen


def test_puts_that_wait_together_share_one_commit(store: SqliteStore, path: Path, statements: list[str]) -> None:
    answers = [answer.result() for answer in puts_together(store, path, [sample()] * THREADS)]
    assert statements.count("commit") == 1
    assert all(answer.created for answer in answers)
    assert set(ids(claim(store))) == {answer.id for answer in answers}


def test_a_put_that_fails_fails_alone(store: SqliteStore, path: Path, statements: list[str]) -> None:
    entries = [sample(), sample("nowhere"), sample(payload=b"{"), sample()]
    good, unknown, broken, also_good = puts_together(store, path, entries)
    with pytest.raises(UnknownChannel):
        unknown.result()
    with pytest.raises(InvalidPayload):
        broken.result()
    assert statements.count("commit") == 1
    assert set(ids(claim(store))) == {good.result().id, also_good.result().id}


def test_the_same_key_in_one_commit_is_one_entry(store: SqliteStore, path: Path) -> None:
    answers = [answer.result() for answer in puts_together(store, path, [sample(key="k")] * THREADS)]
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.id for answer in answers}) == 1


def test_a_commit_that_fails_fails_every_put_in_it_and_the_store_goes_on(store: SqliteStore, path: Path) -> None:
    assert store._database._writer is not None
    store._database._writer.execute("pragma max_page_count = 1")
    large = sample(payload=b'"' + b"x" * 500_000 + b'"')
    errors = [answer.exception() for answer in puts_together(store, path, [large] * THREADS)]
    assert {type(error) for error in errors} == {DiskFull}
    assert len({id(error) for error in errors}) == THREADS
    store._database._writer.execute("pragma max_page_count = 1000000")
    assert not claim(store)
    assert store.put(sample()).created


def test_a_put_that_comes_while_others_are_written_shares_their_commit(
    store: SqliteStore, path: Path, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_together = group_commit._put_together
    late: list[Future[Put]] = []

    def somebody_comes(connection: sqlite3.Connection, group: list[Waiting]) -> list[tuple[Waiting, Put]]:
        if not late:
            late.append(thread.submit(store.put, sample()))
            until(lambda: len(store._puts._queue) == 1)
        return put_together(connection, group)

    monkeypatch.setattr(group_commit, "_put_together", somebody_comes)
    with ThreadPoolExecutor(1) as thread:
        answers = puts_together(store, path, [sample()] * 2)
    assert statements.count("commit") == 1
    assert set(ids(claim(store))) == {answer.result().id for answer in answers + late}


def test_no_more_than_so_many_share_a_commit(
    store: SqliteStore, path: Path, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MOST_TOGETHER", 3)
    answers = puts_together(store, path, [sample()] * THREADS)
    assert statements.count("commit") == 3
    assert set(ids(claim(store))) == {answer.result().id for answer in answers}


def test_puts_together_into_a_bounded_channel_say_what_became_of_each(store: SqliteStore, path: Path) -> None:
    store.declare(Channel(name="narrow", max_backlog_bytes=20, on_full=OnFull.EVICT))
    answers = [answer.result() for answer in puts_together(store, path, [sample("narrow", payload=b"1234567")] * 4)]
    assert [answer.state for answer in answers].count(State.DEAD) == 2
    assert [answer.state for answer in answers] == states(store, [answer.id for answer in answers])


def test_after_a_commit_of_several_the_next_put_is_one_that_others_can_join(
    store: SqliteStore, path: Path, statements: list[str]
) -> None:
    puts_together(store, path, [sample()] * 2)
    store.put(sample())
    assert statements.count("commit") == 2
    store.put(sample())
    assert statements.count("commit") == 2


def test_a_put_alone_is_one_statement_that_commits_by_itself(store: SqliteStore, statements: list[str]) -> None:
    assert store.put(sample()).created
    assert not {"begin immediate", "commit"} & set(statements)
    assert len(claim(store)) == 1


def test_an_interrupted_put_lets_the_next_one_work(path: Path) -> None:
    class Interrupted(Database):
        def write_one(self, steps: Steps[T]) -> T:
            del steps
            until(lambda: len(puts._queue) == 1)
            raise KeyboardInterrupt

    store = SqliteStore(path)
    store.declare(Channel(name="things"))
    puts = GroupCommit(Interrupted(path))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(puts.put, sample())
        until(lambda: puts._busy)
        second = threads.submit(puts.put, sample())
    assert isinstance(first.exception(), KeyboardInterrupt)
    assert second.result().created
    assert len(claim(store)) == 1


def test_an_interrupted_leader_leaves_nobody_waiting(path: Path) -> None:
    interrupted = threading.Event()

    class Interrupted(Database):
        def write_one(self, steps: Steps[T]) -> T:
            if not interrupted.is_set():
                until(lambda: len(puts._queue) == 2)
            return super().write_one(steps)

        @contextmanager
        def write(self) -> Iterator[sqlite3.Connection]:
            if not interrupted.is_set():
                interrupted.set()
                raise KeyboardInterrupt
            with super().write() as connection:
                yield connection

    store = SqliteStore(path)
    store.declare(Channel(name="things"))
    puts = GroupCommit(Interrupted(path))
    with ThreadPoolExecutor(3) as threads:
        alone = threads.submit(puts.put, sample())
        until(lambda: puts._busy)
        leader = threads.submit(puts.put, sample())
        until(lambda: len(puts._queue) == 1)
        follower = threads.submit(puts.put, sample())
    assert alone.result().created
    assert isinstance(leader.exception(), KeyboardInterrupt)
    assert isinstance(follower.exception(), StoreUnavailable)
    assert puts.put(sample()).created
    assert len(claim(store)) == 2


def test_many_threads_lose_nothing(store: SqliteStore) -> None:
    def put_some() -> list[Put]:
        return [store.put(sample()) for _ in range(25)]

    with ThreadPoolExecutor(THREADS) as threads:
        answers = [answer for some in [threads.submit(put_some) for _ in range(THREADS)] for answer in some.result()]
    assert set(ids(claim(store, max_rows=1000))) == {answer.id for answer in answers}
    assert len(answers) == THREADS * 25
