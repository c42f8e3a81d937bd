"""The one place where concrete parts are put together: which database a URL means, and what to open for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from carrick.errors import InvalidInput, MissingExtra
from carrick.outbox import opening
from carrick.outbox.outbox import Outbox
from carrick.outbox.store import Store
from carrick.settings import DatabaseUrl, parse_database_url


def open_store(database_url: str) -> Store:
    """The store of that database; close it when done. Raises InvalidInput, MissingExtra or a StoreError."""
    with _psycopg_needed():
        return opening.open_store(database_url)


def open_outbox(database_url: str) -> Outbox:
    """The outbox of that database, for programs that put and claim. Raises as `open_store`, also SchemaMissing."""
    with _psycopg_needed():
        return Outbox.connect(database_url)


def migrate(database_url: str, *, compat: bool = False) -> list[str]:
    """Create or upgrade the schema; the names of the migrations applied. Safe with many replicas at once."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.migrate(database.target)
    with _psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.migrate(database.target, compat=compat)


def pending_migrations(database_url: str, *, compat: bool = False) -> list[str]:
    """The names of the migrations that `migrate` would apply; changes nothing."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.pending(database.target)
    with _psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.pending(database.target, compat=compat)


def migration_script(database_url: str, *, compat: bool = False) -> str:
    """All migrations as one SQL text for an empty database of that kind; does not connect."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.script()
    with _psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.script(compat=compat)


def _checked(database_url: str, compat: bool) -> DatabaseUrl:
    """The database; the views of other outboxes exist on PostgreSQL only."""
    database = parse_database_url(database_url)
    if compat and database.backend == "sqlite":
        raise InvalidInput("compat", "SQLite has no such views", "--compat with a postgresql:// database")
    return database


@contextmanager
def _psycopg_needed() -> Iterator[None]:
    """Turn a missing driver into an error that says what to install; other import errors pass."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("psycopg", "psycopg_pool"):
            raise
        raise MissingExtra("postgres", "a postgresql:// database") from error
