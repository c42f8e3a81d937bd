"""What is asked for every display and every page does not read the whole outbox."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest

from carrick.outbox.channel import Channel
from carrick.outbox.outbox import Outbox
from carrick.outbox.statement import query
from carrick.testing.samples import sample
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.store.postgres.tables import PACKAGE, PostgresTables
from carrick_scoreboard.store.scores import NewUpdate, Scores

ASKED: dict[str, dict[str, Any]] = {
    "updates_pending": {"section_ids": [40104]},
    "updates_waiting": {"osm_user_id": 7},
    "updates_unfinished": {"osm_user_id": 7, "limit": 500},
    "updates_of": {"submission_id": 1},
}


@pytest.fixture
def busy(newest_postgres_dsn: str) -> str:
    """A database whose outbox holds much that is not the scoreboard's."""
    with Outbox.connect(newest_postgres_dsn) as outbox, closing(PostgresTables(newest_postgres_dsn)) as tables:
        outbox.store.declare(Channel(name="things"))
        outbox.store.declare(SCORES)
        outbox.store.put_many([sample() for _ in range(20_000)])
        outbox.store.finish_all(outbox.store.claim("things", "test", max_rows=10_000).token)
        for key in "abc":
            update = NewUpdate(patrol_id="1", points=5)
            Scores(tables).submit(outbox, 7, key, "d" * 64, 40104, [update], delay=None)
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute("analyze")
    return newest_postgres_dsn


def test_points_that_wait_are_found_without_reading_the_whole_outbox(busy: str) -> None:
    with psycopg.connect(busy, autocommit=True) as connection:
        for name, params in ASKED.items():
            asked = f"explain (costs off) {query(PACKAGE, name)}".encode()
            plan = "\n".join(line for (line,) in connection.execute(asked, params))
            for table in ("record", "work", "ended"):
                assert f"Seq Scan on {table} " not in plan, f"{name}\n{plan}"
