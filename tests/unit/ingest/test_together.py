"""Batches that wait while another is written: one commit for all, and each answers for itself."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from carrick.errors import StoreError
from carrick.ingest.problems import Replayed
from carrick.ingest.sqlite.together import Together, Work
from carrick.ingest.store import Taken
from carrick.outbox.sqlite.database import Database
from carrick.outbox.sqlite.migrate import migrate
from tests.unit.outbox.sqlite.test_group_commit import until


def storing(n: int, problem: Exception | None = None) -> Work:
    """A batch that writes a row, and fails after that when there is a problem."""

    def work(connection: sqlite3.Connection) -> Taken:
        connection.execute("insert into kept values (?)", (n,))
        if problem is not None:
            raise problem
        return Taken(n, 0)

    return work


def together(path: Path, *works: Work) -> tuple[list[Any], list[int], int]:
    """What became of batches that waited for another: answers or errors, the rows that are kept, and the commits."""
    migrate(path)
    database = Database(path)
    statements: list[str] = []
    with database.write() as connection:
        connection.execute("create table kept (n integer)")
        connection.set_trace_callback(statements.append)
    batches = Together(database)
    started, ended = threading.Event(), threading.Event()

    def first(connection: sqlite3.Connection) -> Taken:
        started.set()
        assert ended.wait(20)
        return storing(0)(connection)

    def outcome(work: Work) -> Any:
        try:
            return batches.take(work).accepted
        except Exception as error:  # noqa: BLE001  the answer of this test
            return error

    with ThreadPoolExecutor(len(works) + 1) as threads:
        answers = [threads.submit(outcome, first)]
        assert started.wait(20)
        for n, work in enumerate(works, 1):
            answers.append(threads.submit(outcome, work))
            until(_queued(batches, n))
        ended.set()
    with database.read() as reading:
        kept = [n for (n,) in reading.execute("select n from kept order by n")]
    database.close()
    return [answer.result() for answer in answers], kept, statements.count("commit")


def _queued(batches: Together, count: int) -> Callable[[], bool]:
    return lambda: len(batches._queue) == count


def test_those_that_wait_share_one_commit(tmp_path: Path) -> None:
    answers, kept, commits = together(tmp_path / "a.db", storing(1), storing(2), storing(3))
    assert (answers, kept, commits) == ([0, 1, 2, 3], [0, 1, 2, 3], 3)  # the table, the first, the others


def test_one_that_fails_is_undone_alone(tmp_path: Path) -> None:
    replayed, bad = Replayed(), ValueError("bad")
    answers, kept, _ = together(tmp_path / "a.db", storing(1), storing(2, replayed), storing(3, bad), storing(4))
    assert (answers, kept) == ([0, 1, replayed, bad, 4], [0, 1, 4])


def test_when_the_file_fails_all_are_told_and_nothing_is_kept(tmp_path: Path) -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    answers, kept, _ = together(tmp_path / "a.db", storing(1), storing(2, Replayed()), storing(3, full), storing(4))
    assert [isinstance(answer, StoreError) for answer in answers] == [False, True, True, True, True]
    assert kept == [0]
    assert len({id(answer) for answer in answers}) == len(answers)
