"""What people and Prometheus ask for again and again: cheap however much waits, and plain where it is an estimate."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from carrick.entry import ChannelStats, Page, State
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.statement import query
from carrick.outbox.store import Store
from carrick.testing.samples import declare, put_run
from tests.postgres_server import drop_database, fresh_database, versions

DEEP, LATE, FEW, DEAD, KEPT = 40_000, 12_000, 7, 1_500, 3_000
EXACT = 1_000
FAR = 5_000_000_000
"""Entries of `late` lie that far behind the others, as if billions had gone through in between."""
ESTIMATES = ("pending_count", "held_count", "backlog_bytes", "oldest_pending_age_seconds")

POSTGRES = f"""
insert into carrick.record (seq, channel, tenant_id, event_type, payload, payload_size_bytes)
select case when n <= {DEEP} then n else {FAR} + n end, case when n <= {DEEP} then 'deep' else 'late' end,
       't' || n % 10, 'e', '1', 1 + n % 3
  from generate_series(100, {DEEP + LATE + 99}) n;
insert into carrick.work (seq, id, channel, tenant_id, size, priority, due, rank)
select seq, id, channel, tenant_id, payload_size_bytes, 0, created_at, created_at from carrick.record where seq >= 100;
insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count, dlq_reason)
select {2 * FAR} + n, gen_random_uuid(), 'few', case when n % 3 = 0 then 'dead' else 'delivered' end,
       clock_timestamp(), 1, case when n % 3 = 0 then 'rejected' end
  from generate_series(1, {DEAD + KEPT}) n;
insert into carrick.gauge_limit (exact) values ({EXACT});
"""
SQLITE = f"""
with recursive step (n) as (select 100 union all select n + 1 from step where n < {DEEP + LATE + 99})
insert into carrick_record (seq, channel, tenant_id, event_type, payload)
select case when n <= {DEEP} then n else {FAR} + n end, case when n <= {DEEP} then 'deep' else 'late' end,
       't' || (n % 10), 'e', substr('100', 1, 1 + n % 3)
  from step;
with recursive step (n) as (select 1 union all select n + 1 from step where n < {DEAD + KEPT})
insert into carrick_ended (seq, channel, state, ended_at, attempt_count, dlq_reason)
select {2 * FAR} + n, 'few', case when n % 3 = 0 then 'dead' else 'delivered' end, 1, 1,
       case when n % 3 = 0 then 'rejected' end
  from step;
insert into carrick_gauge_limit (one, exact) values (1, {EXACT});
"""


class Deep(NamedTuple):
    """A database with much in it. `cost` is what a query reads: rows, or steps of SQLite's machine."""

    store: Store
    cost: Callable[..., int]
    most: int
    """What stats may cost; to count all that waits costs more."""


@pytest.fixture(scope="module", params=["sqlite", *(f"postgres{version or ''}" for version in versions())])
def deep(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deep]:
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("gauges") / "outbox.db"
        migrate(path)
        with closing(SqliteStore(path)) as store:
            _declare(store)
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(SQLITE)
            yield Deep(store, partial(_steps, path), 1_000_000)
        return
    version = int(request.param.removeprefix("postgres") or 0)
    dsn = fresh_database(version)
    with closing(PostgresStore(dsn)) as store:
        _declare(store)
        with psycopg.connect(dsn) as connection:
            connection.execute(POSTGRES.encode())
        yield Deep(store, partial(_rows_read, dsn), 40_000)
    drop_database(version, dsn)


def _declare(store: Store) -> None:
    for channel in ("deep", "late", "few"):
        declare(store, channel)
    put_run(store, FEW, "few", payload=b"12")


def _steps(path: Path, name: str, **params: object) -> int:
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 100

    with closing(sqlite3.connect(path)) as connection:
        connection.set_progress_handler(count, 100)
        connection.execute(query("carrick.outbox.sqlite", name), params).fetchall()
    return counted


def _rows_read(dsn: str, name: str, **params: object) -> int:
    read = """select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int from pg_stat_xact_user_tables
               where schemaname = 'carrick'"""
    with psycopg.connect(dsn) as connection:
        connection.execute(query("carrick.outbox.postgres", name).encode(), params).fetchall()
        row = connection.execute(read).fetchone()
        assert row is not None
        return int(row[0])


def _stats(store: Store, channel: str) -> ChannelStats:
    return next(stats for stats in store.stats() if stats.channel == channel)


def test_what_is_much_is_estimated_and_says_so(deep: Deep) -> None:
    first, late = _stats(deep.store, "deep"), _stats(deep.store, "late")
    assert (first.approximate, late.approximate) == (ESTIMATES, ESTIMATES)
    assert first.pending_count == pytest.approx(DEEP - 99, rel=0.02)
    assert late.pending_count == pytest.approx(LATE + 99, rel=0.02)
    assert late.backlog_bytes == pytest.approx(2 * LATE, rel=0.05)
    assert first.oldest_pending_age_seconds == pytest.approx(0, abs=120)


def test_what_is_little_beside_it_is_counted(deep: Deep) -> None:
    few = _stats(deep.store, "few")
    assert (few.pending_count, few.backlog_bytes) == (FEW, 2 * FEW)
    assert few.approximate == ("dead_count",)
    assert few.dead_count == pytest.approx(DEAD, rel=0.1)


def test_an_estimate_is_the_same_when_nothing_has_changed(deep: Deep) -> None:
    assert _stats(deep.store, "deep").pending_count == _stats(deep.store, "deep").pending_count


def test_held_entries_are_estimated_with_the_others(deep: Deep) -> None:
    deep.store.close_gate("deep", "tenant:t3", 60, "x")
    try:
        assert _stats(deep.store, "deep").held_count == pytest.approx(DEEP / 10, rel=0.2)
    finally:
        deep.store.open_gate("deep", "tenant:t3")


def test_stats_reads_a_part_of_what_waits(deep: Deep) -> None:
    assert deep.cost("stats") < deep.most


def test_troubled_reads_nothing_of_what_waits_without_trouble(deep: Deep) -> None:
    assert deep.store.troubled("deep") == 0
    assert deep.cost("troubled", channel="deep", most=10) < 1_000


def test_the_list_of_a_small_channel_does_not_read_through_the_others(deep: Deep) -> None:
    page = deep.store.entries("few", state=State.PENDING, max_rows=5)
    assert [line.channel for line in page.lines] == ["few"] * 5
    rest = deep.store.entries("few", state=State.PENDING, max_rows=5, after=page.next)
    assert (len(rest.lines), rest.next) == (FEW - 5, None)
    assert deep.cost("entries_pending", channel="few", tenant=None, after_seq=0, rows=50) < 20_000


def test_a_list_behind_much_of_another_channel_goes_on_page_by_page(deep: Deep) -> None:
    pages: list[Page] = []
    after = None
    while not pages or not pages[-1].lines:
        pages.append(deep.store.entries("late", state=State.PENDING, max_rows=2, after=after))
        after = pages[-1].next
        assert after is not None
    assert len(pages) == DEEP // 20_000
    assert [line.seq for line in pages[-1].lines] == [FAR + DEEP + 1, FAR + DEEP + 2]
