"""Producers in the caller's transaction: one adapter per foreign connection type, found by the connection's type.

No library is imported here that the caller has not imported: a type is known by the names in its ancestry, and only
then is its adapter's module loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from carrick.errors import UnsupportedConnection
from carrick.outbox.adapters.adapter import Adapter

ADAPTERS: dict[tuple[str, str], tuple[str, str]] = {
    ("sqlite3", "Connection"): ("sqlite", "SqliteAdapter"),
    ("aiosqlite", "Connection"): ("aiosqlite", "AiosqliteAdapter"),
    ("psycopg", "Connection"): ("psycopg", "PsycopgAdapter"),
    ("psycopg", "AsyncConnection"): ("psycopg", "PsycopgAsyncAdapter"),
    ("asyncpg", "Connection"): ("asyncpg", "AsyncpgAdapter"),
    ("asyncpg", "PoolConnectionProxy"): ("asyncpg", "AsyncpgAdapter"),
    ("sqlalchemy", "Connection"): ("sqlalchemy", "SqlalchemyAdapter"),
    ("sqlalchemy", "Session"): ("sqlalchemy", "SqlalchemyAdapter"),
    ("sqlalchemy", "scoped_session"): ("sqlalchemy", "SqlalchemyAdapter"),
    ("sqlalchemy", "AsyncConnection"): ("sqlalchemy", "SqlalchemyAsyncAdapter"),
    ("sqlalchemy", "AsyncSession"): ("sqlalchemy", "SqlalchemyAsyncAdapter"),
    ("sqlalchemy", "async_scoped_session"): ("sqlalchemy", "SqlalchemyAsyncAdapter"),
    ("django", "ConnectionProxy"): ("django", "DjangoAdapter"),
    ("django", "BaseDatabaseWrapper"): ("django", "DjangoAdapter"),
}
"""(package, class) of a connection -> (module here, class there)."""

HINTS: dict[tuple[str, str], str] = {
    ("sqlite3", "Cursor"): "pass cursor.connection",
    ("aiosqlite", "Cursor"): "pass the connection it came from",
    ("psycopg", "BaseCursor"): "pass cursor.connection",
    ("psycopg", "Transaction"): "pass transaction.connection",
    ("psycopg", "AsyncTransaction"): "pass transaction.connection",
    ("psycopg_pool", "BasePool"): "pass a connection from pool.connection()",
    ("asyncpg", "Pool"): "pass a connection from pool.acquire()",
    ("asyncpg", "Transaction"): "pass the connection it came from",
    ("sqlalchemy", "Engine"): "pass a connection from engine.begin()",
    ("sqlalchemy", "AsyncEngine"): "pass a connection from engine.begin()",
    ("sqlalchemy", "sessionmaker"): "call it and pass the session",
    ("sqlalchemy", "async_sessionmaker"): "call it and pass the session",
    ("sqlalchemy", "Transaction"): "pass transaction.connection",
    ("sqlalchemy", "SessionTransaction"): "pass transaction.session",
    ("django", "CursorWrapper"): "pass django.db.connection",
    ("django", "BaseConnectionHandler"): 'pass connections["default"]',
    ("django", "Atomic"): "pass django.db.connection",
}
"""What is often meant when something close to a connection is passed."""

SUPPORTED = (
    "sqlite3.Connection, aiosqlite.Connection, psycopg.Connection, psycopg.AsyncConnection, an asyncpg connection, "
    "a SQLAlchemy Connection, Session, AsyncConnection or AsyncSession, django.db.connection"
)


def adapter_for(connection: Any) -> Adapter:
    """The adapter for the caller's connection or session. Raises UnsupportedConnection, naming its type."""
    kind = type(connection)
    if kind not in _FOUND:
        _FOUND[kind] = _adapter_class(kind)
    adapter: Adapter = _FOUND[kind](connection)
    return adapter


_FOUND: dict[type, Any] = {}
"""Adapters of types that have been seen."""


def _adapter_class(kind: type) -> Any:
    names = [(cls.__module__.partition(".")[0], cls.__qualname__) for cls in kind.__mro__]
    for name in names:
        if name in ADAPTERS:
            module, adapter = ADAPTERS[name]
            return getattr(import_module(f"{__name__}.{module}"), adapter)
    hint = next((f" ({HINTS[name]})" for name in names if name in HINTS), "")
    raise UnsupportedConnection("connection", f"is a {kind.__module__}.{kind.__qualname__}{hint}", SUPPORTED)
