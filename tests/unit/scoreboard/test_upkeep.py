"""Upkeep: on one replica at a time, and one duty that fails stops no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrick import wiring
from carrick.errors import StoreUnavailable
from carrick.outbox.store import Store
from carrick.relay.threads import Threads
from carrick.testing import SqliteClock
from carrick_scoreboard.upkeep import EVERY_SECONDS, do_duties


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[Store]:
    wiring.migrate(f"sqlite:///{sqlite_path}")
    with closing(wiring.open_store(f"sqlite:///{sqlite_path}")) as store:
        yield store


class Duties:
    """Counts how often they were done; some fail."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def fails(self) -> int:
        self.done.append("fails")
        raise StoreUnavailable("the database does not answer")

    async def works(self) -> int:
        self.done.append("works")
        return 3


def do(store: Store, owner: str, duties: Duties, *names: str) -> bool:
    threads = Threads(1)
    try:
        return asyncio.run(do_duties(store, threads, owner, {name: getattr(duties, name) for name in names}))
    finally:
        threads.close()


def test_one_replica_does_it_for_all_and_another_takes_over_when_it_is_gone(store: Store, sqlite_path: Path) -> None:
    duties = Duties()
    assert do(store, "one", duties, "works")
    assert do(store, "two", duties, "works")
    assert duties.done == ["works"]
    assert do(store, "one", duties, "works")
    SqliteClock(sqlite_path).shift(2 * EVERY_SECONDS + 1)
    assert do(store, "two", duties, "works")
    assert do(store, "one", duties, "works")
    assert duties.done == ["works"] * 3


def test_one_duty_that_fails_stops_no_other_and_both_are_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    duties = Duties()
    with caplog.at_level(logging.INFO):
        assert not do(store, "one", duties, "fails", "works")
    assert duties.done == ["fails", "works"]
    assert [record.message for record in caplog.records if record.name == "carrick.scoreboard"] == [
        "scoreboard.janitor_failed",
        "scoreboard.tidied",
    ]


def test_a_database_that_is_away_is_told_and_tried_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.close()
    assert not do(store, "one", Duties(), "works")
    assert "scoreboard.janitor_failed" in caplog.text
