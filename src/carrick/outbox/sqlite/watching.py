"""Tells when another connection has committed to the file: the kernel says that its log was written, SQLite says when.

Linux reports every write to a file (inotify), at no cost while nothing happens. The report comes before the commit can
be seen, so it is followed by a few looks at `data_version`. Elsewhere there are only the looks.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sqlite3
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from carrick.entry import Batch
from carrick.outbox.sqlite.database import connect
from carrick.outbox.sqlite.failures import map_errors

LOOKS = (*[0.0002] * 10, *[0.001] * 10, *[0.001 * 1.1**n for n in range(75)])
"""Seconds between looks after a write was reported, 15 in all. The later ones are for a disk that takes long to sync: a
commit that took a tenth of a second is seen within a hundredth."""
POLL_SECONDS = 0.02
"""Seconds between looks where the kernel reports nothing."""

IN_MODIFY = 0x2
IN_CREATE = 0x100
EVENT = struct.Struct("iIII")
NANOSECONDS = 1_000_000_000


class SqliteWatch:
    """Watches one file with a connection of its own, so that commits of this process are seen as well."""

    def __init__(self, path: Path) -> None:
        with map_errors(path):
            self._connection: sqlite3.Connection = connect(path)
        self._seen = self._version()
        self._expecting = True
        """Whether a write may have been reported whose commit cannot be seen yet."""
        self._writes = FileWrites(path.with_name(path.name + "-wal")) if sys.platform == "linux" else None

    async def next(self) -> str | None:
        """Wait for a commit that was not seen yet; it may concern any channel."""
        while not self._changed():
            if self._writes is None:
                await asyncio.sleep(POLL_SECONDS)
            else:
                if not self._expecting:
                    await self._writes.wait()
                self._expecting = await self._look(self._writes)
        return None

    async def claim(
        self, channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: float | None
    ) -> Batch | None:
        """Never: a claim waits for the disk, and here that would be this thread."""
        return None

    async def close(self) -> None:
        if self._writes is not None:
            self._writes.close()
        self._connection.close()

    async def _look(self, writes: FileWrites) -> bool:
        """Look until a commit can be seen; every further write begins the looks anew. Whether one was seen.

        Then another may be on its way: its report may have come together with that of the one that was seen.
        """
        looks = iter(LOOKS)
        while (seconds := next(looks, None)) is not None:
            if await writes.within(seconds):
                looks = iter(LOOKS)
            if self._version() != self._seen:
                return True
        return False

    def _changed(self) -> bool:
        version = self._version()
        changed = version != self._seen
        self._seen = version
        return changed

    def _version(self) -> int:
        (version,) = self._connection.execute("pragma data_version").fetchone()
        return int(version)


class FileWrites:
    """Reports writes to one file, which may be removed and made again: so its folder is watched. Linux only."""

    def __init__(self, path: Path) -> None:
        self._name = os.fsencode(path.name)
        self._loop = asyncio.get_running_loop()
        self._written = False
        self._stirred = asyncio.Event()
        self._alarm = Alarm(self._stirred.set)
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        folder = os.fsencode(path.parent.absolute())
        if self._descriptor < 0 or libc.inotify_add_watch(self._descriptor, folder, IN_MODIFY | IN_CREATE) < 0:
            code = ctypes.get_errno()
            self.close()
            raise OSError(code, os.strerror(code), str(path.parent))
        self._loop.add_reader(self._descriptor, self._read)

    async def wait(self) -> None:
        """Return when the file has been written to since the last time."""
        while not self._written:
            self._stirred.clear()
            await self._stirred.wait()
        self._written = False

    async def within(self, seconds: float) -> bool:
        """Whether the file is written to within that time; returns as soon as it is."""
        if not self._written:
            self._stirred.clear()
            self._alarm.set(seconds)
            await self._stirred.wait()
        written, self._written = self._written, False
        return written

    def close(self) -> None:
        self._alarm.close()
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        events = os.read(self._descriptor, 65536)
        at = 0
        while at < len(events):
            *_, length = EVENT.unpack_from(events, at)
            at += EVENT.size
            if events[at : at + length].rstrip(b"\0") == self._name:
                self._written = True
                self._stirred.set()
            at += length


class Alarm:
    """Calls back after a time that may be shorter than a millisecond, which is the event loop's tick. Linux only."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "no timer can be made")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    def set(self, seconds: float) -> None:
        """Ring once, that long from now, instead of when it was to ring before."""
        wanted = max(1, int(seconds * NANOSECONDS))  # none at all would mean never
        once = (ctypes.c_long * 4)(0, 0, *divmod(wanted, NANOSECONDS))
        self._libc.timerfd_settime(self._descriptor, 0, once, None)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            return  # it was set anew meanwhile
        self._ring()
