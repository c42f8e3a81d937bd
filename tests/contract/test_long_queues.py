"""A few devices whose events queued up for days: on PostgreSQL, too, a claim reads as much whatever waits behind them.

Measured by the pages that it reads; the twin for SQLite is in tests/unit/outbox/sqlite/test_long_queues.py. Where every
head waits itself, PostgreSQL reads through the queue for entries without a group: it has no index for those.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.pages_read import pages_read

DEVICES = 5
SHORT, LONG = 1_000, 10_000

PUT = """
select count(carrick.put('cloud', 'e', '1', group_key => 'device-' || n %% 5, delay_seconds => %s))
  from generate_series(1, %s) as n
"""
HOLD = f"select count(*) from carrick.claim('cloud', 'other', {DEVICES})"
CLAIM = "select * from carrick.claim('cloud', 'worker', 20)"


@pytest.mark.parametrize("held", [False, True], ids=["heads are free", "another worker holds the groups"])
def test_a_long_queue_behind_a_few_heads_costs_a_claim_as_little_as_a_short_one(postgres_dsn: str, held: bool) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("select carrick.declare_channel('cloud', '{\"mode\": \"ordered\"}')")
        connection.execute(PUT, (None, SHORT))
        if held:
            connection.execute(HOLD)
        short = pages_read(connection, CLAIM)
        connection.execute(PUT, (None, LONG - SHORT))
        assert pages_read(connection, CLAIM) < 1.5 * short


def test_entries_that_are_not_due_cost_a_claim_nothing(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("select carrick.declare_channel('cloud', '{\"mode\": \"ordered\"}')")
        connection.execute(PUT, (1000, SHORT))
        short = pages_read(connection, CLAIM)
        connection.execute(PUT, (1000, LONG - SHORT))
        assert pages_read(connection, CLAIM) < 1.5 * short
