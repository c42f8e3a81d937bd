"""Asks a SQLite file how it is, on a connection of its own. Changes nothing, and needs no schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from carrick.errors import SchemaMissing
from carrick.outbox.health import Health
from carrick.outbox.sqlite.database import connect, rows
from carrick.outbox.sqlite.failures import map_errors


def look(path: str | Path) -> Health:
    """How the file is now. Raises a StoreError when it cannot be read or is not there."""
    path = Path(path)
    if not path.exists() and path.parent.is_dir():
        raise SchemaMissing(str(path))
    with map_errors(path), closing(connect(path)) as connection:
        names = frozenset(name for (name,) in rows(connection, "health_indexes"))
    log = path.with_name(f"{path.name}-wal")
    return Health(
        version=f"SQLite {sqlite3.sqlite_version}",
        number=sqlite3.sqlite_version_info[0] * 1000 + sqlite3.sqlite_version_info[1],
        indexes=names,
        log_bytes=log.stat().st_size if log.exists() else 0,
    )
