"""A leader and a replica at once on PostgreSQL: who comes second waits, and sees what the first one did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from carrick.entry import Outcome
from carrick.outbox.outbox import Outbox
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.scores import Applied, InDoubt, NewUpdate, Scores, Update
from tests.contract.scoreboard.test_races import raced
from tests.osm import EAGLES, ROBIN, SCOUTS

Act = Callable[[PostgresTables], object]


class Points:
    """Five points of a leader that are dead, and what may be done about them at once."""

    def __init__(self, dsn: str, scores: Scores) -> None:
        self._scores = scores
        with Outbox.connect(dsn) as outbox:
            outbox.store.declare(SCORES)
            new = [NewUpdate(patrol_id=str(EAGLES), points=5)]
            given = scores.submit(outbox, ROBIN, "key", "d" * 64, SCOUTS, new, delay=None)
            (update,) = scores.updates(given.id)
            self.id, self.entry_id = update.id, update.entry_id
            outbox.finish(outbox.claim(SCORES.name).token, {self.entry_id: Outcome.rejected("no")})
        self.dead = self.now()

    def now(self) -> Update:
        found = self._scores.update(self.id)
        assert found is not None
        return found

    def tried(self) -> str:
        """They go out, and no answer comes; the id of the write."""
        write_id = self._scores.doubt(SCOUTS, str(EAGLES), [self.entry_id], 10, 15)
        self.dead = self.now()
        return write_id

    def discard(self, tables: PostgresTables) -> object:
        try:
            return Scores(tables).discard(self.dead)
        except InDoubt:
            return "over"

    def doubt(self, tables: PostgresTables) -> object:
        try:
            return bool(Scores(tables).doubt(SCOUTS, str(EAGLES), [self.entry_id], 10, 15))
        except InDoubt:
            return "over"

    def did_not(self, write_id: str) -> Act:
        return lambda tables: Scores(tables).settle(not_applied=[self.entry_id], write_id=write_id)

    def happened(self, write_id: str) -> Act:
        return lambda tables: Scores(tables).settle([Applied(self.entry_id, 10, 15)], write_id=write_id)


@pytest.fixture
def points(postgres_dsn: str) -> Iterator[Points]:
    with closing(PostgresTables(postgres_dsn)) as tables:
        yield Points(postgres_dsn, Scores(tables))


def test_a_write_does_not_begin_while_its_points_are_being_discarded(points: Points, postgres_dsn: str) -> None:
    assert raced(postgres_dsn, points.discard, points.doubt) == (True, "over")


def test_points_that_are_about_to_be_written_are_looked_up_before_they_are_discarded(
    points: Points, postgres_dsn: str
) -> None:
    assert raced(postgres_dsn, points.doubt, points.discard) == (True, False)
    assert points.now().given_up


def test_who_settles_a_doubt_sees_that_its_points_are_being_given_up(points: Points, postgres_dsn: str) -> None:
    write_id = points.tried()
    assert raced(postgres_dsn, points.discard, points.did_not(write_id)) == (False, {points.entry_id})
    assert points.now().discarded_at is not None


def test_points_whose_doubt_is_being_settled_are_discarded_at_once(points: Points, postgres_dsn: str) -> None:
    write_id = points.tried()
    assert raced(postgres_dsn, points.did_not(write_id), points.discard) == (set(), True)
    assert points.now().discarded_at is not None


def test_points_that_are_being_applied_cannot_be_discarded(points: Points, postgres_dsn: str) -> None:
    write_id = points.tried()
    assert raced(postgres_dsn, points.happened(write_id), points.discard) == (set(), "over")
    assert points.now().applied_at is not None


def test_points_that_are_being_given_up_are_applied_where_osm_has_them(points: Points, postgres_dsn: str) -> None:
    write_id = points.tried()
    assert raced(postgres_dsn, points.discard, points.happened(write_id)) == (False, set())
    assert (points.now().applied_at is not None, points.now().discarded_at) == (True, None)
