"""Shared state in one SQLite file: every operation is one transaction."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from carrick.outbox.migration import Part
from carrick.outbox.sqlite.database import Database
from carrick.outbox.sqlite.migrate import check_schema
from carrick.outbox.sqlite.moment import PER_SECOND, span
from carrick.outbox.statement import query
from carrick.state.kv import Count, Item
from carrick.state.sqlite.listening import listen

PACKAGE = "carrick.state.sqlite"
STATE = Part("state", PACKAGE)

COUNTER = re.compile(rb"0|-?[1-9][0-9]{0,17}")
"""What can be counted on; PostgreSQL's increment.sql has the same."""
KEPT_MESSAGES = 1_000
"""A subscriber further behind than this is told that it has missed something."""


class SqliteTables:
    """The tables of shared state in one file."""

    def __init__(self, path: str | Path) -> None:
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    def check_schema(self) -> None:
        with self._database.read() as connection:
            check_schema(self._database.path, connection, STATE)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        with self._database.read() as connection:
            return {key: value for key, value, _ in _found(connection, keys)}

    def set(self, key: str, value: bytes, ttl: float) -> None:
        with self._database.write() as connection:
            _set(connection, key, value, ttl)

    def set_if_absent(self, key: str, value: bytes, ttl: float) -> bool:
        with self._changing(key) as (connection, found, _):
            if found is None:
                _set(connection, key, value, ttl)
            return found is None

    def compare_and_set(self, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        with self._changing(key) as (connection, found, _):
            if found == expected:
                _set(connection, key, value, ttl)
            return found == expected

    def delete(self, key: str, expected: bytes | None) -> bytes | None:
        with self._changing(key) as (connection, found, _):
            if found is None or expected not in (None, found):
                return None
            rows(connection, "delete", key=key)
            return found

    def increment(self, key: str, ttl: float, by: int) -> Count | None:
        with self._changing(key) as (connection, found, left):
            if found is None:
                _set(connection, key, str(by).encode(), ttl)
                return Count(by, ttl)
            if not COUNTER.fullmatch(found):
                return None
            total = int(found) + by
            rows(connection, "count", key=key, value=str(total).encode())
            return Count(total, left)

    def scan(self, prefix: str, limit: int) -> list[Item]:
        with self._database.read() as connection:
            found = rows(connection, "scan", prefix=prefix, limit=limit)
            return [Item(key, value, left / PER_SECOND) for key, value, left in found]

    def publish(self, topic: str, text: str) -> None:
        with self._database.write() as connection:
            ((newest,),) = rows(connection, "publish", topic=topic, text=text)
            rows(connection, "prune_messages", newest=newest, kept=KEPT_MESSAGES)

    def prune(self, max_rows: int) -> int:
        with self._database.write() as connection:
            return len(rows(connection, "prune", max_rows=max_rows))

    def newest_message(self) -> int:
        """The number of the newest message that ever was."""
        with self._database.read() as connection:
            ((newest,),) = rows(connection, "newest_message")
            return int(newest)

    def messages(self, after: int) -> list[tuple[int, str, str]]:
        """Number, topic and text of each message after that number that is still there."""
        with self._database.read() as connection:
            return rows(connection, "messages", after=after)

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        return listen(self, self._database.path, topic)

    @contextmanager
    def _changing(self, key: str) -> Iterator[tuple[sqlite3.Connection, bytes | None, float]]:
        """A transaction, with the value that is there and the seconds left of it. There is one writer: nothing changes
        meanwhile."""
        with self._database.write() as connection:
            found = _found(connection, [key])
            _, value, left = found[0] if found else (key, None, 0)
            yield connection, value, left / PER_SECOND


def rows(connection: sqlite3.Connection, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """The rows that queries/<name>.sql answers."""
    return connection.execute(query(PACKAGE, name), params).fetchall()


def _found(connection: sqlite3.Connection, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return rows(connection, "get_many", keys=json.dumps(list(keys)))


def _set(connection: sqlite3.Connection, key: str, value: bytes, ttl: float) -> None:
    rows(connection, "set", key=key, value=value, span=max(1, span(ttl)))
