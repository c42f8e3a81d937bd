"""What goes wrong with the file comes out as Carrick's own error, and the store is as before."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from carrick.errors import DiskFull, SchemaMissing, StoreBusy, StoreError, StoreReadOnly, StoreUnavailable
from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.failures import carrick_error, sqlite_error
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing.samples import claim, ids, put, put_run, sample

NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write everything: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def pragma(store: SqliteStore, name: str, value: int) -> Iterator[None]:
    """A setting of the writing connection, for a while."""
    with store._database.write() as connection:
        (before,) = connection.execute(f"pragma {name}").fetchone()
    assert store._database._writer is not None
    store._database._writer.execute(f"pragma {name} = {value}")
    yield
    store._database._writer.execute(f"pragma {name} = {before}")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_file_without_the_right_to_write_is_read_only(open_folder: Path) -> None:
    path = open_folder / "outbox.db"
    migrate(path)
    with closing(SqliteStore(path)) as store:
        store.declare(Channel(name="things"))
        put(store)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with unprivileged(), closing(SqliteStore(path)) as store:
        with pytest.raises(StoreReadOnly):
            store.put(sample())
        with pytest.raises(StoreReadOnly):
            store.declare(Channel(name="others"))
    open_folder.chmod(0o755)
    path.chmod(0o644)
    with closing(SqliteStore(path)) as store:
        assert len(claim(store)) == 1


def test_a_connection_that_may_only_read_is_read_only(store: SqliteStore) -> None:
    with pragma(store, "query_only", 1), pytest.raises(StoreReadOnly):
        store.put(sample())
    assert ids(claim(store)) == []
    put(store)


def test_a_full_disk_is_said_so_and_the_store_goes_on_when_there_is_room(store: SqliteStore) -> None:
    kept = put_run(store, 3)
    with pragma(store, "max_page_count", 1):
        with pytest.raises(DiskFull):
            store.put_many([sample(payload=b'"' + b"x" * 100_000 + b'"')] * 10)
        with pytest.raises(DiskFull):
            store.put(sample(payload=b'"' + b"x" * 500_000 + b'"'))
    assert ids(claim(store)) == kept
    put(store)


def test_a_writer_that_holds_the_file_too_long_makes_it_busy(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other, pragma(store, "busy_timeout", 0):
        other.execute("begin immediate")
        with pytest.raises(StoreBusy):
            store.put(sample())
        with pytest.raises(StoreBusy):
            claim(store)
        other.execute("rollback")
        put(store)
    assert len(claim(store)) == 1


def test_reading_waits_for_no_writer(store: SqliteStore, path: Path) -> None:
    put(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        assert store.stats()[0].pending_count == 1


def test_a_file_without_the_schema_is_missing_it(sqlite_path: Path) -> None:
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.execute("create table invoice (number int)")
    store = SqliteStore(sqlite_path)
    for operation in (lambda: store.put(sample()), lambda: claim(store), store.stats, store.now):
        with pytest.raises(SchemaMissing):
            operation()
    migrate(sqlite_path)
    store.declare(Channel(name="things"))
    put(store)


def test_a_file_that_is_no_database_is_said_so(sqlite_path: Path) -> None:
    sqlite_path.write_bytes(b"no database at all " * 1000)
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteStore(sqlite_path).stats()


def test_a_closed_store_is_unavailable(path: Path) -> None:
    store = SqliteStore(path)
    store.now()
    store.close()
    for operation in (store.now, store.stats, lambda: store.put(sample())):
        with pytest.raises(StoreUnavailable):
            operation()


def test_an_error_whose_meaning_is_unknown_stays_as_it_is() -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.OperationalError) as caught:
        connection.execute("selct 1")
    assert carrick_error(caught.value) is None


def test_an_error_is_found_inside_that_of_another_library() -> None:
    inner = sqlite3.OperationalError("database is locked")
    wrapped = RuntimeError("the library says")
    wrapped.__cause__ = inner
    assert sqlite_error(wrapped) is inner
    assert sqlite_error(RuntimeError("something else")) is None
