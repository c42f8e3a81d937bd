"""Whose transaction an operation runs in: the caller's wherever there is one, else a short one of its own.

The rules are those of the drivers: one that begins implicitly leaves the commit to the caller, one in autocommit mode
does not. Only statements are used, so sync and async connections share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from carrick.outbox.statement import Statement, Steps

T = TypeVar("T")

COMMIT = Statement("commit", {})
ROLLBACK = Statement("rollback", {})
BEGIN = Statement("begin", {})

IDLE = 0
"""The transaction status of a psycopg connection outside a transaction."""


def in_postgres_transaction(steps: Steps[T], connection: Any, *, autocommit: bool) -> Steps[T]:
    """Join the transaction that is open or that the driver will begin; use an own where neither is."""
    if autocommit and _is_idle(connection):
        return begun(steps, BEGIN, commits=True)
    return steps


@contextmanager
def unprepared(driver: Any) -> Iterator[None]:
    """Let psycopg prepare nothing meanwhile, where another library has its cursor; any other driver is left alone.

    Behind a pooler in transaction mode the next transaction meets a session that does not know what was prepared.
    """
    given = getattr(driver, "prepare_threshold", None)
    if given is None:
        yield
        return
    driver.prepare_threshold = None
    try:
        yield
    finally:
        driver.prepare_threshold = given


def _is_idle(connection: Any) -> bool:
    if hasattr(connection, "is_in_transaction"):  # asyncpg
        return not connection.is_in_transaction()
    info = getattr(connection, "info", None)  # psycopg
    return info is not None and info.transaction_status == IDLE


def begun(steps: Steps[T], begin: Statement, *, commits: bool) -> Steps[T]:
    """Nothing of the caller's is in this transaction, so a failed operation takes it away whole."""
    yield begin
    try:
        result = yield from steps
        if commits:
            yield COMMIT
    except GeneratorExit:
        raise  # the connection is not ours to use any more
    except BaseException as error:
        try:
            yield ROLLBACK
        except Exception as failure:  # noqa: BLE001  the first error is the one to tell; this one is told with it
            error.add_note(f"Rolling back failed as well: {failure}")
        raise
    return result
