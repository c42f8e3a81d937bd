"""Shared state in one PostgreSQL database: every operation is one statement that names its epoch."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from carrick.outbox.migration import Part
from carrick.outbox.postgres.connections import Connections
from carrick.outbox.postgres.migrate import check_schema
from carrick.outbox.statement import query
from carrick.state.epoch import Epoch
from carrick.state.kv import Item
from carrick.state.place import EpochOver
from carrick.state.postgres.listening import channel_of, listen

PACKAGE = "carrick.state.postgres"
STATE = Part("state", PACKAGE)


class PostgresTables:
    """The tables of shared state in one database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connections = Connections(dsn)

    def close(self) -> None:
        self._connections.close()

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            check_schema(connection, STATE)

    def current(self) -> Epoch:
        ((number, name, run, failures, age),) = self._rows("epoch")
        return Epoch(number, name, run, failures, age)

    def raise_from(self, number: int, name: str, run: str | None, failures: int) -> None:
        self._rows("raise_epoch", number=number, name=name, run=run, failures=failures)

    def get_many(self, epoch: int, keys: Sequence[str]) -> dict[str, bytes]:
        found = self._rows_in(epoch, "get_many", keys=list(keys))
        return {key: value for key, value in found if key is not None}

    def set(self, epoch: int, key: str, value: bytes, ttl: float) -> None:
        self._rows_in(epoch, "set", key=key, value=value, ttl=ttl)

    def set_if_absent(self, epoch: int, key: str, value: bytes, ttl: float) -> bool:
        return bool(self._value_in(epoch, "set_if_absent", key=key, value=value, ttl=ttl))

    def compare_and_set(self, epoch: int, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        return bool(self._value_in(epoch, "compare_and_set", key=key, expected=expected, value=value, ttl=ttl))

    def delete(self, epoch: int, key: str, expected: bytes | None) -> bool:
        return bool(self._value_in(epoch, "delete", key=key, expected=expected))

    def increment(self, epoch: int, key: str, ttl: float, by: int) -> int | None:
        total: int | None = self._value_in(epoch, "increment", key=key, ttl=ttl, by=by)
        return total

    def scan(self, epoch: int, prefix: str, limit: int) -> list[Item]:
        found = self._rows_in(epoch, "scan", prefix=prefix, limit=limit)
        return [Item(key, value, left) for key, value, left in found if key is not None]

    def publish(self, topic: str, text: str) -> None:
        self._rows("publish", channel=channel_of(topic), text=text)

    def prune(self, max_rows: int) -> int:
        return int(self._rows("prune", max_rows=max_rows)[0][0])

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        return listen(self._dsn, topic)

    def _value_in(self, epoch: int, name: str, /, **params: Any) -> Any:
        return self._rows_in(epoch, name, **params)[0][0]

    def _rows_in(self, epoch: int, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement that is guarded by its epoch: none at all means that it is over."""
        found = self._rows(name, epoch=epoch, **params)
        if not found:
            raise EpochOver(f"epoch {epoch} is over")
        return found

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(query(PACKAGE, name).encode(), params)
            return [] if cursor.rownumber is None else cursor.fetchall()
