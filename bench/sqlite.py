"""The engine on SQLite beside raw SQL with the same pragmas."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from bench.measure import Result, compare, rate
from carrick import Outbox
from carrick.entry import NewEntry
from carrick.outbox.sqlite.migrate import migrate

PAYLOAD = b'{"reading":"' + b"x" * 180 + b'"}'

RAW_TABLE = """
create table raw_outbox (
  seq integer primary key, id text not null unique, channel text not null, tenant_id text not null default '',
  event_type text not null, payload text not null, state text not null default 'pending', created_at integer not null,
  next_attempt_at integer not null, attempt_count integer not null default 0, token text, claimed_by text,
  lease_expires_at integer, delivered_at integer);
create index raw_pending on raw_outbox (channel, created_at) where state = 'pending';
"""

RAW_INSERT = """
insert into raw_outbox (id, channel, event_type, payload, created_at, next_attempt_at)
values (?, 'bench', 'bench.event', ?, unixepoch(), unixepoch())
"""

RAW_CLAIM = """
update raw_outbox set state = 'claimed', token = ?, claimed_by = 'bench', lease_expires_at = unixepoch() + 120
 where seq in (select seq from raw_outbox where channel = 'bench' and state = 'pending' and next_attempt_at <= unixepoch()
                order by created_at limit ?)
returning id, channel, tenant_id, event_type, payload, created_at, attempt_count, seq
"""

RAW_FINISH = """
update raw_outbox set state = 'delivered', delivered_at = unixepoch(), token = null, attempt_count = attempt_count + 1
 where seq = ? and token = ?
"""


@contextmanager
def databases() -> Iterator[tuple[Outbox, sqlite3.Connection]]:
    """An outbox file and a raw file, both in WAL mode with full synchronisation."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outbox.db"
        migrate(path)
        raw = sqlite3.connect(Path(folder) / "raw.db", isolation_level=None)
        raw.execute("pragma journal_mode = wal")
        raw.execute("pragma synchronous = full")
        raw.executescript(RAW_TABLE)
        with Outbox.connect(f"sqlite:///{path}") as outbox:
            outbox.channel("bench")
            yield outbox, raw
        raw.close()


def put_cases(quick: bool) -> Iterator[Result]:
    """Durable single puts, and many threads that share commits."""
    count, rounds = (300, 3) if quick else (2000, 5)
    with databases() as (outbox, raw):

        def put() -> int:
            for _ in range(count):
                outbox.put(channel="bench", event_type="bench.event", payload=PAYLOAD)
            return count

        def put_raw() -> int:
            for _ in range(count):
                raw.execute("begin immediate")
                raw.execute(RAW_INSERT, (str(uuid4()), PAYLOAD.decode()))
                raw.execute("commit")
            return count

        yield compare("SQLite: durable put", put, put_raw, rounds=rounds, reach=0.8)

        def put_from_threads() -> int:
            threads = [threading.Thread(target=put) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return 8 * count

        yield compare("SQLite: 8 threads putting", put_from_threads, put, rounds=rounds, reach=3, against="one thread")


def drain_cases(quick: bool) -> Iterator[Result]:
    """Claim and fenced finish."""
    for batch in (10, 100, 1000):
        count = (2_000 if quick else 10_000) if batch == 10 else (20_000 if quick else 60_000)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(2 if quick else 3):
            with databases() as (outbox, raw):
                entry = NewEntry(channel="bench", event_type="bench.event", payload=PAYLOAD)
                outbox.store.put_many([entry] * count)
                raw.execute("begin")
                raw.executemany(RAW_INSERT, [(str(uuid4()), PAYLOAD.decode()) for _ in range(count)])
                raw.execute("commit")
                ours.append(rate(lambda: drain(outbox, batch)))  # noqa: B023  called at once
                theirs.append(rate(lambda: drain_raw(raw, batch)))  # noqa: B023
        yield Result(f"SQLite: claim + finish, batch {batch}", max(ours), max(theirs), 0.7 if batch >= 100 else None)


def drain(outbox: Outbox, batch: int) -> int:
    handled = 0
    while claimed := outbox.store.claim("bench", "bench", max_rows=batch):
        handled += len(outbox.store.finish_all(claimed.token))
    return handled


def drain_raw(raw: sqlite3.Connection, batch: int) -> int:
    handled = 0
    while True:
        token = str(uuid4())
        raw.execute("begin immediate")
        rows = raw.execute(RAW_CLAIM, (token, batch)).fetchall()
        raw.execute("commit")
        if not rows:
            return handled
        raw.execute("begin immediate")
        raw.executemany(RAW_FINISH, [(row[-1], token) for row in rows])
        raw.execute("commit")
        handled += len(rows)


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {"sqlite-put": put_cases, "sqlite-drain": drain_cases}
