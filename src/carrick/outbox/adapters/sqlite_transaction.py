"""The transaction of a sqlite3 connection, or of one alike: joined where it is open, else begun."""

from __future__ import annotations

from typing import Any, TypeVar

from carrick.outbox.adapters.transaction import begun
from carrick.outbox.sqlite.failures import named
from carrick.outbox.statement import Statement, Steps

T = TypeVar("T")

BEGIN_IMMEDIATE = Statement("begin immediate", {})
"""A put is sure to write; taking the lock first waits for other writers, upgrading a read later may only fail."""
BEGIN_EXCLUSIVE = Statement("begin exclusive", {})


def in_sqlite_transaction(steps: Steps[T], connection: Any) -> Steps[T]:
    """Join the open transaction of a sqlite3 (or alike) connection; else begin one, left open unless in autocommit."""
    if connection.in_transaction:
        return steps
    level = connection.isolation_level
    autocommit = getattr(connection, "autocommit", None)  # Python 3.12 and later: a bool, or -1 for the older rules
    own = autocommit if isinstance(autocommit, bool) else level is None
    exclusive = isinstance(level, str) and level.upper() == "EXCLUSIVE"
    return named(begun(steps, BEGIN_EXCLUSIVE if exclusive else BEGIN_IMMEDIATE, commits=own))
