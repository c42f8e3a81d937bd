"""Which adapter a connection gets, by its type alone."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import psycopg_pool
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker

from carrick.errors import UnsupportedConnection
from carrick.outbox.adapters import ADAPTERS, HINTS, adapter_for


def test_a_subclass_of_a_connection_is_a_connection() -> None:
    class Mine(sqlite3.Connection):
        """What an application may have made of it."""

    class MySession(Session):
        """What other libraries make of it."""

    with closing(sqlite3.connect(":memory:", factory=Mine)) as connection:
        assert adapter_for(connection).dialect == "sqlite"
    with MySession(create_engine("sqlite://")) as session:
        assert adapter_for(session).dialect == "sqlite"


def test_a_type_that_is_not_supported_is_named_together_with_those_that_are() -> None:
    with pytest.raises(UnsupportedConnection, match=r"is a builtins\.str; accepted: sqlite3\.Connection, "):
        adapter_for("postgresql://localhost")


def test_a_cursor_or_an_engine_is_refused_with_what_to_pass_instead() -> None:
    engine = create_engine("sqlite://")
    pool = psycopg_pool.ConnectionPool("", open=False)
    with closing(sqlite3.connect(":memory:")) as connection:
        for given, hint in [
            (connection.cursor(), "pass cursor.connection"),
            (_unmade(psycopg.Cursor), "pass cursor.connection"),
            (_unmade(psycopg.ClientCursor), "pass cursor.connection"),
            (_unmade(psycopg.AsyncCursor), "pass cursor.connection"),
            (_unmade(asyncpg.Pool), "pool.acquire()"),
            (engine, "engine.begin()"),
            (sessionmaker(engine), "call it"),
            (pool, "pool.connection()"),
        ]:
            with pytest.raises(UnsupportedConnection) as refused:
                adapter_for(given)
            assert hint in str(refused.value)


def test_every_name_in_the_tables_is_the_name_of_a_real_class() -> None:
    import aiosqlite
    import django.db  # type: ignore[import-untyped]
    import django.db.backends.base.base  # type: ignore[import-untyped]
    import django.db.backends.utils  # type: ignore[import-untyped]
    import sqlalchemy.ext.asyncio

    loaded = (asyncpg, aiosqlite, psycopg, psycopg_pool, django.db, sqlalchemy.ext.asyncio)
    packages = {module.__name__.partition(".")[0] for module in loaded} | {"sqlite3"}
    real = {
        (cls.__module__.partition(".")[0], cls.__qualname__)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in packages
        for given in list(vars(module).values())
        if issubclass(type(given), type)  # asking a lazy object itself would wake it
        for cls in given.__mro__
    }
    assert real >= ADAPTERS.keys() | HINTS.keys()


def test_looking_for_an_adapter_imports_no_other_library() -> None:
    program = (
        "import sqlite3, sys\n"
        "from carrick.outbox.adapters import adapter_for\n"
        "adapter_for(sqlite3.connect(':memory:'))\n"
        "loaded = {'psycopg', 'asyncpg', 'aiosqlite', 'sqlalchemy', 'django'} & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def _unmade(cls: Any) -> Any:
    """An object of the class that was never set up: only its type is looked at."""
    return cls.__new__(cls)
