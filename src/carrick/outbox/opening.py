"""A store from a database URL. The driver of a database is imported only when its URL asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from carrick.errors import InvalidInput, MissingExtra
from carrick.outbox.store import Store
from carrick.settings import DATABASE_URLS_ACCEPTED, DatabaseUrl, database_of
from carrick.variables import mask_url


def open_store(url: str) -> Store:
    """The store behind the URL; close it when done. Raises InvalidInput or MissingExtra."""
    database = named_database(url)
    if database.backend == "postgres":
        with psycopg_needed():
            from carrick.outbox.postgres.store import PostgresStore
        return PostgresStore(database.target)
    from carrick.outbox.sqlite.store import SqliteStore

    return SqliteStore(database.target)


def named_database(url: str) -> DatabaseUrl:
    """The database that the URL names. Raises InvalidInput, showing no password."""
    database = database_of(url)
    if database is None:
        raise InvalidInput("database URL", f"{mask_url(url)[:200]!r} is not supported", DATABASE_URLS_ACCEPTED)
    return database


def psycopg_needed() -> AbstractContextManager[None]:
    """Turn a missing driver of PostgreSQL into an error that says what to install."""
    return needed("psycopg", "postgres", "a postgresql:// database")


@contextmanager
def needed(package: str, extra: str, needed_for: str) -> Iterator[None]:
    """Turn a missing package into an error that says what to install; other import errors pass."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingExtra(extra, needed_for) from error
