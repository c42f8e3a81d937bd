"""Creates and upgrades the SQLite schema. Safe when many processes start at once: each looks again under the lock."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from carrick.outbox.migration import Migration, Part, check_version
from carrick.outbox.sqlite.database import BUSY_SECONDS, PACKAGE, connect
from carrick.outbox.sqlite.failures import map_errors

ENGINE = Part("engine", PACKAGE)

LEDGER = """create table if not exists carrick_migration (
  part       text not null,
  number     integer not null,
  name       text not null,
  applied_at integer not null default (cast((julianday('now') - 2440587.5) * 86400000000.0 as integer)),
  primary key (part, number)
) strict, without rowid"""

APPLIED = "insert into carrick_migration (part, number, name) values (?, ?, ?)"


def migrate(path: str | Path, parts: Sequence[Part] = (ENGINE,)) -> list[str]:
    """Apply what is missing, each file in a transaction of its own; the titles of those applied. Creates the file.

    Raises SchemaTooNew when a newer release has migrated this file.
    """
    path = Path(path)
    with map_errors(path), closing(connect(path, create=True)) as connection:
        missing = _missing(path, connection, parts)
        _use_wal(connection)
        return [part.title(migration) for part, migration in missing if _apply(path, connection, part, migration)]


def pending(path: str | Path, parts: Sequence[Part] = (ENGINE,)) -> list[str]:
    """The titles of migrations that `migrate` would apply; changes nothing, and creates no file."""
    path = Path(path)
    if not path.exists():
        return [part.title(migration) for part in parts for migration in part.steps]
    with map_errors(path), closing(connect(path)) as connection:
        return [part.title(migration) for part, migration in _missing(path, connection, parts)]


def script(parts: Sequence[Part] = (ENGINE,)) -> str:
    """All migrations as one SQL text for a file that has none, for those who apply SQL by other means."""
    text = ["pragma journal_mode = wal;", "begin immediate;", f"{LEDGER};"]
    for part in parts:
        for migration in part.steps:
            text += [f"-- {part.title(migration)}", migration.sql]
            text.append(
                "insert into carrick_migration (part, number, name) "  # noqa: S608  constants of this package
                f"values ('{part.name}', {migration.number}, '{migration.name}');"
            )
    return "\n".join([*text, "commit;", ""])


def check_schema(path: Path, connection: sqlite3.Connection, part: Part = ENGINE) -> None:
    """Raise SchemaMissing, SchemaOutdated or SchemaTooNew unless that part's schema is the one this release needs."""
    check_version(str(path), max(_applied(connection, part), default=None), len(part.steps))


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


def _missing(path: Path, connection: sqlite3.Connection, parts: Sequence[Part]) -> list[tuple[Part, Migration]]:
    """What is not applied yet, of all parts; none of them may be newer than this release."""
    missing: list[tuple[Part, Migration]] = []
    for part in parts:
        done = _applied(connection, part)
        _refuse_newer(path, part, done)
        missing += [(part, migration) for migration in part.steps if migration.number not in done]
    return missing


def _apply(path: Path, connection: sqlite3.Connection, part: Part, migration: Migration) -> bool:
    """Apply one file unless somebody has; a process that waited for the write lock sees what the other did."""
    connection.execute("begin immediate")
    try:
        connection.execute(LEDGER)
        done = _applied(connection, part)
        _refuse_newer(path, part, done)
        if migration.number in done:
            return False
        for statement in statements(migration.sql):
            connection.execute(statement)
        connection.execute(APPLIED, (part.name, migration.number, migration.name))
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


def _refuse_newer(path: Path, part: Part, done: set[int]) -> None:
    if max(done, default=0) > len(part.steps):
        check_version(str(path), max(done), len(part.steps))


def _applied(connection: sqlite3.Connection, part: Part) -> set[int]:
    if not connection.execute("select 1 from sqlite_schema where name = 'carrick_migration'").fetchone():
        return set()
    rows = connection.execute("select number from carrick_migration where part = ?", (part.name,))
    return {number for (number,) in rows}
