"""Asks a SQLite file how it is, on a connection of its own. Changes nothing, and needs no schema."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
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
        exposed=tuple(_exposed(path)),
    )


def _exposed(path: Path) -> Iterator[str]:
    for name in (path.name, *(f"{path.name}{end}" for end in ("-wal", "-shm", "-journal"))):
        file = path.with_name(name)
        if file.exists() and (mode := stat.S_IMODE(file.stat().st_mode)) & 0o007:
            yield f"{file} ({mode:04o})"
