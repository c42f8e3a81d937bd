"""A transaction that is held open anywhere in the database keeps what is taken meanwhile in the indexes."""

from __future__ import annotations

import psycopg

from tests.pages_read import pages_read

TAKEN = 4_000
NO_MARK = {"known": None, "ranks": None, "seqs": None}

CLAIM = """
select * from carrick._claim('events', 'worker', 1, 1000000000, 60, null, gen_random_uuid(),
                             %(known)s::text[], %(ranks)s::timestamptz[], %(seqs)s::bigint[], null)
"""


def test_a_claim_that_goes_on_where_the_last_left_off_does_not_read_past_all_that_was_taken(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as holder, psycopg.connect(postgres_dsn, autocommit=True) as connection:
        holder.execute("select pg_current_xact_id()")
        connection.execute("select carrick.declare_channel('events', '{\"mode\": \"stream\"}')")
        connection.execute(
            "select count(carrick.put('events', 'e', '{}')) from generate_series(1, %s)", (TAKEN + 1_000,)
        )
        at_first = pages_read(connection, CLAIM, NO_MARK)
        last = connection.execute(
            "select tenant_id, rank, seq from carrick.work order by rank, seq offset %s limit 1", (TAKEN - 1,)
        ).fetchone()
        assert last is not None
        connection.execute("select count(*) from carrick.claim('events', 'worker', %s, 1000000000)", (TAKEN,))
        mark = dict(zip(NO_MARK, ([value] for value in last), strict=True))
        from_mark, from_start = pages_read(connection, CLAIM, mark), pages_read(connection, CLAIM, NO_MARK)
    assert from_mark < 1.5 * at_first < from_start
