"""Creates and upgrades the PostgreSQL schema. Safe when many replicas start at once: they take turns on one lock."""

from __future__ import annotations

import psycopg

from carrick.outbox.migration import Migration, check_version, migrations
from carrick.outbox.postgres.failures import map_errors

PACKAGE = "carrick.outbox.postgres"
LOCK = 0x0CA221C4
"""Key of the advisory lock that migrating replicas take turns on."""

LEDGER = """
create schema if not exists carrick;
create table if not exists carrick.migration (
  kind       text not null check (kind in ('engine', 'compat')),
  number     int not null,
  name       text not null,
  applied_at timestamptz not null default clock_timestamp(),
  primary key (kind, number)
);
"""


def known_version() -> int:
    """The schema number this release needs."""
    return len(migrations(PACKAGE))


def compat_migrations() -> tuple[Migration, ...]:
    """The views of other outboxes (`--compat`)."""
    return migrations(PACKAGE, "compat")


def migrate(dsn: str, *, compat: bool = False) -> list[str]:
    """Apply what is missing, each file in a transaction of its own; the names of those applied.

    Raises SchemaTooNew when a newer release has migrated this database.
    """
    applied: list[str] = []
    with map_errors(), psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(%s)", (LOCK,))
        try:
            connection.execute(LEDGER)
            found = _version(connection) or 0
            if found > known_version():
                check_version(_where(connection), found, known_version())
            for kind, steps in _plan(compat):
                done = _applied(connection, kind)
                for migration in steps:
                    if migration.number not in done:
                        _apply(connection, kind, migration)
                        applied.append(f"{migration.number:04}_{migration.name}")
        finally:
            connection.execute("select pg_advisory_unlock(%s)", (LOCK,))
    return applied


def pending(dsn: str, *, compat: bool = False) -> list[str]:
    """The names of migrations that `migrate` would apply; changes nothing."""
    with map_errors(), psycopg.connect(dsn, autocommit=True) as connection:
        if _version(connection) is None:
            missing = [migration for _, steps in _plan(compat) for migration in steps]
        else:
            missing = [
                migration
                for kind, steps in _plan(compat)
                for migration in steps
                if migration.number not in _applied(connection, kind)
            ]
    return [f"{migration.number:04}_{migration.name}" for migration in missing]


def script(*, compat: bool = False) -> str:
    """All migrations as one SQL text for a database that has none, for those who apply SQL by other means."""
    parts = ["begin;", LEDGER]
    for kind, steps in _plan(compat):
        for migration in steps:
            parts += [f"-- {migration.number:04}_{migration.name}", migration.sql]
            parts.append(
                "insert into carrick.migration (kind, number, name) "  # noqa: S608  constants of this package
                f"values ('{kind}', {migration.number}, '{migration.name}');"
            )
    return "\n".join([*parts, "commit;", ""])


def check_schema(connection: psycopg.Connection[object]) -> None:
    """Raise SchemaMissing, SchemaOutdated or SchemaTooNew unless the schema is the one this release needs."""
    check_version(_where(connection), _version(connection), known_version())


def _plan(compat: bool) -> list[tuple[str, tuple[Migration, ...]]]:
    plan = [("engine", migrations(PACKAGE))]
    return [*plan, ("compat", compat_migrations())] if compat else plan


def _apply(connection: psycopg.Connection[object], kind: str, migration: Migration) -> None:
    with connection.transaction():
        connection.execute(migration.sql.encode())  # bytes: no placeholder in them is ever read
        connection.execute(
            "insert into carrick.migration (kind, number, name) values (%s, %s, %s)",
            (kind, migration.number, migration.name),
        )


def _version(connection: psycopg.Connection[object]) -> int | None:
    row = connection.execute("select to_regclass('carrick.migration')::text").fetchone()
    if row is None or row[0] is None:  # type: ignore[index]
        return None
    return max(_applied(connection, "engine"), default=0)


def _applied(connection: psycopg.Connection[object], kind: str) -> set[int]:
    rows = connection.execute("select number from carrick.migration where kind = %s", (kind,)).fetchall()
    return {row[0] for row in rows}  # type: ignore[index]


def _where(connection: psycopg.Connection[object]) -> str:
    return f"database {connection.info.dbname!r}"
