"""Puts in the transaction of a Django connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import django  # type: ignore[import-untyped]
import pytest
from django.conf import settings  # type: ignore[import-untyped]
from django.db import IntegrityError, connection, connections, transaction  # type: ignore[import-untyped]
from psycopg.conninfo import conninfo_to_dict

from carrick.errors import CarrickError, KeyReused, PayloadTooLarge, UnknownChannel, UnsupportedConnection
from carrick.outbox.adapters import adapter_for
from carrick.outbox.statement import Statement, Steps
from tests.unit.outbox.adapters.conftest import Databases
from tests.unit.outbox.adapters.shop import TOO_LONG, Committed, billing, put, put_many, recover, run

if not settings.configured:
    settings.configure(USE_TZ=True)
    django.setup()


@pytest.fixture(params=["postgresql", "sqlite"])
def vendor(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """Let `django.db.connection` be a connection to a fresh database of each kind."""
    chosen: str = request.param
    connections.settings = connections.configure_settings({"default": _settings(chosen, databases)})
    connections["default"] = connections.create_connection("default")
    yield chosen
    connection.close()


def test_an_entry_is_there_when_the_atomic_block_commits(databases: Databases, vendor: str) -> None:
    with transaction.atomic():
        _insert("1")
        assert put(connection, "paid", key="k").created
        assert not put(connection, "paid", key="k").created
        assert databases.committed(vendor) == Committed([], [])
    assert databases.committed(vendor) == Committed(["1"], ["paid"])


def test_no_entry_is_there_when_the_atomic_block_rolls_back(databases: Databases, vendor: str) -> None:
    with transaction.atomic():
        _insert("1")
        put(connection, "paid")
        put_many(connection, billing("a"), billing("b", key="k"))
        transaction.set_rollback(True)
    assert databases.committed(vendor) == Committed([], [])


def test_a_nested_block_that_rolls_back_takes_only_its_entries(databases: Databases, vendor: str) -> None:
    with transaction.atomic():
        put(connection, "outer")
        with transaction.atomic():
            _insert("inner")
            put(connection, "inner")
            transaction.set_rollback(True)
        _insert("outer")
        put_many(connection, billing("a", priority=1, headers={"h": 1}), billing("b", key="k", delay=2))
    assert databases.committed(vendor) == Committed(["outer"], ["a", "b", "outer"])


def test_outside_a_block_a_put_is_a_transaction_of_its_own(databases: Databases, vendor: str) -> None:
    put(connection, "paid")
    assert databases.committed(vendor).entries == ["paid"]
    with pytest.raises(IntegrityError):
        run(connection, _writes_then_fails())
    put_many(connection, billing("a"), billing("b", key="k"))
    assert databases.committed(vendor) == Committed([], ["a", "b", "paid"])


def test_without_autocommit_the_caller_commits(databases: Databases, vendor: str) -> None:
    transaction.set_autocommit(False)
    put(connection, "gone")
    transaction.rollback()
    put(connection, "paid")
    _insert("1")
    assert databases.committed(vendor) == Committed([], [])
    transaction.commit()
    assert databases.committed(vendor) == Committed(["1"], ["paid"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"key": "used"}, KeyReused), ({"channel": "nowhere"}, UnknownChannel), ({"payload": TOO_LONG}, PayloadTooLarge)],
)
def test_a_refused_entry_leaves_the_block_usable(
    databases: Databases, vendor: str, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    with transaction.atomic():
        _insert("1")
        put(connection, "first", key="used")
        with pytest.raises(expected):
            put(connection, "refused", **fields)
        with pytest.raises(expected):
            put_many(connection, billing("fine"), billing("refused", **fields))
        put(connection, "second")
    assert databases.committed(vendor) == Committed(["1"], ["first", "second"])


def test_a_drivers_error_is_raised_inside_the_operation(databases: Databases, vendor: str) -> None:
    expected = (None, "IntegrityError") if vendor == "sqlite" else ("23505", "UniqueViolation")
    with transaction.atomic():
        assert recover(connection) == expected
        put(connection, "after")
    assert databases.committed(vendor) == Committed([], ["after"])


def test_execute_wrappers_of_the_application_see_the_statements(vendor: str) -> None:
    seen: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with transaction.atomic(), connection.execute_wrapper(watch):
        put(connection, "paid")
    assert seen


def test_a_connection_taken_by_its_alias_is_a_connection(databases: Databases, vendor: str) -> None:
    with transaction.atomic():
        put(connections["default"], "paid")
    assert databases.committed(vendor).entries == ["paid"]


def test_another_database_is_refused_by_its_name() -> None:
    from django.db.backends.base.base import BaseDatabaseWrapper  # type: ignore[import-untyped]

    class Elsewhere(BaseDatabaseWrapper):  # type: ignore[misc]
        vendor = "oracle"

        def __init__(self) -> None:
            """Never connects."""

    with pytest.raises(UnsupportedConnection, match="oracle"):
        _ = adapter_for(Elsewhere()).dialect


def _insert(invoice: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("insert into invoice (id) values (%s)", [invoice])


def _writes_then_fails() -> Steps[None]:
    yield Statement("insert into invoice (id) values ('half')", {})
    yield Statement("insert into invoice (id) values ('half')", {})


def _settings(vendor: str, databases: Databases) -> dict[str, Any]:
    if vendor == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": databases.sqlite_file}
    parts = conninfo_to_dict(databases.postgres_url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
    }
