"""Puts in the transaction of a sqlite3 connection, in each of its transaction modes."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrick.errors import CarrickError, KeyReused, PayloadTooLarge, StoreBusy, UnknownChannel
from carrick.outbox.statement import Copy, Statement, Steps
from tests.unit.outbox.adapters.shop import TOO_LONG, Committed, billing, in_sqlite, put, put_many, recover, run

BEGUN_LATE: list[dict[str, Any]] = [{"isolation_level": level} for level in ("", "DEFERRED", "IMMEDIATE", "EXCLUSIVE")]
IMPLICIT = [*BEGUN_LATE]
AUTOCOMMIT: list[dict[str, Any]] = [{"isolation_level": None}]
if sys.version_info >= (3, 12):
    IMPLICIT.append({"autocommit": False})
    AUTOCOMMIT.append({"autocommit": True})

implicit = pytest.mark.parametrize("options", IMPLICIT, ids=str)
autocommit = pytest.mark.parametrize("options", AUTOCOMMIT, ids=str)


@pytest.fixture
def connection(sqlite_file: Path, options: dict[str, Any]) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(sqlite_file, **options)) as connection:
        yield connection


@implicit
def test_an_entry_is_there_when_the_transaction_commits(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    connection.execute("insert into invoice values ('1')")
    assert put(connection, "paid", key="inv-1").created
    assert not put(connection, "paid", key="inv-1").created
    put_many(connection, billing("a"), billing("b", key="k"))
    connection.commit()
    assert in_sqlite(sqlite_file) == Committed(["1"], ["a", "b", "paid"])


@implicit
def test_no_entry_is_there_when_the_transaction_rolls_back(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    connection.execute("insert into invoice values ('1')")
    put(connection, "paid")
    put_many(connection, billing("a"), billing("b", key="k"))
    connection.rollback()
    assert in_sqlite(sqlite_file) == Committed([], [])


@implicit
def test_a_put_that_comes_first_begins_the_transaction(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    put(connection, "gone")
    connection.execute("insert into invoice values ('gone')")
    connection.rollback()
    put_many(connection, billing("a"), billing("b", key="k"))
    connection.execute("insert into invoice values ('1')")
    connection.commit()
    assert in_sqlite(sqlite_file) == Committed(["1"], ["a", "b"])


@pytest.mark.parametrize("options", BEGUN_LATE, ids=str)
def test_a_failed_put_that_came_first_leaves_no_lock_behind(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    with pytest.raises(UnknownChannel):
        put(connection, "refused", channel="nowhere")
    assert not connection.in_transaction
    with closing(sqlite3.connect(sqlite_file, timeout=0)) as other, other:
        other.execute("insert into invoice values ('other')")


@implicit
def test_the_connection_as_a_context_manager_commits_entries(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    with connection:
        put(connection, "paid")
    with pytest.raises(sqlite3.IntegrityError), connection:
        _puts_then_fails(connection)
    connection.close()
    assert in_sqlite(sqlite_file) == Committed([], ["paid"])


@autocommit
def test_in_autocommit_mode_a_put_is_a_transaction_of_its_own(
    sqlite_file: Path, connection: sqlite3.Connection
) -> None:
    put(connection, "paid")
    assert not connection.in_transaction
    put_many(connection, billing("a"), billing("b", key="k"))
    assert in_sqlite(sqlite_file) == Committed([], ["a", "b", "paid"])


@autocommit
def test_in_autocommit_mode_a_failed_operation_leaves_nothing(
    sqlite_file: Path, connection: sqlite3.Connection
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        run(connection, _writes_then_fails())
    assert not connection.in_transaction
    assert in_sqlite(sqlite_file) == Committed([], [])


@autocommit
def test_in_autocommit_mode_a_transaction_begun_by_hand_is_joined(
    sqlite_file: Path, connection: sqlite3.Connection
) -> None:
    connection.execute("begin")
    put(connection, "gone")
    connection.execute("rollback")
    connection.execute("begin")
    connection.execute("insert into invoice values ('1')")
    put(connection, "paid")
    assert in_sqlite(sqlite_file) == Committed([], [])
    connection.execute("commit")
    assert in_sqlite(sqlite_file) == Committed(["1"], ["paid"])


@pytest.mark.parametrize("options", [*IMPLICIT, *AUTOCOMMIT], ids=str)
def test_a_savepoint_that_rolls_back_takes_only_its_entries(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    if not connection.in_transaction:
        connection.execute("begin")
    put(connection, "outer")
    connection.execute("savepoint inner")
    connection.execute("insert into invoice values ('inner')")
    put(connection, "inner")
    put_many(connection, billing("inner a"), billing("inner b", key="k"))
    connection.execute("rollback to inner")
    connection.execute("insert into invoice values ('outer')")
    connection.commit() if getattr(connection, "autocommit", None) is not True else connection.execute("commit")
    assert in_sqlite(sqlite_file) == Committed(["outer"], ["outer"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"key": "used"}, KeyReused), ({"channel": "nowhere"}, UnknownChannel), ({"payload": TOO_LONG}, PayloadTooLarge)],
)
@implicit
def test_a_refused_entry_leaves_the_transaction_usable(
    sqlite_file: Path, connection: sqlite3.Connection, fields: dict[str, Any], expected: type[CarrickError]
) -> None:
    connection.execute("insert into invoice values ('1')")
    put(connection, "first", key="used")
    with pytest.raises(expected):
        put(connection, "refused", **fields)
    with pytest.raises(expected):
        put_many(connection, billing("fine"), billing("refused", **fields))
    put(connection, "second")
    connection.commit()
    assert in_sqlite(sqlite_file) == Committed(["1"], ["first", "second"])


@pytest.mark.parametrize("options", [{}])
def test_a_drivers_error_is_raised_inside_the_operation(sqlite_file: Path, connection: sqlite3.Connection) -> None:
    assert recover(connection) == (None, "IntegrityError")
    put(connection, "after")
    connection.commit()
    assert in_sqlite(sqlite_file) == Committed([], ["after"])


@pytest.mark.parametrize("options", [{}])
@pytest.mark.parametrize("row_factory", [sqlite3.Row, lambda cursor, row: {"row": row}])
def test_the_callers_row_and_text_factories_do_not_matter(
    sqlite_file: Path, connection: sqlite3.Connection, row_factory: Any
) -> None:
    connection.row_factory = row_factory
    connection.text_factory = bytes
    assert put(connection, "paid", key="k").created
    assert not put(connection, "paid", key="k").created
    put_many(connection, billing("a"), billing("b", key="kb"))
    connection.commit()
    assert (connection.row_factory, connection.text_factory) == (row_factory, bytes)
    assert in_sqlite(sqlite_file).entries == ["a", "b", "paid"]


@pytest.mark.parametrize("options", [{"timeout": 0}])
def test_another_writer_s_lock_means_the_store_is_busy_and_nothing_is_left_open(
    sqlite_file: Path, connection: sqlite3.Connection
) -> None:
    with closing(sqlite3.connect(sqlite_file)) as other:
        other.execute("insert into invoice values ('other')")
        with pytest.raises(StoreBusy):
            put(connection, "paid")
        assert not connection.in_transaction


@pytest.mark.parametrize("options", [{}])
def test_copy_is_refused(connection: sqlite3.Connection) -> None:
    def copying() -> Steps[None]:
        yield Copy("carrick_record", ("id",), [])

    with pytest.raises(TypeError, match="can_bulk"):
        run(connection, copying())


def _puts_then_fails(connection: sqlite3.Connection) -> None:
    put(connection, "unpaid")
    connection.execute("insert into invoice values ('twice'), ('twice')")


def _writes_then_fails() -> Steps[None]:
    yield Statement("insert into invoice (id) values ('half')", {})
    yield Statement("insert into invoice (id) values ('half')", {})
