"""A host's clock that was years ahead and is set right: nothing waits until that time comes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from carrick.entry import Outcome
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing import SqliteClock
from carrick.testing.samples import DAY, HOUR, claim, declare, finish_each, ids, put, sample

YEARS = 10 * 365 * DAY


@pytest.fixture
def clock(path: Path) -> SqliteClock:
    return SqliteClock(path)


def test_what_was_put_meanwhile_is_due(
    store: SqliteStore, clock: SqliteClock, caplog: pytest.LogCaptureFixture
) -> None:
    declare(store)
    clock.shift(YEARS)
    entry_id = put(store)
    clock.shift(-YEARS)
    with caplog.at_level(logging.WARNING, "carrick.outbox"):
        assert ids(claim(store)) == [entry_id]
    assert [record.message for record in caplog.records] == ["outbox.clock_was_ahead"]


def test_what_was_put_in_bulk_meanwhile_is_due(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store)
    clock.shift(YEARS)
    store.put_many([sample() for _ in range(200)])
    clock.shift(-YEARS)
    assert len(claim(store, max_rows=500)) == 200


def test_what_was_put_with_a_delay_keeps_it(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store)
    clock.shift(YEARS)
    entry_id = put(store, delay_seconds=HOUR)
    clock.shift(-YEARS)
    assert not claim(store)
    clock.shift(HOUR + 120)
    assert ids(claim(store)) == [entry_id]


def test_what_is_to_be_tried_again_is(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store)
    entry_id = put(store)
    clock.shift(YEARS)
    finish_each(store, claim(store), Outcome.retry(after=10))
    clock.shift(-YEARS)
    claim(store)
    clock.shift(HOUR)
    assert ids(claim(store)) == [entry_id]


def test_a_lease_of_that_time_ends(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store)
    entry_id = put(store)
    clock.shift(YEARS)
    claim(store, lease_seconds=10)
    clock.shift(-YEARS)
    claim(store)
    clock.shift(HOUR)
    assert ids(claim(store)) == [entry_id]


def test_a_gate_of_that_time_opens_and_one_without_an_end_stays_closed(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store)
    clock.shift(YEARS)
    entry_id = put(store)
    store.close_gate("things", "*", 10, "a pause")
    store.close_gate("things", "tenant:t", None, "unpaid")
    clock.shift(-YEARS)
    claim(store)
    clock.shift(HOUR)
    assert ids(claim(store)) == [entry_id]
    assert [gate.reason for gate in store.gates()] == ["unpaid"]


def test_a_duty_of_that_time_can_be_taken_by_another(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store)
    clock.shift(YEARS)
    assert store.take_duty("janitor", "one", 10)
    assert store.take_duty("janitor", "one", 10)
    clock.shift(-YEARS)
    claim(store)
    clock.shift(HOUR)
    assert store.take_duty("janitor", "another", 10)


def test_what_was_delivered_at_that_time_goes_after_its_retention(store: SqliteStore, clock: SqliteClock) -> None:
    declare(store, retention_days=1)
    put(store)
    clock.shift(YEARS)
    store.finish_all(claim(store).token)
    clock.shift(-YEARS)
    claim(store)
    clock.shift(2 * DAY)
    assert store.prune("things") == 1


def test_a_clock_that_is_set_back_a_little_changes_nothing(
    store: SqliteStore, clock: SqliteClock, caplog: pytest.LogCaptureFixture
) -> None:
    declare(store)
    entry_id = put(store)
    clock.shift(-30)
    assert not claim(store)
    clock.shift(31)
    assert ids(claim(store)) == [entry_id]
    assert caplog.records == []
