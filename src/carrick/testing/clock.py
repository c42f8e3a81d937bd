"""The stores' clocks in the hands of a test: time passes when the test says so, nothing ever sleeps.

All times of an outbox come from its database (G9), so a test moves the database's clock, not the process's.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """The clock of one test database."""

    def shift(self, seconds: float) -> None:
        """Let that many seconds pass at once, for every connection to the database."""


class SqliteClock:
    """Shifts the clock of a SQLite file through its table `carrick_clock_shift`."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)

    def shift(self, seconds: float) -> None:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            connection.execute(
                "update carrick_clock_shift set microseconds = microseconds + ?", (round(seconds * MICROSECONDS),)
            )


class PostgresClock:
    """Replaces `carrick.clock()` in one test database by the real clock plus what was shifted so far."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._microseconds = 0

    def shift(self, seconds: float) -> None:
        import psycopg
        from psycopg import sql

        self._microseconds += round(seconds * MICROSECONDS)
        # not within the literal: before PostgreSQL 15 its number must fit into 32 bits
        body = f"select clock_timestamp() + {self._microseconds} * interval '1 microsecond'"
        replace = sql.SQL(
            "create or replace function carrick.clock() returns timestamptz language sql volatile parallel safe as {}"
        )
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(replace.format(sql.Literal(body)))


class RedisClock:
    """Redis has a clock of its own that nobody can move: what is left of every key is shortened instead."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self._url = url
        self._prefix = prefix

    def shift(self, seconds: float) -> None:
        import redis

        with redis.Redis.from_url(self._url) as client:
            for key in client.scan_iter():
                left = client.pttl(key)
                if key.startswith(self._prefix.encode()) and left > 0:
                    client.pexpire(key, left - round(seconds * 1000))
