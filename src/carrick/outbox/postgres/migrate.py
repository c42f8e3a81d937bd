"""Creates and upgrades the PostgreSQL schema. Safe when many replicas start at once: they take turns on one lock."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from carrick.outbox.migration import Migration, Part, check_version
from carrick.outbox.postgres.failures import map_errors

ENGINE = Part("engine", "carrick.outbox.postgres")
COMPAT = Part("compat", "carrick.outbox.postgres", "compat")
"""The views of other outboxes (`--compat`)."""

LOCK = 0x0CA221C4
"""Key of the advisory lock that migrating replicas take turns on."""

LEDGER = """
create schema if not exists carrick;
create table if not exists carrick.migration (
  part       text not null,
  number     int not null,
  name       text not null,
  applied_at timestamptz not null default clock_timestamp(),
  primary key (part, number)
);
"""


def migrate(dsn: str, parts: Sequence[Part] = (ENGINE,)) -> list[str]:
    """Apply what is missing, each file in a transaction of its own; the titles of those applied.

    The lock ends with each transaction, and nothing is prepared: a pooler in transaction mode may stand between.
    Raises SchemaTooNew when a newer release has migrated this database.
    """
    applied: list[str] = []
    with map_errors(), psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        while True:
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
                connection.execute(LEDGER)
                missing = _missing(connection, parts)
                if not missing:
                    return applied
                part, migration = missing[0]
                _apply(connection, part, migration)
            applied.append(part.title(migration))


def pending(dsn: str, parts: Sequence[Part] = (ENGINE,)) -> list[str]:
    """The titles of migrations that `migrate` would apply; changes nothing."""
    with map_errors(), psycopg.connect(dsn, autocommit=True) as connection:
        return [part.title(migration) for part, migration in _missing(connection, parts)]


def script(parts: Sequence[Part] = (ENGINE,)) -> str:
    """All migrations as one SQL text for a database that has none, for those who apply SQL by other means."""
    text = ["begin;", LEDGER]
    for part in parts:
        for migration in part.steps:
            text += [f"-- {part.title(migration)}", migration.sql]
            text.append(
                "insert into carrick.migration (part, number, name) "  # noqa: S608  constants of this package
                f"values ('{part.name}', {migration.number}, '{migration.name}');"
            )
    return "\n".join([*text, "commit;", ""])


def check_schema(connection: psycopg.Connection[object], part: Part = ENGINE) -> None:
    """Raise SchemaMissing, SchemaOutdated or SchemaTooNew unless that part's schema is the one this release needs."""
    check_version(_where(connection), max(_applied(connection, part), default=None), len(part.steps))


def _missing(connection: psycopg.Connection[object], parts: Sequence[Part]) -> list[tuple[Part, Migration]]:
    """What is not applied yet, of all parts; none of them may be newer than this release."""
    missing: list[tuple[Part, Migration]] = []
    for part in parts:
        done = _applied(connection, part)
        if max(done, default=0) > len(part.steps):
            check_version(_where(connection), max(done), len(part.steps))
        missing += [(part, migration) for migration in part.steps if migration.number not in done]
    return missing


def _apply(connection: psycopg.Connection[object], part: Part, migration: Migration) -> None:
    connection.execute(migration.sql.encode())  # bytes: no placeholder in them is ever read
    connection.execute(
        "insert into carrick.migration (part, number, name) values (%s, %s, %s)",
        (part.name, migration.number, migration.name),
    )


def _applied(connection: psycopg.Connection[object], part: Part) -> set[int]:
    row = connection.execute("select to_regclass('carrick.migration')::text").fetchone()
    if row is None or row[0] is None:  # type: ignore[index]
        return set()
    rows = connection.execute("select number from carrick.migration where part = %s", (part.name,)).fetchall()
    return {row[0] for row in rows}  # type: ignore[index]


def _where(connection: psycopg.Connection[object]) -> str:
    return f"database {connection.info.dbname!r}"
