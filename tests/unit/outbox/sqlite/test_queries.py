"""The SQL files: each says what it does, and none reads through the tables that grow."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from carrick.entry import Outcome
from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.database import PACKAGE
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing import SqliteClock
from carrick.testing.samples import DAY, HOUR, claim, finish_each, put, put_run

QUERIES = {
    file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in (files(PACKAGE) / "queries").iterdir()
}
ASKING = [*files(PACKAGE).iterdir(), files("carrick.outbox") / "finding.py"]
SOURCES = "\n".join(file.read_text(encoding="utf-8") for file in ASKING if file.name.endswith(".py"))
COLUMNS = (
    "id seq channel tenant_id principal group_key event_type key payload headers payload_size_bytes priority "
    "traceparent occurred_at created_at state next_attempt_at attempt_count crash_count last_attempt_at "
    "last_error_code last_error_message claimed_by claimed_at lease_token lease_expires_at batch_id intent "
    "delivered_at failed_at dlq_reason"
)
SMALL = re.compile(r"SCAN (?!carrick_(record|work|ended|trouble|remembered_key)|[rewtm]\b)")


READS_TROUBLES = {"troubled"}
"""Asked once per run of a command; entries in trouble are few, and a million of them take it a tenth of a second."""


def plan(path: Path, name: str) -> list[str]:
    sql = QUERIES[name]
    names = re.findall(r"(?<![\w:]):(\w+)", re.sub(r"--[^\n]*", "", sql))
    with closing(sqlite3.connect(path)) as connection:
        return [row[3] for row in connection.execute(f"explain query plan {sql}", dict.fromkeys(names))]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_opens_with_a_comment_and_is_used(name: str) -> None:
    assert QUERIES[name].startswith("-- ")
    assert f'"{name}"' in SOURCES


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_through_no_table_that_grows(path: Path, name: str) -> None:
    scans = [line for line in plan(path, name) if line.startswith("SCAN")]
    allowed = ["SCAN t"] if name in READS_TROUBLES else []
    assert [line for line in scans if not SMALL.match(line)] == allowed


@pytest.mark.parametrize("name", ["claim_lane", "claim_stream", "claim_ordered", "claim_coalesce", "claim_lanes"])
def test_claims_walk_the_index_of_waiting_entries(path: Path, name: str) -> None:
    assert any("carrick_work_rank" in line for line in plan(path, name))


@pytest.mark.parametrize("name", ["claim_lane", "claim_stream", "claim_oldest", "claim_ordered", "claim_coalesce"])
def test_a_claim_of_fresh_entries_begins_where_they_begin(path: Path, name: str) -> None:
    assert any("tenant_id=? AND rank>? AND rank<?" in line for line in plan(path, name))


@pytest.mark.parametrize(
    ("name", "range_"),
    [
        ("entries_pending", "INTEGER PRIMARY KEY (rowid>?)"),
        ("entries_claimed", "carrick_work_batch (batch_id=? AND rowid>?)"),
        ("entries_dead", "carrick_ended_dead (channel=? AND ended_at>?)"),
        ("entries_delivered", "carrick_ended_delivered (channel=? AND ended_at>?)"),
        ("find_keyed", "carrick_record_key (channel=? AND tenant_id>?)"),
        ("find_grouped", "carrick_work_group (channel=? AND tenant_id>?)"),
        ("find_key", "carrick_record_key (channel=? AND tenant_id=? AND key=?)"),
        ("find_group", "carrick_work_group (channel=? AND tenant_id=? AND group_key=?)"),
        ("find_tenant", "carrick_work_rank (channel=? AND tenant_id=?)"),
        ("find_claimed", "carrick_work_batch (batch_id=?)"),
        ("find_dead", "carrick_ended_dead (channel=?)"),
        ("find_delivered", "carrick_ended_delivered (channel=?)"),
        ("dead", "carrick_ended_dead (channel=?)"),
        ("discard_all", "carrick_ended_dead (channel=? AND ended_at<?)"),
        ("lines", "carrick_record_1 (id=?)"),
        ("rest_lane", "carrick_work_rank (channel=? AND tenant_id=?)"),
        ("rest_times", "carrick_work_low (channel=?)"),
    ],
)
def test_lists_and_relays_that_rest_read_a_range_of_an_index(path: Path, name: str, range_: str) -> None:
    assert any(range_ in line for line in plan(path, name))


@pytest.mark.parametrize("name", ["find_keyed", "find_tenant", "discard_all"])
def test_what_is_looked_for_in_the_order_of_an_index_is_not_sorted(path: Path, name: str) -> None:
    assert not any("TEMP B-TREE" in line for line in plan(path, name))


def test_a_claim_of_one_tenant_sorts_nothing(path: Path) -> None:
    assert not any("TEMP B-TREE" in line for line in plan(path, "claim_lane"))


def test_the_view_of_entries_has_the_columns_that_are_promised(store: SqliteStore, path: Path) -> None:
    put(store)
    claim(store)
    with closing(sqlite3.connect(path)) as connection:
        cursor = connection.execute("select * from carrick_entry")
        assert [column[0] for column in cursor.description] == COLUMNS.split()
        row = dict(zip(COLUMNS.split(), cursor.fetchone(), strict=True))
    assert row["state"] == "claimed"
    for time in ("created_at", "next_attempt_at", "claimed_at", "lease_expires_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", row[time])


def test_nothing_of_a_pruned_entry_stays_in_the_file(path: Path, store: SqliteStore) -> None:
    store.declare(Channel(name="things", retention_days=0))
    put(store, payload=b'"private"', key="private", group_key="private", tenant_id="private")
    store.finish_all(claim(store).token)
    assert store.prune("things") == 1
    with closing(sqlite3.connect(path)) as connection:
        assert "private" not in "".join(connection.iterdump())
        assert connection.execute("select count(*) from carrick_entry").fetchone() == (0,)


def test_a_time_before_1970_is_shown_as_it_is(path: Path, store: SqliteStore) -> None:
    put(store)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update carrick_record set occurred_at = -1")
        (shown,) = connection.execute("select occurred_at from carrick_entry").fetchone()
    assert shown == "1969-12-31T23:59:59.999999Z"


def test_what_is_removed_takes_its_attempts_with_it(path: Path, store: SqliteStore) -> None:
    clock = SqliteClock(path)
    store.declare(Channel(name="things", max_attempts=2, retention_days=1, dead_retention_days=1))
    put_run(store, 3)
    left = []
    with closing(sqlite3.connect(path)) as connection:
        for _ in range(2):
            clock.shift(HOUR)
            finish_each(store, claim(store), Outcome.retry(code="http_500"))
            left.append(connection.execute("select count(*) from carrick_attempt").fetchone())
        clock.shift(2 * DAY)
        store.prune("things")
        left.append(connection.execute("select count(*) from carrick_attempt").fetchone())
    assert left == [(3,), (3,), (0,)]
