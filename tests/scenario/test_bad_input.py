"""What a user sees for bad input and broken databases: its own typed error, and a store that is as before."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest

from carrick import Outbox
from carrick.errors import (
    CarrickError,
    ChannelConflict,
    DiskFull,
    EntryNotFound,
    InvalidInput,
    InvalidPayload,
    InvalidToken,
    KeyReused,
    PayloadTooLarge,
    SchemaMissing,
    SchemaTooNew,
    StoreReadOnly,
    StoreUnavailable,
    UnknownChannel,
)
from carrick.outbox.sqlite.migrate import migrate as migrate_sqlite
from tests.conftest import emptied
from tests.postgres_server import drop_database, fresh_database, versions
from tests.sqlite_file import engine_file


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, sqlite_path: Path) -> str:
    """A database with the schema."""
    if request.param == "sqlite":
        engine_file(sqlite_path)
        return f"sqlite:///{sqlite_path}"
    return emptied(versions()[0])


@pytest.fixture
def outbox(url: str) -> Iterator[Outbox]:
    with Outbox.connect(url) as outbox:
        outbox.channel("things", max_payload_bytes=1000)
        outbox.channel("lines", mode="ordered")
        yield outbox


def execute(url: str, statement: str) -> list[Any]:
    """Run one statement as an administrator would."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        with connection:
            rows = connection.execute(statement).fetchall()
        connection.close()
        return rows
    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def contents(outbox: Outbox) -> Any:
    """All that the channels say about themselves, apart from how time passes."""
    return [
        (row.channel, row.pending_count, row.claimed_count, row.dead_count, row.backlog_bytes)
        for row in outbox.store.stats()
    ]


def put(outbox: Outbox, **fields: Any) -> Any:
    return outbox.put(**{"channel": "things", "event_type": "e", "payload": {}} | fields)


TEN_MEGABYTES = "x" * 10_000_000

BAD_PUTS: dict[str, tuple[dict[str, Any], type[CarrickError], str]] = {
    "payload that is not JSON": ({"payload": b"{nope"}, InvalidPayload, "payload: not JSON"),
    "payload too large": ({"payload": "x" * 1001}, PayloadTooLarge, "payload: has 1003 bytes"),
    "payload of ten megabytes": ({"payload": TEN_MEGABYTES}, PayloadTooLarge, "payload: has 10000002 bytes"),
    "key of ten megabytes": ({"key": TEN_MEGABYTES}, InvalidInput, "key: has 10000000 characters"),
    "key over 255 characters": ({"key": "k" * 256}, InvalidInput, "key: has 256 characters"),
    "NUL in a name": ({"tenant_id": "a\x00b"}, InvalidInput, "tenant_id: contains a NUL"),
    "lone surrogate in a name": ({"group": "\udfff"}, InvalidInput, "group: contains a lone surrogate"),
    "unknown channel": ({"channel": "nope"}, UnknownChannel, "declared channels .*lines.*things"),
    "key with other content": ({"key": "taken", "payload": 2}, KeyReused, "key 'taken' in channel 'things'"),
}


@pytest.mark.parametrize("case", BAD_PUTS)
def test_a_bad_put_is_refused_by_name_and_changes_nothing(outbox: Outbox, case: str) -> None:
    fields, error, says = BAD_PUTS[case]
    put(outbox, key="taken", payload=1)
    before = contents(outbox)
    with pytest.raises(error, match=says):
        put(outbox, **fields)
    assert contents(outbox) == before


@pytest.mark.parametrize("case", BAD_PUTS)
def test_one_bad_entry_refuses_the_whole_bulk(outbox: Outbox, case: str) -> None:
    fields, error, says = BAD_PUTS[case]
    put(outbox, key="taken", payload=1)
    before = contents(outbox)
    good = {"channel": "things", "event_type": "e", "payload": 1}
    with pytest.raises(error, match=says):
        outbox.put_many([good, good | fields, good])
    assert contents(outbox) == before


BAD_CALLS: dict[str, tuple[Callable[[Outbox], Any], type[CarrickError], str]] = {
    "negative rows": (lambda outbox: outbox.claim("things", max_rows=-1), InvalidInput, "max_rows: -1"),
    "zero rows": (lambda outbox: outbox.claim("things", max_rows=0), InvalidInput, "max_rows: 0"),
    "absurd rows": (lambda outbox: outbox.claim("things", max_rows=10**12), InvalidInput, "max_rows: "),
    "fraction of a row": (lambda outbox: outbox.claim("things", max_rows=1.5), InvalidInput, "max_rows: 1.5"),
    "negative bytes": (lambda outbox: outbox.claim("things", max_bytes=-1), InvalidInput, "max_bytes: -1"),
    "lease of no time": (lambda outbox: outbox.claim("things", lease_seconds=0), InvalidInput, "lease_seconds: 0"),
    "lease of a year": (
        lambda outbox: outbox.claim("things", lease_seconds=31_000_000),
        InvalidInput,
        "lease_seconds: ",
    ),
    "claim of an unknown channel": (lambda outbox: outbox.claim("nope"), UnknownChannel, "things"),
    "channel with NUL": (lambda outbox: outbox.claim("a\x00"), InvalidInput, "NUL|unknown channel"),
    "owner without a name": (lambda outbox: outbox.store.claim("things", ""), InvalidInput, "owner: "),
    "token that is no UUID": (
        lambda outbox: outbox.finish_all(cast(Any, "not-a-token")),
        InvalidToken,
        "token: 'not-a-token' is not a UUID",
    ),
    "token for renew": (lambda outbox: outbox.renew(cast(Any, "x"), 5), InvalidToken, "is not a UUID"),
    "claim under a bad token": (lambda outbox: outbox.claim("things", token="x"), InvalidToken, "is not a UUID"),
    "renew for no time": (lambda outbox: outbox.renew(uuid4(), 0), InvalidInput, "lease_seconds: 0|seconds: 0"),
    "gate of an unknown scope": (
        lambda outbox: outbox.store.close_gate("things", "user:x", 1, ""),
        InvalidInput,
        "scope: 'user:x'",
    ),
    "gate for a negative time": (
        lambda outbox: outbox.store.close_gate("things", "*", -1, ""),
        InvalidInput,
        "seconds: -1",
    ),
    "gate of an unknown channel": (lambda outbox: outbox.store.open_gate("nope", "*"), UnknownChannel, "things"),
    "redrive of an unknown channel": (lambda outbox: outbox.store.redrive("nope"), UnknownChannel, "things"),
    "redrive of no rows": (lambda outbox: outbox.store.redrive("things", max_rows=0), InvalidInput, "max_rows: 0"),
    "redrive spread backwards": (
        lambda outbox: outbox.store.redrive("things", spread_seconds=-1),
        InvalidInput,
        "spread_seconds: -1",
    ),
    "prune of an unknown channel": (lambda outbox: outbox.store.prune("nope"), UnknownChannel, "things"),
    "explain of nothing": (lambda outbox: outbox.explain(uuid4()), EntryNotFound, "no entry"),
    "explain of no id": (lambda outbox: outbox.explain("42"), InvalidToken, "is not a UUID"),
    "unknown mode": (
        lambda outbox: outbox.channel("new", mode="fast"),
        InvalidInput,
        "mode: .*'fast'; accepted: stream, ordered, coalesce",
    ),
    "unknown option": (
        lambda outbox: outbox.channel("new", speed=5),
        InvalidInput,
        "options: .*speed.*accepted: mode, ",
    ),
    "option of a wrong type": (lambda outbox: outbox.channel("new", batch_rows="many"), InvalidInput, "batch_rows: "),
    "option out of range": (
        lambda outbox: outbox.channel("new", batch_rows=0),
        InvalidInput,
        "^batch_rows: 0 is out of range",
    ),
    "another mode while entries wait": (
        lambda outbox: outbox.channel("things", mode="ordered"),
        ChannelConflict,
        "still has entries",
    ),
    "not a connection": (
        lambda outbox: outbox.put(object(), channel="things", event_type="e", payload=1),
        InvalidInput,
        "connection: ",
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_bad_call_is_refused_by_name_and_changes_nothing(outbox: Outbox, case: str) -> None:
    call, error, says = BAD_CALLS[case]
    put(outbox)
    before = contents(outbox)
    with pytest.raises(error, match=says):
        call(outbox)
    assert contents(outbox) == before


def test_a_postgres_connection_is_refused_by_an_sqlite_outbox(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    engine_file(path)
    dsn = emptied(versions()[0])
    with Outbox.connect(f"sqlite:///{path}") as outbox, psycopg.connect(dsn) as connection:
        outbox.channel("things")
        with pytest.raises(InvalidInput, match="is a postgresql connection; accepted: .* sqlite database"):
            outbox.put(connection, channel="things", event_type="e", payload=1)


@pytest.mark.parametrize(
    "bad", ["", "mysql://x/y", "sqlite://", "sqlite:///", "sqlite:///:memory:", "postgresql", "sqlite:///a?b"]
)
def test_an_unsupported_database_url_names_what_is_accepted(bad: str) -> None:
    with pytest.raises(InvalidInput, match="database URL: .*accepted: sqlite:///FILE"):
        Outbox.connect(bad)


def test_a_password_in_a_refused_url_is_not_repeated() -> None:
    with pytest.raises(InvalidInput) as refused:
        Outbox.connect("mysql://ann:secret@db/x")
    assert "secret" not in str(refused.value)


def test_an_empty_database_says_to_migrate(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).close()
    dsn = fresh_database(versions()[0], migrated=False)
    for url in (f"sqlite:///{empty}", dsn):
        with pytest.raises(SchemaMissing, match="run: carrick migrate"):
            Outbox.connect(url)
    drop_database(versions()[0], dsn)


def test_a_missing_sqlite_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(CarrickError):
        Outbox.connect(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "table"), [("sqlite", "carrick_migration"), ("postgres", "carrick.migration")])
def test_a_newer_schema_says_to_upgrade(
    kind: str, table: str, sqlite_path: Path, request: pytest.FixtureRequest
) -> None:
    engine_file(sqlite_path)
    url = f"sqlite:///{sqlite_path}" if kind == "sqlite" else request.getfixturevalue("newest_postgres_dsn")
    execute(url, f"insert into {table} (part, number, name) values ('engine', 9999, 'future')")
    with pytest.raises(SchemaTooNew, match="upgrade Carrick"):
        Outbox.connect(url)


def test_a_read_only_postgres_says_so_and_keeps_its_entries(newest_postgres_dsn: str) -> None:
    with Outbox.connect(newest_postgres_dsn) as outbox:
        outbox.channel("things")
        put(outbox)
        before = contents(outbox)
    name = execute(newest_postgres_dsn, "select current_database()")[0][0]
    execute(newest_postgres_dsn, f'alter database "{name}" set default_transaction_read_only = on')
    with Outbox.connect(newest_postgres_dsn) as reader:
        with pytest.raises(StoreReadOnly, match="refuses to write"):
            put(reader)
        with pytest.raises(StoreReadOnly):
            reader.claim("things")
        assert contents(reader) == before


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="does not answer"):
        Outbox.connect("postgresql://nobody@127.0.0.1:9/none")


def test_a_full_postgres_disk_is_told_and_nothing_is_half_written(newest_postgres_dsn: str) -> None:
    with Outbox.connect(newest_postgres_dsn) as outbox:
        outbox.channel("things")
        put(outbox)
        before = contents(outbox)
        execute(
            newest_postgres_dsn,
            "create function full_disk() returns trigger language plpgsql as "
            "$$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;"
            "create trigger full_disk before insert on carrick.work for each row execute function full_disk()",
        )
        with pytest.raises(DiskFull, match="no room left"):
            put(outbox)
        with pytest.raises(DiskFull):
            outbox.put_many([{"channel": "things", "event_type": "e", "payload": 1}])
        assert contents(outbox) == before
        execute(newest_postgres_dsn, "drop trigger full_disk on carrick.work")
        put(outbox)
        assert len(outbox.claim("things")) == 2


def test_a_read_only_sqlite_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    migrate_sqlite(path)
    uri = f"file:{path}?mode=ro"
    with Outbox.connect(f"sqlite:///{path}") as outbox:
        outbox.channel("things")
        reader = sqlite3.connect(uri, uri=True)
        with pytest.raises(StoreReadOnly):
            outbox.put(reader, channel="things", event_type="e", payload=1)
        reader.close()
        assert contents(outbox)[0][1] == 0
    assert stat.S_ISREG(path.stat().st_mode)
