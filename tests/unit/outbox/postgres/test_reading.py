"""How much PostgreSQL reads for a page of a list, for a claim of fresh entries and for a relay that rests: ranges of
indexes, however many entries there are and whatever the statistics say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from carrick.entry import State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.postgres.putting import PACKAGE
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.statement import query
from carrick.testing import PostgresClock
from carrick.testing.samples import sample
from tests.postgres_server import drop_database, fresh_database, versions

MANY = 6000
HOUR = 3600
PLACE = {"channel": "stream", "after_tenant": "t", "after_at": "2020-01-01", "after_seq": 5, "rows": 51, "look": 51}
CLAIM = dict.fromkeys(("max_bytes", "lease_seconds", "tenant", "token", "known", "mark_ranks", "mark_seqs")) | {
    "owner": "w",
    "max_rows": 20,
    "fresh_seconds": 60,
}
READ = """
select coalesce(sum(seq_tup_read), 0)::int, coalesce(sum(idx_tup_fetch), 0)::int
  from pg_stat_xact_user_tables where schemaname = 'carrick' and relname in ('record', 'work', 'ended')
"""


@pytest.fixture(scope="module", params=["analysed", "analysed while empty"])
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with many old entries waiting and some fresh ones, many delivered, and a batch in hand."""
    dsn = fresh_database(versions()[0])
    with psycopg.connect(dsn, autocommit=True) as connection:
        if request.param != "analysed":
            connection.execute("analyze")
        store = PostgresStore(dsn)
        for mode in Mode:
            store.declare(Channel(name=mode.value, mode=mode))
            old = [sample(mode.value, tenant_id=f"t{n % 3}", group_key=f"{n}") for n in range(MANY)]
            store.put_many(old)
        store.finish_all(store.claim("stream", "w", max_rows=MANY // 2, max_bytes=2**30).token)
        store.claim("stream", "w", max_rows=50)
        PostgresClock(dsn).shift(HOUR)
        for mode in Mode:
            store.put_many([sample(mode.value, tenant_id=f"t{n % 3}", group_key=f"new {n}") for n in range(60)])
        store.close()
        if request.param == "analysed":
            connection.execute("vacuum analyze")
    yield dsn
    drop_database(versions()[0], dsn)


def read(dsn: str, name: str, params: dict[str, Any]) -> tuple[int, int, int]:
    """How many rows the query returned, how many it read from end to end, and how many through an index."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(query(PACKAGE, name).encode(), params).fetchall()
        row = connection.execute(READ.encode()).fetchone()
        connection.rollback()
    assert row is not None
    return len(found), row[0], row[1]


@pytest.mark.parametrize("tenant", [None, "t1"])
@pytest.mark.parametrize("state", list(State))
def test_a_page_reads_only_its_range_of_an_index(dsn: str, state: State, tenant: str | None) -> None:
    _, through, fetched = read(dsn, f"entries_{state.value}", PLACE | {"tenant": tenant})
    assert through == 0
    passed_over = 2 * 51 if tenant is not None and state is State.PENDING else 0  # of the other two tenants
    assert fetched <= 3 * 51 + passed_over


@pytest.mark.parametrize("mode", list(Mode))
def test_a_claim_of_fresh_entries_does_not_read_the_backlog(dsn: str, mode: Mode) -> None:
    claimed, through, fetched = read(dsn, "claim", CLAIM | {"channel": mode.value})
    assert claimed == 20
    assert through == 0
    assert fetched <= 30 * 20


@pytest.mark.parametrize("mode", list(Mode))
def test_a_relay_that_rests_does_not_read_the_backlog(dsn: str, mode: Mode) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("select carrick._next_due(%s)", (mode.value,))
        row = connection.execute(READ.encode()).fetchone()
    assert row is not None
    assert row[0] == 0
    assert row[1] <= 600
