"""A store from a database URL. The driver of a database is imported only when its URL asks for it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from carrick.errors import InvalidInput, StoreUnavailable
from carrick.outbox.store import Store

ACCEPTED = "sqlite:///file.db (four slashes for an absolute path) or postgresql://user@host/database"
SQLITE = "sqlite:///"
POSTGRESQL = ("postgresql://", "postgres://")


def open_store(url: str) -> Store:
    """The store behind the URL. Raises InvalidInput for a URL that names no supported database."""
    if is_postgresql(url):
        try:
            from carrick.outbox.postgres.store import PostgresStore
        except ModuleNotFoundError as missing:
            raise StoreUnavailable(
                f"PostgreSQL needs the package {missing.name!r}; install it with: pip install 'carrick[postgres]'"
            ) from missing
        return PostgresStore(url)
    from carrick.outbox.sqlite.store import SqliteStore

    return SqliteStore(sqlite_path(url))


def is_postgresql(url: str) -> bool:
    """Whether the URL names a PostgreSQL database."""
    return url.startswith(POSTGRESQL)


def sqlite_path(url: str) -> Path:
    """The file that a sqlite URL names; without network hosts, query strings or in-memory databases."""
    path = unquote(url.removeprefix(SQLITE))
    if not url.startswith(SQLITE) or not path or path.startswith(":") or "?" in url or "\x00" in path:
        raise InvalidInput("database URL", f"{_masked(url)!r} is not supported", ACCEPTED)
    return Path(path)


def _masked(url: str) -> str:
    """The URL without whatever stands before an @: it may be a password."""
    head, at, tail = url.rpartition("@")
    scheme = head.partition("://")[0] if "://" in head else ""
    return f"{scheme}://…@{tail}" if at else url
