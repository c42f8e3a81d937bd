"""Puts on the caller's own connection, and plain INSERTs of producers in other languages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import NewEntry, Put, State
from carrick.errors import BacklogFull, DiskFull, KeyReused, PayloadTooLarge, UnknownChannel
from carrick.outbox.channel import Channel, Mode, OnFull
from carrick.outbox.sqlite import bulk
from carrick.outbox.sqlite.database import run
from carrick.outbox.sqlite.putting import put_many_steps, put_steps
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing.samples import claim, declare, ids, sample

PutMany = Callable[[sqlite3.Connection, Sequence[NewEntry]], Sequence[Put]]
VARIED = [
    sample("lines", group_key="g", tenant_id="t", priority=3),
    sample("lines", headers=b'{"a":"1"}', principal="p", traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01"),
    sample("things", delay_seconds=60, max_wait_seconds=30, payload=b'"\\u0000 \xc3\xa9"'),
    sample("things", delay_seconds=1.5, occurred_at=datetime(2020, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)),
]
AS_PUT = """
select r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.payload, r.headers, r.priority, r.traceparent,
       r.occurred_at, r.delay_seconds, r.max_wait_seconds, w.id = r.id, w.channel, w.tenant_id, w.principal,
       w.group_key, w.size, w.priority, w.due - r.created_at, w.rank - r.created_at,
       w.max_wait_at - r.created_at, w.delayed, w.loose
  from carrick_record as r left join carrick_work as w on w.seq = r.seq order by r.seq
"""
"""What is stored of each entry, but for what differs from put to put."""
INSERT = "insert into carrick_record (channel, event_type, payload) values (?, 'thing.happened', ?)"


@pytest.fixture
def caller(store: SqliteStore, path: Path) -> Iterator[sqlite3.Connection]:
    """The connection of an application, outside a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("create table invoice (number int)")
        yield connection


def one_by_one(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> Sequence[Put]:
    """Each entry by a put of its own."""
    return [run(connection, put_steps(entry)) for entry in entries]


def values_bound(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> Sequence[Put]:
    """A bulk put over SQLite's own driver."""
    return run(connection, put_many_steps(entries, can_bulk=True))


def one_list(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> Sequence[Put]:
    """A bulk put over other drivers."""
    return run(connection, put_many_steps(entries, can_bulk=False))


IN_BULK = pytest.mark.parametrize("put_many", [values_bound, one_list])


def entries_of(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("select channel, state, payload from carrick_entry order by seq").fetchall()


class TestCaller:
    """Puts through steps, as the adapters drive them."""

    @pytest.mark.parametrize("put_all", [one_by_one, values_bound, one_list])
    def test_a_rollback_of_the_caller_takes_the_entries_away(
        self, caller: sqlite3.Connection, put_all: PutMany
    ) -> None:
        caller.execute("begin")
        put_all(caller, [sample(key="a"), sample()])
        caller.execute("rollback")
        assert entries_of(caller) == []

    @pytest.mark.parametrize(
        ("entry", "error"),
        [
            (sample("nowhere"), UnknownChannel),
            (sample("small", payload=b'"0123456789"'), PayloadTooLarge),
            (sample("full", payload=b"12345"), BacklogFull),
            (sample(key="k", payload=b"2"), KeyReused),
        ],
        ids=["unknown channel", "too large", "full", "key reused"],
    )
    @pytest.mark.parametrize("put_all", [one_by_one, values_bound, one_list])
    def test_a_refused_put_writes_nothing_and_leaves_the_transaction_usable(
        self, store: SqliteStore, caller: sqlite3.Connection, entry: NewEntry, error: type[Exception], put_all: PutMany
    ) -> None:
        store.declare(Channel(name="small", max_payload_bytes=10))
        store.declare(Channel(name="full", max_backlog_bytes=4))
        store.put(sample(key="k"))
        caller.execute("begin")
        caller.execute("insert into invoice values (1)")
        with pytest.raises(error):
            put_all(caller, [entry] if put_all is one_by_one else [sample(key="l"), entry, sample()])
        run(caller, put_steps(sample(payload=b'"kept"')))
        caller.execute("commit")
        assert [row[2] for row in entries_of(caller)] == ['{"n":1}', '"kept"']
        assert caller.execute("select number from invoice").fetchall() == [(1,)]

    @IN_BULK
    def test_put_many_is_all_or_nothing_in_autocommit_mode_too(
        self, caller: sqlite3.Connection, put_many: PutMany
    ) -> None:
        with pytest.raises(KeyReused):
            put_many(caller, [sample(key="k", payload=b"1"), sample(key="k", payload=b"2")])
        assert entries_of(caller) == []
        assert not caller.in_transaction
        put_many(caller, [sample(key="k", payload=b"1"), sample(key="k", payload=b"1")])
        assert len(entries_of(caller)) == 1
        assert not caller.in_transaction

    @IN_BULK
    def test_a_bulk_put_of_several_statements_is_one(
        self, caller: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, put_many: PutMany
    ) -> None:
        monkeypatch.setattr(bulk, "CHUNK_ROWS", 3)
        caller.execute("begin")
        answers = put_many(caller, [sample(payload=b"%d" % n) for n in range(10)])
        assert [row[2] for row in entries_of(caller)] == [str(n) for n in range(10)]
        assert len({answer.id for answer in answers}) == 10

    @IN_BULK
    def test_a_full_disk_of_the_caller_is_said_so(self, caller: sqlite3.Connection, put_many: PutMany) -> None:
        caller.execute("pragma max_page_count = 1")
        with pytest.raises(DiskFull):
            put_many(caller, [sample(payload=b'"' + b"x" * 100_000 + b'"')] * 10)
        assert entries_of(caller) == []

    def test_an_error_of_the_driver_undoes_a_bulk_put(
        self, caller: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk, "CHUNK_ROWS", 1)
        caller.execute("begin")
        caller.execute("insert into invoice values (1)")
        steps = put_many_steps([sample(), sample()], can_bulk=False)
        step = next(steps)
        while "json_each(:entries)" not in getattr(step, "sql", "") or not entries_of(caller):
            step = steps.send(caller.execute(*step).fetchall())
        step = steps.throw(RuntimeError("the connection of the caller says no"))
        caller.execute(*step)
        step = steps.send([])
        caller.execute(*step)
        with pytest.raises(RuntimeError, match="says no"):
            steps.send([])
        caller.execute("commit")
        assert entries_of(caller) == []
        assert caller.execute("select number from invoice").fetchall() == [(1,)]

    @IN_BULK
    def test_a_bulk_put_answers_in_its_order_whichever_keys_are_known(
        self, caller: sqlite3.Connection, put_many: PutMany
    ) -> None:
        known = run(caller, put_steps(sample(key="b", payload=b"1")))
        keys = ["a", "b", None, "a", "c"]
        answers = put_many(caller, [sample(key=key, payload=b"1") for key in keys])
        assert [answer.created for answer in answers] == [True, False, True, False, True]
        assert answers[1].id == known.id
        assert answers[3].id == answers[0].id

    @pytest.mark.parametrize("put_all", [one_by_one, values_bound, one_list])
    def test_an_id_that_comes_twice_with_other_content_is_refused(
        self, caller: sqlite3.Connection, put_all: PutMany
    ) -> None:
        given = UUID("018f2b3c-0000-7000-8000-000000000001")
        twice = [sample(id=given, key=str(given), payload=b"%d" % n) for n in (1, 2)]
        caller.execute("begin")
        with pytest.raises(KeyReused):
            put_all(caller, twice)
        caller.execute("rollback")
        first, again = put_all(caller, [twice[0], twice[0]])
        assert (first.created, again.created) == (True, False)
        assert first.id == again.id == given

    @IN_BULK
    def test_a_bulk_put_knows_keys_of_entries_that_are_gone(
        self, store: SqliteStore, caller: sqlite3.Connection, put_many: PutMany
    ) -> None:
        declare(store, "remembering", remember_keys_days=30, retention_days=0)
        (gone,) = put_many(caller, [sample("remembering", key="k")])
        store.finish_all(claim(store, "remembering").token)
        store.prune("remembering")
        assert entries_of(caller) == []
        again, new = put_many(caller, [sample("remembering", key="k"), sample("remembering", key="l")])
        assert (again.id, again.created, new.created) == (gone.id, False, True)

    @IN_BULK
    def test_entries_put_in_bulk_are_those_put_one_by_one(
        self, store: SqliteStore, caller: sqlite3.Connection, put_many: PutMany
    ) -> None:
        declare(store, "lines", Mode.ORDERED)
        entries = list(islice(cycle([*VARIED, *[sample()] * 40]), 733))  # statements with and without values alike
        caller.execute("begin")
        one_by_one(caller, entries)
        alone = caller.execute(AS_PUT).fetchall()
        caller.execute("rollback")
        caller.execute("begin")
        put_many(caller, entries)
        assert caller.execute(AS_PUT).fetchall() == alone


class TestPlainInsert:
    """One INSERT of any client is a put."""

    def test_an_inserted_record_waits_and_is_claimed(self, store: SqliteStore, caller: sqlite3.Connection) -> None:
        caller.execute(INSERT, ("things", '{"a": 1}'))
        (entry,) = claim(store)
        assert (entry.payload, entry.event_type, entry.tenant_id) == (b'{"a": 1}', "thing.happened", "")
        assert isinstance(entry.id, UUID)
        assert entry.id.version == 7
        assert abs((entry.created_at - store.now()).total_seconds()) < 60

    def test_a_rollback_takes_an_inserted_record_away(self, store: SqliteStore, caller: sqlite3.Connection) -> None:
        caller.execute("begin")
        caller.execute(INSERT, ("things", "1"))
        caller.execute("rollback")
        assert not claim(store)

    @pytest.mark.parametrize(
        ("channel", "payload", "said"),
        [
            ("nowhere", "1", "carrick: unknown channel"),
            ("things", "{", "json_valid"),
            ("things", None, "NOT NULL"),
            ("things", b"1", "cannot store BLOB"),
            ("small", '"0123456789"', "carrick: payload is larger"),
            ("full", "12345", "carrick: channel is full"),
        ],
    )
    def test_what_cannot_be_taken_is_refused_with_a_message(
        self, store: SqliteStore, caller: sqlite3.Connection, channel: str, payload: object, said: str
    ) -> None:
        store.declare(Channel(name="small", max_payload_bytes=10))
        store.declare(Channel(name="full", max_backlog_bytes=4))
        caller.execute("begin")
        caller.execute(INSERT, ("things", "1"))
        with pytest.raises(sqlite3.IntegrityError, match=said):
            caller.execute(INSERT, (channel, payload))
        caller.execute("commit")
        assert len(entries_of(caller)) == 1

    def test_a_bounded_channel_counts_and_evicts_for_inserted_records_too(
        self, store: SqliteStore, caller: sqlite3.Connection
    ) -> None:
        store.declare(Channel(name="small", max_backlog_bytes=3, on_full=OnFull.EVICT))
        for payload in "12345":
            caller.execute(INSERT, ("small", payload))
        assert [row[2] for row in entries_of(caller) if row[1] == "pending"] == ["1", "2", "5"]
        assert [entry.payload for entry in claim(store, "small")] == [b"1", b"2", b"5"]

    def test_a_time_in_the_future_does_not_hold_an_entry_back(
        self, store: SqliteStore, caller: sqlite3.Connection
    ) -> None:
        caller.execute(
            "insert into carrick_record (channel, event_type, payload, created_at) values ('things', 'e', '1', ?)",
            (4_000_000_000_000_000,),
        )
        assert len(claim(store)) == 1

    def test_a_channel_inserted_by_hand_is_bounded_at_once(self, caller: sqlite3.Connection) -> None:
        caller.execute("insert into carrick_channel (name, max_backlog_bytes) values ('tight', 2)")
        caller.execute(INSERT, ("tight", "12"))
        with pytest.raises(sqlite3.IntegrityError, match="full"):
            caller.execute(INSERT, ("tight", "3"))


def test_eviction_of_a_thousand_small_entries_for_a_large_one(store: SqliteStore) -> None:
    store.declare(Channel(name="small", max_backlog_bytes=1000, on_full=OnFull.EVICT))
    store.put_many([sample("small", payload=b"1")] * 1000)
    large = store.put(sample("small", payload=b'"' + b"x" * 900 + b'"'))
    assert large.state is State.PENDING
    assert store.stats()[0].pending_count == 1000 - 902 + 1
    assert large.id in ids(claim(store, "small", max_rows=1000))
