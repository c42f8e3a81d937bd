"""One commit for all batches that wait for it. A batch that fails is undone alone.

The file has one writer. Who waits for its turn has left its batch in a queue, and whoever gets the turn takes all that
are there into one transaction. Nothing sleeps to collect more.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence

from carrick.ingest.store import Taken
from carrick.outbox.sqlite.database import Database
from carrick.outbox.sqlite.failures import map_errors
from carrick.outbox.sqlite.group_commit import NO_PUT_CAN_BE_KEPT, twin

Work = Callable[[sqlite3.Connection], Taken]
"""What a batch does in the transaction."""


class _Waiting:
    """A batch that waits for its commit: then it has an answer or an error."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.answer: Taken | None = None
        self.error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.answer is not None or self.error is not None


class Together:
    """Batches of many threads into one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: list[_Waiting] = []
        self._queueing = threading.Lock()
        self._turn = threading.Lock()

    def take(self, work: Work) -> Taken:
        """The batch's answer; durable when this returns. Raises what its work raises, or why its commit failed."""
        waiting = _Waiting(work)
        with self._queueing:
            self._queue.append(waiting)
        with self._turn:
            if not waiting.done:
                self._lead()
        if waiting.error is not None:
            raise waiting.error
        assert waiting.answer is not None
        return waiting.answer

    def _lead(self) -> None:
        with self._queueing:
            group, self._queue = self._queue, []
        try:
            answers = self._commit(group)
        except BaseException as error:
            for waiting in group:  # also those that failed by themselves: perhaps because of what is undone now
                waiting.error = twin(error)
            if not isinstance(error, Exception):
                raise
        else:
            for waiting, answer in zip(group, answers, strict=True):
                waiting.answer = answer

    def _commit(self, group: Sequence[_Waiting]) -> Sequence[Taken | None]:
        with self._database.write() as connection:
            if len(group) == 1:
                return [group[0].work(connection)]
            return [self._apart(connection, waiting) for waiting in group]

    def _apart(self, connection: sqlite3.Connection, waiting: _Waiting) -> Taken | None:
        """The batch's answer; None when it has failed and was undone. Raises what no batch could survive."""
        connection.execute("savepoint batch")
        try:
            with map_errors(self._database.path):
                answer = waiting.work(connection)
        except NO_PUT_CAN_BE_KEPT:
            raise
        except Exception as error:  # noqa: BLE001  told to the one whose fault it is
            waiting.error = error
            connection.execute("rollback to batch")
            answer = None
        connection.execute("release batch")
        return answer
