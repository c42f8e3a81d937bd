"""Shared state in one SQLite file: every operation is one transaction that looks at the epoch first."""

from __future__ import annotations

import json
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
from carrick.state.epoch import Epoch
from carrick.state.kv import Item
from carrick.state.place import COUNTER, EpochOver
from carrick.state.sqlite.listening import listen

PACKAGE = "carrick.state.sqlite"
STATE = Part("state", PACKAGE)

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

    def current(self) -> Epoch:
        with self._database.read() as connection:
            return _epoch(connection)

    def raise_from(self, number: int, name: str, run: str | None, failures: int) -> None:
        with self._database.write() as connection:
            rows(connection, "raise_epoch", number=number, name=name, run=run, failures=failures)

    def get_many(self, epoch: int, keys: Sequence[str]) -> dict[str, bytes]:
        with self._database.read() as connection:
            _guard(connection, epoch)
            return dict(rows(connection, "get_many", epoch=epoch, keys=json.dumps(list(keys))))

    def set(self, epoch: int, key: str, value: bytes, ttl: float) -> None:
        with self._changing(epoch, key) as (connection, _):
            _set(connection, epoch, key, value, ttl)

    def set_if_absent(self, epoch: int, key: str, value: bytes, ttl: float) -> bool:
        with self._changing(epoch, key) as (connection, found):
            if found is None:
                _set(connection, epoch, key, value, ttl)
            return found is None

    def compare_and_set(self, epoch: int, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        with self._changing(epoch, key) as (connection, found):
            if found == expected:
                _set(connection, epoch, key, value, ttl)
            return found == expected

    def delete(self, epoch: int, key: str, expected: bytes | None) -> bool:
        with self._changing(epoch, key) as (connection, found):
            wanted = found is not None and expected in (None, found)
            if wanted:
                rows(connection, "delete", epoch=epoch, key=key)
            return wanted

    def increment(self, epoch: int, key: str, ttl: float, by: int) -> int | None:
        with self._changing(epoch, key) as (connection, found):
            if found is None:
                _set(connection, epoch, key, str(by).encode(), ttl)
                return by
            if not COUNTER.fullmatch(found):
                return None
            total = int(found) + by
            rows(connection, "count", epoch=epoch, key=key, value=str(total).encode())
            return total

    def scan(self, epoch: int, prefix: str, limit: int) -> list[Item]:
        with self._database.read() as connection:
            _guard(connection, epoch)
            found = rows(connection, "scan", epoch=epoch, prefix=prefix, limit=limit)
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
    def _changing(self, epoch: int, key: str) -> Iterator[tuple[sqlite3.Connection, bytes | None]]:
        """A transaction in that epoch, with the value that is there. There is one writer: nothing changes meanwhile."""
        with self._database.write() as connection:
            _guard(connection, epoch)
            found = rows(connection, "get_many", epoch=epoch, keys=json.dumps([key]))
            yield connection, found[0][1] if found else None


def rows(connection: sqlite3.Connection, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """The rows that queries/<name>.sql answers."""
    return connection.execute(query(PACKAGE, name), params).fetchall()


def _guard(connection: sqlite3.Connection, epoch: int) -> None:
    """Raise EpochOver unless it is that epoch in this transaction."""
    if _epoch(connection).number != epoch:
        raise EpochOver(f"epoch {epoch} is over")


def _epoch(connection: sqlite3.Connection) -> Epoch:
    ((number, name, run, failures, age),) = rows(connection, "epoch")
    return Epoch(number, name, run, failures, age / PER_SECOND)


def _set(connection: sqlite3.Connection, epoch: int, key: str, value: bytes, ttl: float) -> None:
    rows(connection, "set", epoch=epoch, key=key, value=value, span=max(1, span(ttl)))
