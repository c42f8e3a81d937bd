"""What only the PostgreSQL store has: its connections, its low-water marks, its plans."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from carrick import Outbox, Outcome
from carrick.errors import StoreUnavailable
from carrick.outbox.postgres import marks
from carrick.outbox.postgres.store import PostgresStore
from carrick.testing import PostgresClock


@pytest.fixture
def outbox(newest_postgres_dsn: str) -> Iterator[Outbox]:
    with Outbox.connect(newest_postgres_dsn) as outbox:
        outbox.channel("c")
        yield outbox


def fill(outbox: Outbox, count: int, **fields: object) -> None:
    outbox.put_many([{"channel": "c", "event_type": "e", "payload": n, **fields} for n in range(count)])


def payloads(outbox: Outbox, max_rows: int) -> list[bytes]:
    return [entry.payload for entry in outbox.claim("c", max_rows=max_rows)]


def test_a_connection_that_the_server_ended_is_replaced(outbox: Outbox, newest_postgres_dsn: str) -> None:
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
    with pytest.raises(StoreUnavailable):
        outbox.store.stats()
    assert [row.channel for row in outbox.store.stats()] == ["c", "outbox"]


def test_a_closed_store_says_so(newest_postgres_dsn: str) -> None:
    store = PostgresStore(newest_postgres_dsn)
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.stats()


def test_no_operation_leaves_session_state_behind(outbox: Outbox, newest_postgres_dsn: str) -> None:
    """A pooler in transaction mode hands the same session to others: settings, locks and statements must not stay."""
    fill(outbox, 3)
    batch = outbox.claim("c", max_rows=2)
    outbox.note(batch.token, {"a": 1})
    outbox.finish(batch.token, {batch.entries[0].id: Outcome.retry()})
    outbox.release(batch.token)
    store = outbox.store
    assert isinstance(store, PostgresStore)
    with store._connections.connection() as connection:
        changed = connection.execute("select name from pg_settings where source = 'session'").fetchall()
        assert changed == [("client_encoding",)] or changed == []
        assert connection.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        assert connection.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone() == (0,)
        assert connection.execute("select count(*) from pg_listening_channels()").fetchone() == (0,)


def test_a_slow_producers_entry_below_the_mark_is_claimed_in_the_end(outbox: Outbox, newest_postgres_dsn: str) -> None:
    with psycopg.connect(newest_postgres_dsn) as slow:
        outbox.put(slow, channel="c", event_type="e", payload="late")
        fill(outbox, 4)
        assert payloads(outbox, 2) == [b"0", b"1"]
        slow.commit()
    claimed = [payload for _ in range(3) for payload in payloads(outbox, 2)]
    assert sorted(claimed) == [b'"late"', b"2", b"3"]


def test_marks_are_used_between_full_looks(
    outbox: Outbox, newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 1e9)
    with psycopg.connect(newest_postgres_dsn) as slow:
        outbox.put(slow, channel="c", event_type="e", payload="late")
        fill(outbox, 6)
        assert payloads(outbox, 2) == [b"0", b"1"]
        slow.commit()
    assert payloads(outbox, 2) == [b"2", b"3"]
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 0.0)
    assert payloads(outbox, 2)[0] == b'"late"'


@pytest.mark.parametrize("together", [False, True], ids=["claim", "finish_and_claim"])
def test_an_entry_below_the_mark_is_found_at_once_when_nothing_is_above_it(
    outbox: Outbox, newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 1e9)
    with psycopg.connect(newest_postgres_dsn) as slow:
        outbox.put(slow, channel="c", event_type="e", payload="late")
        fill(outbox, 2)
        batch = outbox.claim("c", max_rows=2)
        slow.commit()
    if together:
        _, batch = outbox.store.finish_and_claim(batch.token, None, "c", "w", max_rows=2)
    else:
        batch = outbox.claim("c", max_rows=2)
    assert [entry.payload for entry in batch] == [b'"late"']


def test_a_batch_as_large_as_the_channel_allows_leaves_marks_too(
    outbox: Outbox, newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 1e9)
    outbox.channel("c", batch_rows=2)
    with Outbox.connect(newest_postgres_dsn) as relay, psycopg.connect(newest_postgres_dsn) as slow:
        outbox.put(slow, channel="c", event_type="e", payload="late")
        fill(outbox, 6)
        assert [entry.payload for entry in relay.store.claim("c", "w")] == [b"0", b"1"]
        slow.commit()
        assert [entry.payload for entry in relay.store.claim("c", "w")] == [b"2", b"3"]


def test_a_claim_in_sql_can_ask_for_fresh_entries_and_tells_the_probe(outbox: Outbox, newest_postgres_dsn: str) -> None:
    fill(outbox, 1)
    PostgresClock(newest_postgres_dsn).shift(3600)
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        fresh = "select probe from carrick.claim('c', 'w', fresh_seconds => 60)"
        assert connection.execute(fresh).fetchall() == []
        fill(outbox, 3)
        assert connection.execute(fresh).fetchall() == [(False,)] * 3
        connection.execute("select carrick.fail_gate('c', '*', 'no answer', cap_seconds => 0.001)")
        PostgresClock(newest_postgres_dsn).shift(3601)
        assert connection.execute("select probe from carrick.claim('c', 'w')").fetchall() == [(True,)]


def test_entries_given_back_by_this_process_are_seen_at_once(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 1e9)
    fill(outbox, 6)
    batch = outbox.claim("c", max_rows=2)
    outbox.release(batch.token)
    assert payloads(outbox, 2) == [b"0", b"1"]


def test_a_claim_reads_no_table_from_end_to_end(outbox: Outbox, newest_postgres_dsn: str) -> None:
    """Even when statistics were taken while the queue was empty."""
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute("analyze")
        fill(outbox, 2000)
        for _ in range(5):
            outbox.finish_all(outbox.claim("c", max_rows=100).token)
        connection.execute(
            "select pg_stat_force_next_flush()" if connection.info.server_version >= 150000 else "select 1"
        )
    outbox.close()
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        scans = connection.execute(
            "select relname, seq_scan from pg_stat_user_tables "
            "where schemaname = 'carrick' and relname in ('record', 'work', 'ended')"
        ).fetchall()
    assert {name: count for name, count in scans if count > 1} == {}


def test_times_come_in_utc_whatever_the_time_zone_of_the_session(newest_postgres_dsn: str) -> None:
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute(f"alter database \"{connection.info.dbname}\" set timezone = 'Asia/Kathmandu'".encode())
    with Outbox.connect(newest_postgres_dsn) as outbox:
        outbox.channel("c")
        fill(outbox, 1)
        (entry,) = outbox.claim("c")
    assert entry.created_at.tzinfo is UTC
    assert abs(entry.created_at - datetime.now(UTC)) < timedelta(hours=1)


def test_what_is_removed_takes_its_attempts_with_it(outbox: Outbox, newest_postgres_dsn: str) -> None:
    clock = PostgresClock(newest_postgres_dsn)
    outbox.channel("c", max_attempts=2, retention_days=1, dead_retention_days=1)
    fill(outbox, 3)
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        left = []
        for _ in range(2):
            clock.shift(3600)
            batch = outbox.claim("c")
            outbox.store.finish(batch.token, {entry.id: Outcome.retry(code="http_500") for entry in batch})
            left.append(connection.execute("select count(*) from carrick.attempt").fetchone())
        clock.shift(2 * 86_400)
        outbox.store.prune("c")
        left.append(connection.execute("select count(*) from carrick.attempt").fetchone())
    assert left == [(3,), (3,), (0,)]
