"""Creates and upgrades the SQLite schema. Safe when many processes start at once: each looks again under the lock."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from carrick.outbox.migration import Migration, check_version, migrations
from carrick.outbox.sqlite.database import BUSY_SECONDS, PACKAGE, connect
from carrick.outbox.sqlite.failures import map_errors

LEDGER = """create table if not exists carrick_migration (
  number     integer primary key,
  name       text not null,
  applied_at integer not null default (cast((julianday('now') - 2440587.5) * 86400000000.0 as integer))
) strict"""

APPLIED = "insert into carrick_migration (number, name) values (?, ?)"


def known_version() -> int:
    """The schema number this release needs."""
    return len(migrations(PACKAGE))


def migrate(path: str | Path) -> list[str]:
    """Apply what is missing, each file in a transaction of its own; the names of those applied. Creates the file.

    Raises SchemaTooNew when a newer release has migrated this file.
    """
    path = Path(path)
    with map_errors(path), closing(connect(path, create=True)) as connection:
        _refuse_newer(path, connection)
        _use_wal(connection)
        return [_name(migration) for migration in migrations(PACKAGE) if _apply(path, connection, migration)]


def pending(path: str | Path) -> list[str]:
    """The names of migrations that `migrate` would apply; changes nothing, and creates no file."""
    path = Path(path)
    done: set[int] = set()
    if path.exists():
        with map_errors(path), closing(connect(path)) as connection:
            _refuse_newer(path, connection)
            done = _applied(connection)
    return [_name(migration) for migration in migrations(PACKAGE) if migration.number not in done]


def script() -> str:
    """All migrations as one SQL text for a file that has none, for those who apply SQL by other means."""
    parts = ["pragma journal_mode = wal;", "begin immediate;", f"{LEDGER};"]
    for migration in migrations(PACKAGE):
        parts += [f"-- {_name(migration)}", migration.sql]
        parts.append(
            "insert into carrick_migration (number, name) "  # noqa: S608  constants of this package
            f"values ({migration.number}, '{migration.name}');"
        )
    return "\n".join([*parts, "commit;", ""])


def check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Raise SchemaMissing, SchemaOutdated or SchemaTooNew unless the schema is the one this release needs."""
    check_version(str(path), max(_applied(connection), default=None), known_version())


def statements(sql: str) -> Iterator[str]:
    """The single statements of a migration; the semicolons inside a trigger do not end it."""
    part = ""
    for line in sql.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            yield part
            part = ""
    if any(line.strip() and not line.lstrip().startswith("--") for line in part.splitlines()):
        raise ValueError(f"a migration ends within a statement: {part.strip()[:80]}")


def _apply(path: Path, connection: sqlite3.Connection, migration: Migration) -> bool:
    """Apply one file unless somebody has; a process that waited for the write lock sees what the other did."""
    connection.execute("begin immediate")
    try:
        connection.execute(LEDGER)
        _refuse_newer(path, connection)
        if migration.number in _applied(connection):
            return False
        for statement in statements(migration.sql):
            connection.execute(statement)
        connection.execute(APPLIED, (migration.number, migration.name))
        connection.execute("commit")
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
    return True


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL, for good. SQLite does not wait for others here, so this does."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _refuse_newer(path: Path, connection: sqlite3.Connection) -> None:
    found = max(_applied(connection), default=0)
    if found > known_version():
        check_version(str(path), found, known_version())


def _applied(connection: sqlite3.Connection) -> set[int]:
    if not connection.execute("select 1 from sqlite_schema where name = 'carrick_migration'").fetchone():
        return set()
    return {number for (number,) in connection.execute("select number from carrick_migration")}


def _name(migration: Migration) -> str:
    return f"{migration.number:04}_{migration.name}"
