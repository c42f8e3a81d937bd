"""One durable commit for all puts that wait for it: whoever finds nobody leading leads, the others are woken.

Nothing sleeps to collect more: while a commit is on its way to the disk, the next puts gather by themselves.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from carrick.entry import NewEntry, Put
from carrick.errors import CarrickError
from carrick.outbox.sqlite.database import Database, run
from carrick.outbox.sqlite.putting import put_steps


class Waiting:
    """A put that waits for its commit: then it has an answer or an error."""

    def __init__(self, entry: NewEntry) -> None:
        self.entry = entry
        self.answer: Put | None = None
        self.error: BaseException | None = None
        self.woken = threading.Event()

    @property
    def done(self) -> bool:
        return self.answer is not None or self.error is not None


class GroupCommit:
    """Puts of many threads into one database. At most one thread leads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: deque[Waiting] = deque()
        self._led = False
        self._mutex = threading.Lock()

    def put(self, entry: NewEntry) -> Put:
        """Put an entry; durable when this returns. Raises what is wrong with this put, or why its commit failed."""
        waiting = Waiting(entry)
        if not self._join(waiting):
            waiting.woken.wait()
        if not waiting.done:
            self._lead()
        if waiting.error is not None:
            raise waiting.error
        assert waiting.answer is not None
        return waiting.answer

    def _join(self, waiting: Waiting) -> bool:
        """Queue up; whether to lead."""
        with self._mutex:
            self._queue.append(waiting)
            leads = not self._led
            self._led = True
            return leads

    def _lead(self) -> None:
        """Commit what has queued up, wake those, and let the first of the rest lead."""
        group: list[Waiting] = []
        try:
            self._commit(group)
        except BaseException as error:  # noqa: BLE001  raised by every put of the group, the leader's among them
            for waiting in group or self._take():
                waiting.error = _own_copy(error)
        finally:
            with self._mutex:
                heir = self._queue[0] if self._queue else None
                self._led = heir is not None
            for waiting in [*group, *([heir] if heir else [])]:
                waiting.woken.set()

    def _commit(self, group: list[Waiting]) -> None:
        """All waiting puts in one transaction; one that fails by itself has written nothing."""
        answers: list[tuple[Waiting, Put]] = []
        with self._database.write() as connection:
            group += self._take()
            for waiting in group:
                try:
                    answers.append((waiting, run(connection, put_steps(waiting.entry))))
                except CarrickError as error:
                    waiting.error = error
        for waiting, answer in answers:
            waiting.answer = answer

    def _take(self) -> list[Waiting]:
        with self._mutex:
            group = list(self._queue)
            self._queue.clear()
            return group
