"""The kernel's reports of writes to one file, and waiting for them for a short time (Linux)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from carrick.outbox.sqlite.watching import FileWrites


def test_a_wait_ends_without_a_write_when_its_time_is_up(tmp_path: Path) -> None:
    async def main() -> None:
        writes = FileWrites(tmp_path / "log")
        assert [await writes.within(seconds) for seconds in (0.0, 0.0002, 0.002)] == [False, False, False]
        writes.close()

    asyncio.run(main())


def test_a_wait_ends_with_a_write_long_before_its_time(tmp_path: Path) -> None:
    async def main() -> None:
        writes = FileWrites(tmp_path / "log")
        waiting = asyncio.create_task(writes.within(3600))
        await asyncio.sleep(0)
        (tmp_path / "log").write_bytes(b"x")
        assert await waiting
        writes.close()

    asyncio.run(main())


def test_an_alarm_that_rings_late_is_no_write(tmp_path: Path) -> None:
    async def main() -> None:
        writes = FileWrites(tmp_path / "log")
        await writes.within(0.0002)
        waiting = asyncio.create_task(writes.wait())
        assert not await writes.within(0.0002)
        assert not waiting.done()
        (tmp_path / "log").write_bytes(b"x")
        await waiting
        writes.close()

    asyncio.run(main())


def test_everything_is_given_back_also_when_the_folder_is_missing(tmp_path: Path) -> None:
    async def main() -> None:
        FileWrites(tmp_path / "log").close()
        with pytest.raises(OSError, match="No such file"):
            FileWrites(tmp_path / "nowhere" / "log")

    asyncio.run(main())
    before = open_files()
    asyncio.run(main())
    assert open_files() == before


def open_files() -> set[str]:
    """The file descriptors of this process."""
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}
