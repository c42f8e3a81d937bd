"""One durable commit for all puts that wait for it.

Whoever finds nobody at work puts alone. Who comes meanwhile queues up, and the first of those leads: commits for all of
them, and for those who come while it writes, and wakes the others. Nothing sleeps to collect more: while one commit is
on its way to the disk, the next gathers. After a commit of several the next to come leads, too: others are about to
come again, and join it while it writes.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from itertools import islice

from carrick.entry import NewEntry, Put
from carrick.errors import StoreError, StoreUnavailable, twin
from carrick.outbox.sqlite.database import Database, run
from carrick.outbox.sqlite.putting import put_steps, put_together

MOST_TOGETHER = 500
"""Puts in one statement; who comes after so many waits for the next commit."""
NO_PUT_CAN_BE_KEPT = (StoreError, sqlite3.OperationalError)
"""What goes wrong with the disk, the file or the schema, not with one put."""


class Waiting:
    """A put that waits for its commit: then it has an answer or an error."""

    def __init__(self, entry: NewEntry) -> None:
        self.entry = entry
        self.answer: Put | None = None
        self.error: Exception | None = None
        self._asleep = threading.Lock()  # an Event does the same at ten times the cost
        self._asleep.acquire()

    @property
    def done(self) -> bool:
        """Whether its commit is over, one way or the other."""
        return self.answer is not None or self.error is not None

    @property
    def woken(self) -> bool:
        """Whether it was woken and has not taken notice yet."""
        return not self._asleep.locked()

    def sleep(self) -> None:
        """Return when woken."""
        self._asleep.acquire()

    def wake(self) -> None:
        """Let it go on. Only the leader wakes others, so nobody is woken by two at once."""
        if self._asleep.locked():
            self._asleep.release()


class GroupCommit:
    """Puts of many threads into one database. At most one thread is at work there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: deque[Waiting] = deque()
        self._busy = False
        self._in_company = False
        """Whether the last commit was for several, or others have come since."""
        self._mutex = threading.Lock()

    def put(self, entry: NewEntry) -> Put:
        """Put an entry; durable when this returns. Raises what is wrong with this put, or why its commit failed."""
        waiting = self._queued(entry)
        if waiting is None:
            return self._put_alone(entry)
        self._follow(waiting)
        if not waiting.done:
            self._lead()
        if waiting.error is not None:
            raise waiting.error
        assert waiting.answer is not None
        return waiting.answer

    def _queued(self, entry: NewEntry) -> Waiting | None:
        """A place in the queue; none for whoever puts alone."""
        with self._mutex:
            if not self._busy and not self._in_company:
                self._busy = True
                return None
            waiting = Waiting(entry)
            self._queue.append(waiting)
            if not self._busy:
                self._hand_on()
            return waiting

    def _put_alone(self, entry: NewEntry) -> Put:
        try:
            return self._database.write_one(put_steps(entry))
        finally:
            with self._mutex:
                self._hand_on()

    def _follow(self, waiting: Waiting) -> None:
        """Sleep until committed or asked to lead. A thread that is interrupted leaves no gap in the queue."""
        try:
            waiting.sleep()
        except BaseException:
            with self._mutex:
                if waiting in self._queue:
                    self._queue.remove(waiting)
                if waiting.woken and not waiting.done:
                    self._hand_on()
            raise

    def _lead(self) -> None:
        """Commit what has queued up, wake those, and let the first of the rest lead."""
        group: list[Waiting] = []
        try:
            self._commit(group)
        except BaseException as error:
            for waiting in group or self._take_into(group):
                waiting.answer = None
                waiting.error = waiting.error or twin(_known(error))
            if not isinstance(error, Exception):
                raise
        finally:
            for waiting in group:
                waiting.wake()
            with self._mutex:
                self._in_company = len(group) > 1
                self._hand_on()

    def _hand_on(self) -> None:
        """Let the first in the queue lead, if there is one."""
        heir = self._queue[0] if self._queue else None
        self._busy = heir is not None
        self._in_company |= self._busy
        if heir is not None:
            heir.wake()

    def _commit(self, group: list[Waiting]) -> None:
        """All waiting puts in one transaction, and those that come while it is written."""
        answers: list[tuple[Waiting, Put]] = []
        with self._database.write() as connection:
            while len(group) < MOST_TOGETHER and (joining := self._take_into(group)):
                answers += _put_together(connection, joining)
        for waiting, answer in answers:
            waiting.answer = answer

    def _take_into(self, group: list[Waiting]) -> list[Waiting]:
        """Those who wait, at most so many; they are in the group from now on."""
        with self._mutex:
            joining = list(islice(self._queue, MOST_TOGETHER))
            group += joining
            for _ in joining:
                self._queue.popleft()
        return joining


def _put_together(connection: sqlite3.Connection, group: list[Waiting]) -> list[tuple[Waiting, Put]]:
    """All in one statement where nothing is wrong with any, which costs half; else one by one."""
    if len(group) > 1 and all(waiting.entry.key is None for waiting in group):
        try:
            return list(zip(group, run(connection, put_together([waiting.entry for waiting in group])), strict=True))
        except NO_PUT_CAN_BE_KEPT:
            raise
        except Exception:  # noqa: BLE001  comes again for the one whose fault it is
            return _put_each(connection, group)
    return _put_each(connection, group)


def _put_each(connection: sqlite3.Connection, group: list[Waiting]) -> list[tuple[Waiting, Put]]:
    """One that fails by itself has written nothing and fails alone."""
    answers: list[tuple[Waiting, Put]] = []
    for waiting in group:
        try:
            answers.append((waiting, run(connection, put_steps(waiting.entry))))
        except NO_PUT_CAN_BE_KEPT:
            raise
        except Exception as error:  # noqa: BLE001  raised by the thread whose put it is
            waiting.error = error
    return answers


def _known(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    return StoreUnavailable("the thread that committed this was interrupted; nothing was written")
