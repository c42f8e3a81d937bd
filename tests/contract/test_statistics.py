"""On PostgreSQL no call depends on what the planner believes of the tables: counted while empty, believed when full.

Each case is measured by the pages that it reads: with statistics of what is there, then with those of an empty table.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from carrick.outbox.postgres.putting import PACKAGE
from carrick.outbox.postgres.watching import FRESH
from carrick.outbox.statement import query
from tests.pages_read import pages_read

WAITING = 2_000
CLAIMED = WAITING // 2

EMPTY = """
update pg_class set reltuples = 0, relpages = greatest(relpages, 1)
 where relnamespace = 'carrick'::regnamespace and relkind in ('r', 'i')
"""
"""What `analyze` leaves of a table that was emptied and not vacuumed. What it knew of the columns stays."""

UNKNOWN = """
delete from pg_statistic s using pg_class c where c.oid = s.starelid and c.relnamespace = 'carrick'::regnamespace
"""
"""What there is of columns that were empty whenever somebody looked."""

CLAIM = f"select count(*) from carrick.claim('events', 'worker', {CLAIMED}, 1000000000)"
TOKEN = "(select l.token from carrick.lease l)"
FINISH_ALL = f"select count(*) from carrick.finish_all({TOKEN})"
CRASH = "update carrick.lease set expires_at = carrick.clock() - interval '1 hour'"
RETURN = "select carrick.release_expired('events')"
DUE = """
update carrick.work set due = due - interval '1 hour', rank = rank - interval '1 hour' where troubled
"""
DEAD = "array(select e.id from carrick.ended e)"


def finish(outcome: str, which: str = "true") -> str:
    """A call that gives those entries of the lease an outcome; both in SQL, `n` counts the entries."""
    return f"""
        select count(*) from carrick.finish({TOKEN}, (
          select jsonb_agg(jsonb_build_object('id', h.id, 'outcome', {outcome}))
            from carrick.lease l cross join lateral unnest(l.ids) with ordinality as h(id, n) where {which}))
    """


@dataclass(frozen=True)
class Case:
    """A call, and what was done to a full queue before it."""

    call: str
    before: tuple[str, ...] = ()
    options: str = '"mode": "stream"'
    entry: str = "key => null"
    """Arguments of `carrick.put`; `n` counts the entries."""
    session: bytes = b""
    """What the caller's session sets; functions set what they need."""


ORDERED = '"mode": "ordered"'
COALESCE = '"mode": "coalesce"'
BOUNDED = '"mode": "stream", "max_backlog_bytes": 100000000'
GROUPS = f"group_key => 'g' || n % {WAITING // 4}"
SINGLE = "group_key => 'g' || n"
TENANTS = "tenant_id => 't' || n % 50"

CLAIM_ONLY = query(PACKAGE, "claim_only") % {
    "channel": "'events'",
    "owner": "'worker'",
    "token": "gen_random_uuid()",
    "lease_seconds": "null",
    "fresh_seconds": "null",
}
TROUBLED = query(PACKAGE, "troubled") % {"channel": "'events'", "most": 10_000}
PINNED = query(PACKAGE, "pin_plan").replace(", true)", ", false)").encode() + b";"
ALL_BUT_ONE = f"select count(*) from carrick.claim('events', 'worker', {WAITING - 1}, 1000000000)"

CASES = {
    "claim": Case(CLAIM),
    "claim of the only one": Case(CLAIM_ONLY, (ALL_BUT_ONE, FINISH_ALL), session=FRESH),
    "claim of many tenants": Case(CLAIM, entry=TENANTS),
    "claim of tenants of all sizes": Case(CLAIM, entry="tenant_id => case when n < 50 then 't' || n else 'large' end"),
    "claim of one tenant": Case(CLAIM.replace("0000)", "0000, tenant => 't1')"), entry="tenant_id => 't' || n % 3"),
    "claim of the oldest": Case(CLAIM, entry=TENANTS, options='"mode": "stream", "fair": false'),
    "claim in order": Case(CLAIM, entry=GROUPS, options=ORDERED),
    "claim of a few in order": Case(
        CLAIM.replace(str(CLAIMED), "10"), entry="group_key => 'g' || n % 5", options=ORDERED
    ),
    "claim in order, each its own group": Case(CLAIM, entry=SINGLE, options=ORDERED),
    "claim in order behind one group": Case(
        CLAIM.replace(str(CLAIMED), "50"),
        entry=f"group_key => case when n < {WAITING - 40} then 'g' else 'g' || n end",
        options=ORDERED,
    ),
    "claim in order of the oldest": Case(CLAIM, entry=f"{TENANTS}, {GROUPS}", options=ORDERED + ', "fair": false'),
    "claim of coalesced groups": Case(CLAIM, entry=GROUPS, options=COALESCE),
    "claim after failures": Case(CLAIM, (CLAIM, finish("'retry'"), DUE)),
    "claim after a crash": Case(CLAIM, (CLAIM, CRASH, RETURN)),
    "claim in order after a crash": Case(CLAIM, (CLAIM, CRASH, RETURN), entry=SINGLE, options=ORDERED),
    "claim of coalesced groups after a crash": Case(CLAIM, (CLAIM, CRASH, RETURN), entry=GROUPS, options=COALESCE),
    "claim of a frozen batch": Case(CLAIM, (CLAIM, finish("'unsure'"), DUE)),
    "return of an expired lease": Case(RETURN, (CLAIM, CRASH)),
    "finish_all": Case(FINISH_ALL, (CLAIM,)),
    "finish_all in order": Case(FINISH_ALL, (CLAIM,), entry=SINGLE, options=ORDERED),
    "finish": Case(finish("'delivered'"), (CLAIM,)),
    "finish with failures": Case(finish("case when n % 2 = 0 then 'retry' else 'delivered' end"), (CLAIM,)),
    "finish of what had failed": Case(finish("'delivered'"), (CLAIM, finish("'retry'"), DUE, CLAIM)),
    "finish of a part": Case(finish("'delivered'", "n % 2 = 0"), (CLAIM,)),
    "finish of a part in order": Case(finish("'delivered'", "n % 2 = 0"), (CLAIM,), entry=SINGLE, options=ORDERED),
    "finish of coalesced groups, unsure": Case(finish("'unsure'"), (CLAIM,), entry=GROUPS, options=COALESCE),
    "finish in a bounded channel": Case(finish("'rejected'"), (CLAIM,), options=BOUNDED),
    "release": Case(f"select carrick.release({TOKEN})", (CLAIM,)),
    "redrive": Case("select carrick.redrive('events')", (CLAIM, finish("'rejected'")), options=BOUNDED),
    "redrive by id": Case(f"select carrick.redrive('events', {DEAD})", (CLAIM, finish("'rejected'"))),
    "discard": Case(f"select carrick.discard('events', {DEAD})", (CLAIM, finish("'rejected'"))),
    "prune": Case(
        "select carrick.prune('events')",
        (CLAIM, FINISH_ALL),
        options='"mode": "stream", "retention_days": 0, "remember_keys_days": 1',
        entry="key => 'k' || n",
    ),
    "put of known keys": Case(
        "select count(carrick.put('events', 'e', '{}', 'k' || n)) from generate_series(1, 500) n",
        entry="key => 'k' || n",
    ),
    "put into a full channel": Case(
        "select count(carrick.put('events', 'e', '{}')) from generate_series(1, 20) n",
        options=f'"mode": "stream", "max_backlog_bytes": {WAITING}, "on_full": "evict"',
    ),
    "rest": Case("select carrick._next_due('events')", entry=f"{TENANTS}, {GROUPS}", options=ORDERED),
    "list of waiting": Case("select count(*) from carrick._list_waiting('events', null, 0, 500)"),
    "list of claimed": Case("select count(*) from carrick._list_claimed('events', null, 0, 500)", (CLAIM,)),
    "list of dead": Case(
        "select count(*) from carrick._list_ended('events', 'dead', null, null, 0, 500, 500)",
        (CLAIM, finish("'rejected'")),
    ),
    "troubled": Case(TROUBLED, (CLAIM, finish("'retry'")), session=PINNED),
    "stats": Case("select carrick._stats()", (CLAIM, finish("'retry'"))),
}


def pages(dsn: str, case: Case) -> int:
    """How many pages the call reads, in a session of its own; nothing of it stays."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        # a call that reads everything again and again would not end
        connection.execute(b"set statement_timeout = '60s';" + case.session)
        return pages_read(connection, case.call)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_call_reads_the_same_whatever_the_statistics_say(postgres_dsn: str, case: Case) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("select carrick.declare_channel('events', %s::jsonb)", (f"{{{case.options}}}",))
        connection.execute(
            f"select count(carrick.put('events', 'e', '{{}}', {case.entry})) from generate_series(1, {WAITING}) n"
        )
        for statement in case.before:
            connection.execute(statement)
        connection.execute("analyze")
        known = pages(postgres_dsn, case)
        connection.execute(EMPTY)
        empty = pages(postgres_dsn, case)
        connection.execute(UNKNOWN)
        unknown = pages(postgres_dsn, case)
    assert max(empty, unknown) < 1.25 * known + 20, (
        f"read {known} pages, of tables that pass for empty {empty}, of unknown ones {unknown}"
    )
