"""Batches that come together: one transaction where all is well, and each for itself where something is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from carrick import wiring
from carrick.errors import BacklogFull, DiskFull, StoreUnavailable
from carrick.ingest.problems import Replayed
from carrick.ingest.sqlite.store import SqliteInbox
from carrick.ingest.store import Inbox, Offer, Outcome, Taken
from carrick.outbox.channel import Channel, Mode
from carrick.testing.interleaving import Session
from tests.batches import checked, event, numbered
from tests.contract.inboxes import Place
from tests.postgres_server import end_sessions
from tests.sqlite_file import whole_file


def offer(*events: Any, signature: bytes | None = None, tenant_id: str = "farm-1", **fields: Any) -> Offer:
    own = [{**one, "tenant_id": tenant_id} for one in events]
    return Offer(checked(*own, tenant_id=tenant_id, **fields), signature)


def counts(outcomes: Sequence[Outcome]) -> list[Any]:
    """How many were accepted and duplicated, or the kind of error."""
    return [
        (outcome.accepted, outcome.duplicated) if isinstance(outcome, Taken) else type(outcome) for outcome in outcomes
    ]


def test_new_events_of_several_tenants_and_gateways_are_stored_each_with_its_own(place: Place, inbox: Inbox) -> None:
    outcomes = inbox.take_all(
        [
            offer(event("a", device_id="d"), event("b"), tenant_id="y", edge_id="gate-1"),
            offer(event("a"), tenant_id="x", edge_id=None),
            offer(event("c", trace_id="t"), tenant_id="y", edge_id="gate-2"),
        ]
    )
    assert counts(outcomes) == [(2, 0), (1, 0), (1, 0)]
    assert sorted(place.look("select tenant_id, event_id, edge_id, trace_id, extra is null from {inbox}")) == [
        ("x", "a", None, None, True),
        ("y", "a", "gate-1", None, False),
        ("y", "b", "gate-1", None, True),
        ("y", "c", "gate-2", "t", True),
    ]


def test_more_events_than_one_statement_takes_are_stored_each_with_its_own(place: Place, inbox: Inbox) -> None:
    sizes = [1000, 1000, 651]
    batches = [numbered(count, prefix, trace_id="t", device_id="d") for count, prefix in zip(sizes, "abc", strict=True)]
    assert counts(inbox.take_all([offer(*events) for events in batches])) == [(count, 0) for count in sizes]
    stored = place.look("select event_id, trace_id from {inbox} where extra is not null")
    assert sorted(stored) == sorted((one["event_id"], "t") for events in batches for one in events)
    assert place.look("select count(*) from {intake}") == [(1,)]


def test_they_came_at_one_moment_and_are_forgotten_tenant_by_tenant(place: Place, inbox: Inbox) -> None:
    plain, traced = [event("a"), event("d")], [event("b", trace_id="t"), event("e", device_id="d")]
    inbox.take_all(
        [offer(*plain), offer(event("a"), tenant_id="x"), offer(*traced), offer(event("c"), edge_id="gate-2")]
    )
    assert [seen.event_id for seen in inbox.recent("farm-1", 4)] == ["e", "d", "c", "b"]
    assert [seen.edge_id for seen in inbox.recent("farm-1", 9)] == ["gate-7", "gate-7", "gate-2", "gate-7", "gate-7"]
    assert [seen.event_id for seen in inbox.recent("x", 9)] == ["a"]
    place.clock.shift(2 * 86_400)
    assert [inbox.prune(1, max_rows=4) for _ in range(3)] == [4, 2, 0]
    assert place.count() == 0


def test_they_are_relayed_in_the_order_of_each_tenants_batches(place: Place, inbox: Inbox) -> None:
    inbox.take_all(
        [
            offer(*reversed(numbered(3, "z")), tenant_id="y"),
            offer(*numbered(2, "m"), tenant_id="x"),
            offer(*numbered(2, "a"), tenant_id="y"),
        ]
    )
    relayed = place.relayed().entries
    keys = {tenant: [entry.key for entry in relayed if entry.tenant_id == tenant] for tenant in ("x", "y")}
    assert keys == {"x": ["m-0", "m-1"], "y": ["z-2", "z-1", "z-0", "a-0", "a-1"]}
    assert {(entry.headers or {}).get("edge_id") for entry in relayed} == {"gate-7"}


def test_without_a_channel_they_are_stored_all_the_same(place: Place) -> None:
    with closing(place.inbox()) as inbox:
        assert counts(inbox.take_all([offer(event("a")), offer(event("b"))])) == [(1, 0), (1, 0)]
    assert place.count() == 2


def test_events_that_are_known_are_duplicates_of_their_batch_alone(place: Place, inbox: Inbox) -> None:
    inbox.take_all([offer(event("a"))])
    outcomes = inbox.take_all([offer(event("b")), offer(event("a"), event("c")), offer(event("d"))])
    assert counts(outcomes) == [(1, 0), (1, 1), (1, 0)]
    assert sorted(entry.key or "" for entry in place.relayed()) == ["a", "b", "c", "d"]


def test_an_event_that_two_of_them_bring_is_stored_as_the_first_has_it(place: Place, inbox: Inbox) -> None:
    outcomes = inbox.take_all([offer(event("a", payload=1)), offer(event("a", payload=2), event("b"))])
    assert counts(outcomes) == [(1, 0), (1, 1)]
    assert [entry.payload for entry in place.relayed() if entry.key == "a"] == [b"1"]


def test_one_that_names_an_event_twice_counts_it(inbox: Inbox) -> None:
    assert counts(inbox.take_all([offer(event("a"), event("a")), offer(event("b"))])) == [(1, 1), (1, 0)]


def test_a_replay_among_them_is_refused_alone(place: Place, inbox: Inbox) -> None:
    assert counts(inbox.take_all([offer(event("a"), signature=b"1"), offer(event("b"), signature=b"2")])) == [
        (1, 0),
        (1, 0),
    ]
    outcomes = inbox.take_all([offer(event("c"), signature=b"3"), offer(event("d"), signature=b"1"), offer(event("e"))])
    assert counts(outcomes) == [(1, 0), Replayed, (1, 0)]
    assert counts(inbox.take_all([offer(event("f"), signature=b"3"), offer(event("g"))])) == [Replayed, (1, 0)]
    assert place.count() == 5


def test_the_same_request_twice_at_once_is_taken_once(place: Place, inbox: Inbox) -> None:
    same = offer(event("a"), signature=b"1")
    assert counts(inbox.take_all([same, same, offer(event("b"))])) == [(1, 0), Replayed, (1, 0)]
    assert place.count() == 2


def test_where_the_channel_gets_full_those_that_fit_are_taken(place: Place, inbox: Inbox) -> None:
    place.store.declare(Channel(name="events", mode=Mode.ORDERED, max_backlog_bytes=30))
    large = [offer(event(name, payload="x" * 20), signature=name.encode()) for name in "ab"]
    assert counts(inbox.take_all([*large, offer(event("c", payload=1))])) == [(1, 0), BacklogFull, (1, 0)]
    assert place.count() == 2
    place.store.declare(Channel(name="events", mode=Mode.ORDERED, max_backlog_bytes=1000))
    assert counts(inbox.take_all(large)) == [Replayed, (1, 0)]


def test_a_group_that_is_taken_apart_for_the_fault_of_one_is_told(
    place: Place, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    place.store.declare(Channel(name="events", mode=Mode.ORDERED, max_backlog_bytes=30))
    with caplog.at_level("INFO", "carrick.ingest"):
        inbox.take_all([offer(event("a", payload="x" * 40)), offer(event("b", payload=1))])
    told = [record for record in caplog.records if record.msg == "ingest.apart"]
    assert [getattr(record, "batches", None) for record in told] == [2]
    assert "events" in getattr(told[0], "said", "")


def test_one_that_fails_while_it_is_watched_is_undone_alone(place: Place) -> None:
    def arrived(connection: Any, tenant_id: str, new: Any) -> None:
        raise ValueError("no")

    inbox = wiring.open_inbox(place.url, watcher=lambda events: arrived if events[0].event_id == "bad" else None)
    with closing(inbox):
        outcomes = inbox.take_all([offer(event("a")), offer(event("bad")), offer(event("b"))])
    assert counts(outcomes) == [(1, 0), ValueError, (1, 0)]
    assert place.count() == 2


@pytest.fixture
def postgres_inbox(postgres_dsn: str) -> Iterator[Inbox]:
    with closing(wiring.open_inbox(postgres_dsn)) as opened:
        yield opened


@pytest.mark.parametrize("relay_channel", ["", "events"])
def test_on_postgresql_new_events_are_one_transaction(postgres_dsn: str, relay_channel: str) -> None:
    with closing(wiring.open_store(postgres_dsn)) as store:
        store.declare(Channel(name="events"))
    with closing(wiring.open_inbox(postgres_dsn, relay_channel=relay_channel)) as inbox:
        inbox.take_all([offer(event("a")), offer(event("b"), tenant_id="x"), offer(event("c")), offer(event("d"))])
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute("select tenant_id, event_id, xmin::text from carrick.inbox order by 1, 2").fetchall()
    assert [row[:2] for row in rows] == [("farm-1", "a"), ("farm-1", "c"), ("farm-1", "d"), ("x", "b")]
    assert len({row[2] for row in rows}) == 1


def test_on_sqlite_they_share_one_commit(tmp_path: Path) -> None:
    whole_file(tmp_path / "inbox.db")
    statements: list[str] = []
    with closing(SqliteInbox(tmp_path / "inbox.db")) as inbox:
        inbox.take_all([offer(event("a"))])
        with inbox._database.write() as connection:
            connection.set_trace_callback(statements.append)
        inbox.take_all([offer(event("b")), offer(event("a")), offer(event("c"))])
    assert statements.count("begin immediate") == 1


def test_on_sqlite_a_full_disk_is_told_to_all_and_nothing_is_kept(tmp_path: Path) -> None:
    whole_file(tmp_path / "inbox.db")

    def arrived(connection: Any, tenant_id: str, new: Any) -> None:
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full

    def watcher(events: Any) -> Any:
        return arrived if events[0].event_id == "full" else None

    with closing(SqliteInbox(tmp_path / "inbox.db", watcher=watcher)) as inbox:
        with pytest.raises(DiskFull):
            inbox.take_all([offer(event("a")), offer(event("full")), offer(event("b"))])
        assert inbox.recent("farm-1", 9) == []


def test_on_postgresql_a_batch_that_cannot_be_stored_fails_alone(postgres_inbox: Inbox, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("alter table carrick.inbox add constraint refuse check (event_id <> 'bad')")
        try:
            outcomes = postgres_inbox.take_all([offer(event("a")), offer(event("bad")), offer(event("b"))])
        finally:
            connection.execute("alter table carrick.inbox drop constraint refuse")
    assert [isinstance(outcome, Taken) for outcome in outcomes] == [True, False, True]


def test_on_postgresql_a_lost_connection_is_told_to_all_and_nothing_is_kept(
    postgres_inbox: Inbox, postgres_dsn: str
) -> None:
    batches = [offer(event("a")), offer(event("b"))]
    assert counts(postgres_inbox.take_all(batches)) == [(1, 0), (1, 0)]
    end_sessions(postgres_dsn, "%_ingest_new(%")
    later = [offer(event("c")), offer(event("d"))]
    with pytest.raises(StoreUnavailable):
        postgres_inbox.take_all(later)
    assert counts(postgres_inbox.take_all([*batches, *later])) == [(0, 1), (0, 1), (1, 0), (1, 0)]


CALL = """
select carrick._ingest_new(%s, %s, null, %s, array['x', 'x'], array['1', '2'], null, null, null, %s::bytea[], null,
                           null, null, null, null)
"""


def test_one_that_waited_for_the_same_events_finds_that_they_are_not_new_and_stores_nothing(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as first, Session(postgres_dsn) as second:
        first.begin()
        assert first.run(CALL, ["t"], [2], ["a", "b"], [b"1"]) == [(True,)]
        step = second.start(CALL, ["s", "t"], [1, 2], ["z", "b"], [b"2"])
        step.until_it_waits(postgres_dsn)
        first.commit()
        assert step.result() == [(False,)]
        assert first.run("select event_id from carrick.inbox order by 1") == [("a",), ("b",)]
        assert first.run("select signature from carrick.ingest_signature") == [(b"1",)]


def test_events_are_inserted_in_the_order_of_tenants_and_ids(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as holder, Session(postgres_dsn) as waiting, Session(postgres_dsn) as other:
        holder.begin()
        holder.run(CALL, ["t"], [2], ["b", "x"], None)
        step = waiting.start(CALL, ["t"], [2], ["b", "a"], None)
        step.until_it_waits(postgres_dsn)
        other.never_wait()
        with pytest.raises(psycopg.errors.LockNotAvailable):  # `a` is held by the one that waits for `b`
            other.run(CALL, ["t"], [2], ["a", "y"], None)
        holder.commit()
        assert step.result() == [(False,)]
