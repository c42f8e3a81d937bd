"""A watch tells when another connection has committed."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.sqlite.watching import LOOKS, SqliteWatch
from carrick.testing.samples import sample

WAYS = ["reports", "looks"] if sys.platform == "linux" else ["looks"]


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the kernel's reports, and where there are none."""
    chosen: str = request.param
    if chosen == "looks":
        monkeypatch.setattr(sys, "platform", "other")
    return chosen


def insert(path: Path) -> None:
    """What another process does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert into carrick_record (channel, event_type, payload) values ('things', 'e', '1')")


def test_a_commit_of_another_connection_is_noticed(path: Path, store: SqliteStore) -> None:
    async def main() -> None:
        watch = store.watch()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(insert, path)
        assert await waiting is None
        await watch.close()

    asyncio.run(main())


def test_a_put_of_the_same_process_is_noticed(store: SqliteStore) -> None:
    async def main() -> None:
        watch = store.watch()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(store.put, sample())
        await waiting
        await watch.close()

    asyncio.run(main())


def test_a_commit_between_two_waits_is_not_missed(path: Path, store: SqliteStore) -> None:
    async def main() -> None:
        watch = store.watch()
        insert(path)
        await watch.next()
        await watch.close()

    asyncio.run(main())


def test_without_a_commit_nothing_is_reported(path: Path, store: SqliteStore) -> None:
    async def main() -> None:
        watch = store.watch()
        waiting = asyncio.create_task(watch.next())
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin immediate")
            connection.execute("insert into carrick_record (channel, event_type, payload) values ('things', 'e', '1')")
            connection.execute("rollback")
        assert not store.claim("things", "nobody")
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        waiting.cancel()
        await watch.close()

    asyncio.run(main())


def test_the_log_file_may_be_made_anew(path: Path, store: SqliteStore) -> None:
    async def main() -> None:
        store.close()
        watch = SqliteWatch(path)
        await asyncio.to_thread(insert, path)
        await watch.next()
        await watch.close()

    asyncio.run(main())


def test_a_commit_that_took_long_is_looked_for_soon_after_compared_with_what_it_took() -> None:
    since = list(accumulate(LOOKS))
    assert since[-1] > 10
    assert all(after - before <= max(0.0011, 0.1 * before) for before, after in pairwise([0.0, *since]))
