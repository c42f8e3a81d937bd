"""What people and Prometheus ask for again and again, with many entries waiting beside the most that are counted one by one."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import psycopg
from tests.postgres_server import drop_database, fresh_database

from bench.measure import Result, compare
from carrick.outbox.channel import Channel
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.testing.samples import sample

COUNTED = 99_000
ASKS = 10

POSTGRES = """
insert into carrick.record (channel, tenant_id, event_type, payload, payload_size_bytes)
select 'bench', 't' || n % 1000, 'bench.event', '"x"', 3 from generate_series(1, {count}) n;
insert into carrick.work (seq, id, channel, tenant_id, size, priority, due, rank)
select r.seq, r.id, r.channel, r.tenant_id, r.payload_size_bytes, 0, r.created_at, r.created_at from carrick.record r;
"""
SQLITE = """
with recursive step (n) as (select 1 union all select n + 1 from step where n < {count})
insert into carrick_record (channel, tenant_id, event_type, payload)
select 'bench', 't' || (n % 1000), 'bench.event', '"x"' from step;
"""


@contextmanager
def on_postgres(count: int) -> Iterator[Store]:
    """A database in which so many wait, and a few in another channel."""
    url = fresh_database(18)
    try:
        with closing(PostgresStore(url)) as store:
            store.declare(Channel(name="bench"))
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(POSTGRES.format(count=count).encode())
                connection.execute("vacuum analyze")
            _put_few(store)
            yield store
    finally:
        drop_database(18, url)


@contextmanager
def on_sqlite(count: int) -> Iterator[Store]:
    """The same in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outbox.db"
        migrate(path)
        with closing(SqliteStore(path)) as store:
            store.declare(Channel(name="bench"))
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(SQLITE.format(count=count))
            _put_few(store)
            yield store


def _put_few(store: Store) -> None:
    store.declare(Channel(name="few"))
    store.put_many([sample("few") for _ in range(100)])


def gauge_cases(quick: bool) -> Iterator[Result]:
    """Each call on both databases; a ratio of 1 or more means that depth costs nothing beyond what is counted."""
    count, rounds = (200_000, 1) if quick else (10_000_000, 5)
    calls: dict[str, Callable[[Store], object]] = {
        "stats": lambda store: store.stats(),
        "a page of another channel": lambda store: store.entries("few", max_rows=50),
        "tenants": lambda store: store.tenants("bench"),
    }
    for name, opened in (("PostgreSQL", on_postgres), ("SQLite", on_sqlite)):
        with ExitStack() as stack:
            many, few = (stack.enter_context(opened(size)) for size in (count, COUNTED))
            for call, ask in calls.items():
                yield compare(
                    f"{call}, {count:,} waiting, {name}",
                    partial(_asked, ask, many),
                    partial(_asked, ask, few),
                    rounds=rounds,
                    against=f"{COUNTED:,} waiting",
                )


def _asked(ask: Callable[[Store], object], store: Store) -> int:
    for _ in range(ASKS):
        ask(store)
    return ASKS


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {"gauges": gauge_cases}
