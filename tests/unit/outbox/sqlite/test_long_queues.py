"""A few devices whose events queued up for days: what a relay asks for costs the same however many wait behind them.

Measured in steps of SQLite's machine, which are the same in every run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from carrick.entry import NewEntry, Outcome
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.sqlite.claiming import Limits, claim
from carrick.outbox.sqlite.resting import due_in
from carrick.outbox.sqlite.store import SqliteStore
from tests.sqlite_file import engine_file

DEVICES = 5
ROWS = 20
SHORT, LONG = 500, 5_000
GRAIN = 10

Before = Callable[[SqliteStore], None]


def heads_free(store: SqliteStore) -> None:
    """Nothing has happened yet."""


def heads_held(store: SqliteStore) -> None:
    """Another worker has an entry of each device."""
    assert len(store.claim("cloud", "other", max_rows=DEVICES)) == DEVICES


def heads_waiting(store: SqliteStore) -> None:
    """The first entry of each device was refused, and waits."""
    batch = store.claim("cloud", "other", max_rows=DEVICES)
    store.finish(batch.token, {entry.id: Outcome.retry(after=1000) for entry in batch})


def ask_for_entries(connection: sqlite3.Connection) -> None:
    claim(connection, "cloud", Limits("worker", ROWS, None, None, None, uuid4()))


def ask_when(connection: sqlite3.Connection) -> None:
    due_in(connection, "cloud")


def steps(
    path: Path, waiting: int, before: Before, call: Callable[[sqlite3.Connection], None], delay: float | None = None
) -> int:
    """How many steps the call takes, in tens."""
    engine_file(path)
    with closing(SqliteStore(path)) as store:
        store.declare(Channel(name="cloud", mode=Mode.ORDERED, one_tenant=True))
        store.put_many(
            [
                NewEntry(
                    channel="cloud",
                    event_type="e",
                    payload=b"1",
                    group_key=f"device-{n % DEVICES}",
                    delay_seconds=delay,
                )
                for n in range(waiting)
            ]
        )
        before(store)
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin")
        connection.set_progress_handler(count, GRAIN)
        call(connection)
    return taken


@pytest.mark.parametrize("call", [ask_for_entries, ask_when])
@pytest.mark.parametrize("before", [heads_free, heads_held, heads_waiting])
def test_a_long_queue_behind_a_few_heads_costs_as_little_as_a_short_one(
    tmp_path: Path, before: Before, call: Callable[[sqlite3.Connection], None]
) -> None:
    short = steps(tmp_path / "short.db", SHORT, before, call)
    assert steps(tmp_path / "long.db", LONG, before, call) <= 1.1 * short


def test_entries_that_are_not_due_cost_a_claim_nothing(tmp_path: Path) -> None:
    short = steps(tmp_path / "short.db", SHORT, heads_free, ask_for_entries, delay=1000)
    assert steps(tmp_path / "long.db", LONG, heads_free, ask_for_entries, delay=1000) <= 1.1 * short
