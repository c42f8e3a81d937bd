"""A watch tells when another connection has committed."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.sqlite.watching import SqliteWatch
from carrick.testing.samples import sample


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


def test_a_commit_is_noticed_behind_a_symbolic_link(path: Path, store: SqliteStore) -> None:
    link = path.with_name("elsewhere") / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)

    async def main() -> None:
        watch = SqliteWatch(link)
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(insert, path)
        async with asyncio.timeout(30):
            await waiting
        await watch.close()

    asyncio.run(main())
