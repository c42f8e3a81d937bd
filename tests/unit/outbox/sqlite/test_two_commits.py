"""Two commits whose writes are reported together: the second one is seen, although nobody reports it again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.watching import SqliteWatch


class OneReport:
    """The kernel has reported both writes at once; nothing is written after that."""

    def __init__(self) -> None:
        self.reported = True

    async def wait(self) -> None:
        assert self.reported, "there will be no further report"
        self.reported = False

    async def within(self, _: float) -> bool:
        await asyncio.sleep(0)
        return False

    def close(self) -> None:
        pass


def test_a_commit_that_becomes_visible_after_the_one_before_was_seen_is_not_missed(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(sqlite_path)
    versions = iter([1, 1, 1, 2, 2, 2, 2, 3, 3, 3])

    def version(_: Any) -> int:
        return next(versions)

    async def main() -> None:
        watch = SqliteWatch(sqlite_path)
        assert watch._writes is not None
        watch._writes.close()
        watch._writes = OneReport()  # type: ignore[assignment]
        watch._expecting = False
        watch._seen = 1
        monkeypatch.setattr(SqliteWatch, "_version", version)
        await watch.next()
        assert watch._seen == 2
        await watch.next()
        assert watch._seen == 3
        await watch.close()

    asyncio.run(main())
