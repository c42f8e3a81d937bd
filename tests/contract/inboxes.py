"""Databases with an inbox, an outbox and a clock, for the tests of the inbox."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from carrick import wiring
from carrick.entry import Batch
from carrick.ingest.store import Inbox
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, SqliteClock
from tests.conftest import emptied
from tests.sqlite_file import whole_file


@dataclass(frozen=True)
class Place:
    """One database with an inbox, an outbox and a clock. `look` answers a query about the inbox or the intake."""

    url: str
    store: Store
    clock: Clock
    look: Callable[[str], list[tuple[Any, ...]]]

    def inbox(self, relay_channel: str = "") -> Inbox:
        return wiring.open_inbox(self.url, relay_channel=relay_channel)

    def count(self) -> int:
        found: int = self.look("select count(*) from {inbox}")[0][0]
        return found

    def relayed(self) -> Batch:
        return self.store.claim("events", "test", max_rows=5000)


def _look_sqlite(path: Path) -> Callable[[str], list[tuple[Any, ...]]]:
    def look(query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return connection.execute(query.format(inbox="carrick_inbox", intake="carrick_intake")).fetchall()

    return look


def _look_postgres(dsn: str) -> Callable[[str], list[tuple[Any, ...]]]:
    def look(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            return connection.execute(query.format(inbox="carrick.inbox", intake="carrick.intake").encode()).fetchall()

    return look


def sqlite_place(path: Path) -> Iterator[Place]:
    """A fresh file with the channel `events`."""
    whole_file(path)
    yield from _with_channel(f"sqlite:///{path}", SqliteClock(path), _look_sqlite(path))


def postgres_place(version: int) -> Iterator[Place]:
    """An emptied database with the channel `events`."""
    dsn = emptied(version)
    yield from _with_channel(dsn, PostgresClock(dsn), _look_postgres(dsn))


def _with_channel(url: str, clock: Clock, look: Callable[[str], list[tuple[Any, ...]]]) -> Iterator[Place]:
    with closing(wiring.open_store(url)) as store:
        store.declare(Channel(name="events", mode=Mode.ORDERED))
        yield Place(url, store, clock, look)
