"""The inbox on both databases: each event once, a batch whole or not at all, and flat upkeep."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from carrick import wiring
from carrick.errors import BacklogFull, SchemaMissing, StoreUnavailable, UnknownChannel
from carrick.ingest.postgres.store import PostgresInbox
from carrick.ingest.problems import Replayed
from carrick.ingest.sqlite.store import SqliteInbox
from carrick.ingest.store import Inbox
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.postgres.migrate import migrate as migrate_postgres
from carrick.outbox.sqlite.migrate import migrate as migrate_sqlite
from carrick.testing.interleaving import Session
from carrick.testing.samples import sample
from tests.batches import checked, event, numbered, read, take
from tests.contract.inboxes import Place
from tests.postgres_server import drop_database, end_sessions, fresh_database

DAY = 86_400


def test_a_new_event_is_accepted_and_the_same_again_is_a_duplicate(place: Place, inbox: Inbox) -> None:
    assert _taken(inbox, *numbered(3)) == (3, 0)
    assert _taken(inbox, *numbered(3)) == (0, 3)
    assert _taken(inbox, *numbered(5)) == (2, 3)
    assert _taken(inbox, *numbered(120)) == (115, 5)
    assert place.count() == 120


def _taken(inbox: Inbox, *events: Any, signature: bytes | None = None, **fields: Any) -> tuple[int, int]:
    taken = take(inbox, checked(*events, **fields), signature)
    return taken.accepted, taken.duplicated


def test_an_event_that_comes_twice_in_a_batch_is_stored_as_it_came_first(place: Place, inbox: Inbox) -> None:
    assert _taken(inbox, event("a", payload=1), event("a", payload=2), event("b")) == (2, 1)
    assert place.look("select payload from {inbox} where event_id = 'a'")[0][0] in (1, "1")


def test_the_same_id_of_another_tenant_is_another_event(place: Place, inbox: Inbox) -> None:
    assert _taken(inbox, event("a")) == (1, 0)
    assert _taken(inbox, event("a", tenant_id="farm-2"), tenant_id="farm-2") == (1, 0)
    assert place.count() == 2


def test_everything_that_came_with_an_event_is_kept(place: Place, inbox: Inbox) -> None:
    _taken(inbox, event("a", trace_id="0af7651916cd43dd8448eb211c80319c", device_id="d-7", farm={"id": 9}))
    row = place.look("select tenant_id, event_type, edge_id, trace_id, extra from {inbox}")[0]
    assert row[:4] == ("farm-1", "reading.taken", "gate-7", "0af7651916cd43dd8448eb211c80319c")
    extra = row[4] if isinstance(row[4], dict) else json.loads(row[4])
    assert extra == {"device_id": "d-7", "farm": {"id": 9}}
    (seen,) = inbox.recent("farm-1", 10)
    assert (seen.event_id, seen.occurred_at and seen.occurred_at.isoformat()) == (
        "a",
        "2026-05-01T12:00:00.000001+00:00",
    )


@pytest.mark.parametrize(
    "payload", [r'{ "a" : 1.10,"a":2 }', r'"\u0000"', r'"\ud83d\ude00"', "1e999999", '"é\\n"', "null"]
)
def test_the_bytes_of_a_payload_are_kept_and_relayed_as_they_came(payload: str, place: Place, inbox: Inbox) -> None:
    text = json.dumps({"tenant_id": "farm-1", "events": [event("a", payload="P")]}).replace('"P"', payload).encode()
    assert take(inbox, read(text)).accepted == 1
    as_text = "cast(payload as text)"
    assert place.look(f"select {as_text} from {{inbox}}") == [(payload,)]
    assert [entry.payload for entry in place.relayed()] == [payload.encode()]


def test_what_is_new_is_relayed_once_in_the_order_of_the_batch(place: Place, inbox: Inbox) -> None:
    _taken(inbox, *numbered(3, "z"))
    _taken(inbox, *numbered(3, "z"), *reversed(numbered(3, "a")))
    entries = place.relayed().entries
    assert [entry.key for entry in entries] == ["z-0", "z-1", "z-2", "a-2", "a-1", "a-0"]
    assert {(entry.tenant_id, entry.event_type) for entry in entries} == {("farm-1", "reading.taken")}


def test_an_entry_names_its_event_its_device_and_its_trace(place: Place, inbox: Inbox) -> None:
    _taken(inbox, event("a", trace_id="0af7651916cd43dd8448eb211c80319c", device_id="d-7"), event("b"))
    first, second = place.relayed().entries
    assert first.headers == {
        "event_id": "a",
        "edge_id": "gate-7",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "device_id": "d-7",
    }
    assert (first.group_key, second.group_key) == ("d-7", None)
    assert (first.traceparent or "").startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert (second.traceparent, second.headers) == (None, {"event_id": "b", "edge_id": "gate-7"})
    assert first.occurred_at is not None
    assert first.occurred_at.isoformat() == "2026-05-01T12:00:00.000001+00:00"


def test_without_a_channel_nothing_is_relayed(place: Place) -> None:
    inbox = place.inbox()
    assert _taken(inbox, *numbered(3)) == (3, 0)
    assert not place.relayed()
    inbox.close()


def test_an_event_whose_entry_is_still_known_is_not_relayed_again(place: Place, inbox: Inbox) -> None:
    place.store.put_many([_sample("a"), _sample("x")])
    assert _taken(inbox, event("a"), event("b")) == (2, 0)
    assert sorted(entry.key or "" for entry in place.relayed()) == ["a", "b", "x"]


def _sample(key: str) -> Any:
    return sample("events", key=key, tenant_id="farm-1", payload=b'"other content"')


def test_a_remembered_key_is_not_relayed_again(place: Place, inbox: Inbox) -> None:
    place.store.declare(Channel(name="events", mode=Mode.ORDERED, retention_days=0, remember_keys_days=30))
    place.store.put_many([_sample("a")])
    place.store.finish_all(place.relayed().token)
    assert place.store.prune("events") == 1
    assert _taken(inbox, event("a"), event("b")) == (2, 0)
    assert [entry.key for entry in place.relayed()] == ["b"]


def test_a_full_channel_refuses_the_batch_and_nothing_of_it_is_kept(place: Place, inbox: Inbox) -> None:
    place.store.declare(Channel(name="events", mode=Mode.ORDERED, max_backlog_bytes=30))
    assert _taken(inbox, event("a", payload="x" * 20)) == (1, 0)
    with pytest.raises(BacklogFull):
        _taken(inbox, event("b", payload="x" * 20), signature=b"s")
    assert place.count() == 1
    place.store.declare(Channel(name="events", mode=Mode.ORDERED, max_backlog_bytes=1000))
    assert _taken(inbox, event("b", payload="x" * 20), signature=b"s") == (1, 0)


def test_a_channel_that_nobody_declared_refuses_the_batch(place: Place) -> None:
    inbox = place.inbox("nowhere")
    with pytest.raises(UnknownChannel):
        _taken(inbox, event("a"))
    assert place.count() == 0
    inbox.close()


def test_the_same_signature_again_is_a_replay_and_changes_nothing(place: Place, inbox: Inbox) -> None:
    assert _taken(inbox, event("a"), signature=b"one") == (1, 0)
    with pytest.raises(Replayed):
        _taken(inbox, event("b"), signature=b"one")
    assert _taken(inbox, event("a"), signature=b"two") == (0, 1)
    assert place.count() == 1


def test_other_work_of_a_signed_request_is_done_once(place: Place, inbox: Inbox) -> None:
    assert inbox.once(b"one", lambda connection: connection.execute("select 7").fetchone()[0]) == 7
    with pytest.raises(Replayed):
        inbox.once(b"one", lambda _: pytest.fail("it is done again"))
    with pytest.raises(Replayed):
        _taken(inbox, event("a"), signature=b"one")
    _taken(inbox, event("a"), signature=b"two")
    with pytest.raises(Replayed):
        inbox.once(b"two", lambda _: pytest.fail("it is done again"))


def test_other_work_that_fails_leaves_nothing_and_may_be_tried_again(place: Place, inbox: Inbox) -> None:
    def fail(connection: Any) -> None:
        connection.execute(f"delete from {'carrick_inbox' if 'sqlite' in place.url else 'carrick.inbox'}")
        raise UnknownChannel("no", [])

    _taken(inbox, event("a"))
    with pytest.raises(UnknownChannel):
        inbox.once(b"one", fail)
    assert place.count() == 1
    assert inbox.once(b"one", lambda _: "done") == "done"


def test_a_signature_is_forgotten_after_its_time(place: Place, inbox: Inbox) -> None:
    _taken(inbox, event("a"), signature=b"one")
    place.clock.shift(1700)
    inbox.prune(90, max_rows=10)
    with pytest.raises(Replayed):
        _taken(inbox, event("a"), signature=b"one")
    place.clock.shift(200)
    inbox.prune(90, max_rows=10)
    assert _taken(inbox, event("a"), signature=b"one") == (0, 1)


def test_events_are_forgotten_after_their_retention_oldest_first_and_no_more_than_asked(
    place: Place, inbox: Inbox
) -> None:
    for tenant in ("farm-1", "farm-2", "farm-3"):
        _taken(inbox, *numbered(4, "old", tenant_id=tenant), tenant_id=tenant)
    place.clock.shift(60 * DAY)
    _taken(inbox, *numbered(2, "new"))
    place.clock.shift(31 * DAY)
    assert inbox.prune(90, max_rows=5) == 5
    assert inbox.prune(90, max_rows=100) == 7
    assert inbox.prune(90, max_rows=100) == 0
    assert {seen.event_id for seen in inbox.recent("farm-1", 200)} == {"new-0", "new-1"}
    assert _taken(inbox, event("old-0")) == (1, 0)


def test_a_large_batch_is_forgotten_in_parts_and_then_nothing_of_it_is_left(place: Place, inbox: Inbox) -> None:
    _taken(inbox, *numbered(10))
    place.clock.shift(91 * DAY)
    assert [inbox.prune(90, max_rows=4) for _ in range(2)] == [4, 4]
    assert len(inbox.recent("farm-1", 200)) == place.count() == 2
    assert [inbox.prune(90, max_rows=4) for _ in range(2)] == [2, 0]
    assert place.look("select count(*) from {intake}") == [(0,)]


def test_what_came_again_is_forgotten_by_when_it_came_first(place: Place, inbox: Inbox) -> None:
    _taken(inbox, event("a"), event("b"))
    place.clock.shift(60 * DAY)
    assert _taken(inbox, event("a"), event("c")) == (1, 1)
    assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["c", "b", "a"]
    place.clock.shift(31 * DAY)
    assert inbox.prune(90, max_rows=9) == 2
    assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["c"]


def test_an_event_that_was_removed_by_hand_and_came_again_is_kept_for_its_time(place: Place, inbox: Inbox) -> None:
    _taken(inbox, *numbered(3, "gone"))
    place.look("delete from {inbox} where event_id like 'gone%' returning event_id")
    _taken(inbox, event("a"))
    _taken(inbox, event("b"), event("again"))
    place.look("delete from {inbox} where event_id = 'again' returning event_id")
    place.clock.shift(60 * DAY)
    _taken(inbox, event("again"), event("gone-1"), tenant_id="farm-1")
    assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["gone-1", "again", "b", "a"]
    place.clock.shift(31 * DAY)
    assert [inbox.prune(90, max_rows=most) for most in (1, 9, 9)] == [1, 1, 0]
    assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["gone-1", "again"]
    assert place.look("select count(*) from {intake}") == [(1,)]


def test_recent_events_are_the_newest_of_that_tenant(place: Place, inbox: Inbox) -> None:
    for n in range(3):
        _taken(inbox, *numbered(2, f"b{n}"))
        _taken(inbox, *numbered(2, f"x{n}", tenant_id="farm-2"), tenant_id="farm-2")
        place.clock.shift(1)
    assert [seen.event_id for seen in inbox.recent("farm-1", 3)] == ["b2-1", "b2-0", "b1-1"]
    assert [seen.event_id for seen in inbox.recent("farm-2", 99)] == ["x2-1", "x2-0", "x1-1", "x1-0", "x0-1", "x0-0"]
    assert inbox.recent("farm-9", 3) == []


def test_a_hundred_concurrent_copies_of_a_batch_store_each_event_once(place: Place, inbox: Inbox) -> None:
    copies = [checked(*numbered(50)), checked(*reversed(numbered(50)))]
    barrier = threading.Barrier(10)

    def send(n: int) -> tuple[int, int]:
        if n < 10:
            barrier.wait()
        taken = take(inbox, copies[n % 2])
        return taken.accepted, taken.duplicated

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(send, range(100)))
    assert sum(accepted for accepted, _ in answers) == 50
    assert {accepted + duplicated for accepted, duplicated in answers} == {50}
    assert place.count() == 50
    assert len(place.relayed()) == 50


def test_an_inbox_without_its_schema_says_what_to_do(tmp_path: Path) -> None:
    migrate_sqlite(tmp_path / "engine.db")
    with pytest.raises(SchemaMissing, match="carrick migrate"):
        SqliteInbox(tmp_path / "engine.db").check_schema()


def test_an_inbox_on_postgresql_without_its_schema_says_what_to_do() -> None:
    dsn = fresh_database(18, migrated=False)
    migrate_postgres(dsn)
    inbox = PostgresInbox(dsn)
    with pytest.raises(SchemaMissing, match="carrick migrate"):
        inbox.check_schema()
    inbox.close()
    drop_database(18, dsn)


def test_a_connection_that_broke_is_told_as_such_and_replaced(postgres_dsn: str) -> None:
    with closing(PostgresInbox(postgres_dsn)) as inbox:
        assert _taken(inbox, event("broken-0")) == (1, 0)
        end_sessions(postgres_dsn, "%ingest_batch(%")
        with pytest.raises(StoreUnavailable):
            _taken(inbox, event("broken-1"))
        assert _taken(inbox, event("broken-0"), event("broken-1")) == (1, 1)


def test_what_is_new_is_shown_in_its_transaction(place: Place) -> None:
    seen: list[tuple[str, list[str]]] = []

    def arrived(connection: Any, tenant_id: str, new: Any) -> None:
        seen.append((tenant_id, [arrival.event_id for arrival in new]))
        if new[0].event_id == "bad":
            raise ValueError("no")

    inbox = wiring.open_inbox(place.url, watcher=lambda events: None if events[0].event_id == "dull" else arrived)
    _taken(inbox, event("a"))
    _taken(inbox, event("a"), event("b"))
    _taken(inbox, event("b"))
    _taken(inbox, event("dull"))
    with pytest.raises(ValueError, match="no"):
        _taken(inbox, event("bad"))
    assert seen == [("farm-1", ["a"]), ("farm-1", ["b"]), ("farm-1", ["bad"])]
    assert sorted(one.event_id for one in inbox.recent("farm-1", 9)) == ["a", "b", "dull"]
    inbox.close()


CALL = """
select stored from carrick.ingest_batch('t', 'g', %s, array['x', 'x'], array['1', '2'],
  array[null, null]::timestamptz[], array[null, null], array[null, null], %s::bytea)
"""


def test_a_batch_waits_for_one_with_the_same_events_and_then_finds_duplicates(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as first, Session(postgres_dsn) as second:
        first.begin()
        assert first.run(CALL, ["a", "b"], None) == [(2,)]
        step = second.start(CALL, ["b", "c"], None)
        step.until_it_waits(postgres_dsn)
        first.commit()
        assert step.result() == [(1,)]
        assert first.run("select count(*) from carrick.inbox") == [(3,)]


def test_a_batch_that_waited_for_one_that_failed_stores_the_events_itself(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as first, Session(postgres_dsn) as second:
        first.begin()
        first.run(CALL, ["a", "b"], b"signature")
        step = second.start(CALL, ["a", "b"], b"signature")
        step.until_it_waits(postgres_dsn)
        first.rollback()
        assert step.result() == [(2,)]


def test_events_are_inserted_in_the_order_of_their_ids_whatever_the_order_of_the_batch(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as holder, Session(postgres_dsn) as waiting, Session(postgres_dsn) as other:
        holder.begin()
        holder.run(CALL, ["b", "x"], None)
        step = waiting.start(CALL, ["b", "a"], None)
        step.until_it_waits(postgres_dsn)
        other.never_wait()
        with pytest.raises(psycopg.errors.LockNotAvailable):  # `a` is held by the one that waits for `b`
            other.run(CALL, ["a", "y"], None)
        holder.commit()
        assert step.result() == [(1,)]


def test_an_intake_lists_what_was_new(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as session:
        session.run(CALL, ["a", "b"], None)
        session.run(CALL, ["b", "c"], None)
        session.run(CALL, ["c", "a"], None)
        assert session.run("select event_ids from carrick.intake order by received_at") == [(["a", "b"],), (["c"],)]


PRUNE = "select carrick.prune_inbox(-1, %s, 1800)"


def test_a_prune_waits_for_another_and_forgets_what_that_has_left(postgres_dsn: str) -> None:
    with Session(postgres_dsn) as first, Session(postgres_dsn) as second:
        first.run(CALL, ["a", "b"], None)
        first.run(CALL, ["c", "d"], None)
        first.begin()
        assert first.run(PRUNE, 1) == [(1,)]
        step = second.start(PRUNE, 1)
        step.until_it_waits(postgres_dsn)
        first.commit()
        assert step.result() == [(1,)]
        assert second.run("select event_id from carrick.inbox order by 1") == [("c",), ("d",)]
        assert second.run("select event_ids from carrick.intake") == [(["c", "d"],)]
