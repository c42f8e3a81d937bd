"""Deterministic interleavings on PostgreSQL: sessions that go one step at a time, and barriers inside transactions.

A step either runs to its end, or is seen to wait for another session, or the test fails: nothing is left to timing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg import sql

PATIENCE_SECONDS = 20.0
BARRIER = 7_202_611
"""Key of the advisory lock that `Barrier` is made of."""


class Session:
    """One connection in its own transaction. `begin`, statements, `commit` or `rollback`, as the test says."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.pid = self.connection.info.backend_pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def run(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """Run one statement to its end; its rows."""
        cursor = self.connection.execute(statement.encode(), params or None)
        return [] if cursor.description is None else cursor.fetchall()

    def begin(self) -> None:
        """Open a transaction that stays open until commit or rollback."""
        self.run("begin")

    def commit(self) -> None:
        self.run("commit")

    def rollback(self) -> None:
        self.run("rollback")

    def never_wait(self) -> None:
        """From here on a statement that would wait for another session fails instead (LockNotAvailable)."""
        self.run("set lock_timeout = '50ms'")

    def start(self, statement: str, *params: Any) -> Step:
        """Begin a statement that may have to wait; ask the step how it goes."""
        return Step(self, statement, params)


class Step:
    """A statement on its way in a thread of its own."""

    def __init__(self, session: Session, statement: str, params: tuple[Any, ...]) -> None:
        self._session = session
        self._answer: Future[list[tuple[Any, ...]]] = Future()
        self._thread = threading.Thread(target=self._run, args=(statement, params), daemon=True)
        self._thread.start()

    def _run(self, statement: str, params: tuple[Any, ...]) -> None:
        try:
            self._answer.set_result(self._session.run(statement, *params))
        except BaseException as error:  # noqa: BLE001  raised again where the test asks for the answer
            self._answer.set_exception(error)

    def result(self) -> list[tuple[Any, ...]]:
        """The rows, once it is through. Raises what the statement raised, or TimeoutError."""
        return self._answer.result(PATIENCE_SECONDS)

    def until_it_waits(self, dsn: str) -> None:
        """Return when the database says that it waits for a lock. Raises AssertionError if it ends instead."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with psycopg.connect(dsn, autocommit=True) as observer:
            while time.monotonic() < deadline:
                assert not self._answer.done(), f"it did not wait: {self._answer}"
                row = observer.execute("select cardinality(pg_blocking_pids(%s))", (self._session.pid,)).fetchone()
                if row is not None and row[0] > 0:
                    return
        raise AssertionError("the statement neither ended nor waited")


class Barrier:
    """Stops chosen sessions right before a function is called inside one of theirs, until the barrier is lifted.

    Replaces the function by one that waits for an advisory lock first: only for a database of the test's own.
    `signature` is as in `carrick._lock_groups(bigint[])`.
    """

    def __init__(self, dsn: str, signature: str) -> None:
        self._dsn = dsn
        name, _, types = signature.rstrip(")").partition("(")
        schema, _, function = name.partition(".")
        count = len(types.split(",")) if types else 0
        self._names = {
            "name": sql.Identifier(schema, function),
            "inner": sql.Identifier(schema, f"{function}_behind_barrier"),
            "renamed": sql.Identifier(f"{function}_behind_barrier"),
            "types": sql.SQL(types),
            "args": sql.SQL(", ").join(sql.SQL(f"${n + 1}") for n in range(count)),
        }

    def install(self) -> None:
        """Put the barrier up, open: sessions pass until `closed` and only those that `stops_at` was called on stop."""
        body = sql.SQL(
            "begin if current_setting('carrick_test.stops', true) = 'on' then "
            "perform pg_advisory_lock_shared({key}), pg_advisory_unlock_shared({key}); end if; "
            "return {inner}({args}); end"
        ).format(key=sql.Literal(BARRIER), **self._names)
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            returns = self._returns(connection)
            connection.execute(sql.SQL("alter function {name}({types}) rename to {renamed}").format(**self._names))
            connection.execute(
                sql.SQL("create function {name}({types}) returns {returns} language plpgsql as {body}").format(
                    returns=sql.SQL(returns), body=sql.Literal(body.as_string(connection)), **self._names
                )
            )

    def _returns(self, connection: psycopg.Connection[Any]) -> str:
        signature = sql.SQL("{name}({types})").format(**self._names).as_string(connection)
        row = connection.execute("select pg_get_function_result(%s::regprocedure)", (signature,)).fetchone()
        assert row is not None
        return str(row[0])

    @contextmanager
    def closed(self, *stopped: Session) -> Iterator[None]:
        """Within it the given sessions stop at the barrier; leaving it lifts the barrier."""
        for session in stopped:
            session.run("set carrick_test.stops = 'on'")
        with psycopg.connect(self._dsn, autocommit=True) as keeper:
            keeper.execute("select pg_advisory_lock(%s)", (BARRIER,))
            yield
