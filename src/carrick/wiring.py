"""The one place where concrete parts are put together: which database a URL means, and what to open for it."""

from __future__ import annotations

from carrick.errors import InvalidInput
from carrick.outbox import opening
from carrick.outbox.outbox import Outbox
from carrick.outbox.store import Store
from carrick.settings import DatabaseUrl, Settings


def open_store(database_url: str) -> Store:
    """The store of that database; close it when done. Raises InvalidInput, MissingExtra or a StoreError."""
    return opening.open_store(database_url)


def open_outbox(database_url: str, settings: Settings | None = None) -> Outbox:
    """The outbox of that database; with settings, their defaults hold for channels that do not say otherwise."""
    return Outbox.connect(database_url, channel_defaults=settings.channel_defaults() if settings else None)


def migrate(database_url: str, *, compat: bool = False) -> list[str]:
    """Create or upgrade the schema; the names of the migrations applied. Safe with many replicas at once."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.migrate(database.target)
    with opening.psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.migrate(database.target, compat=compat)


def pending_migrations(database_url: str, *, compat: bool = False) -> list[str]:
    """The names of the migrations that `migrate` would apply; changes nothing."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.pending(database.target)
    with opening.psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.pending(database.target, compat=compat)


def migration_script(database_url: str, *, compat: bool = False) -> str:
    """All migrations as one SQL text for an empty database of that kind; does not connect."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.script()
    with opening.psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.script(compat=compat)


def _checked(database_url: str, compat: bool) -> DatabaseUrl:
    """The database; the views of other outboxes exist on PostgreSQL only."""
    database = opening.named_database(database_url)
    if compat and database.backend == "sqlite":
        raise InvalidInput("compat", "SQLite has no such views", "--compat with a postgresql:// database")
    return database
