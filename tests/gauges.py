"""Counts in the hands of a test: beyond which number they are estimates."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def count_nothing(path: str | Path) -> None:
    """From now on every count of that SQLite file is an estimate."""
    with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        connection.execute("insert into carrick_gauge_limit (one, exact) values (1, 0)")
