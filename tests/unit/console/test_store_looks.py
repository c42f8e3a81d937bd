"""What the console asks of a store, on each database."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from carrick.entry import Outcome
from carrick.errors import EntryNotFound, InvalidInput
from carrick.outbox.postgres.putting import PACKAGE
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.statement import query
from carrick.outbox.store import MOST_COUNTED, MOST_TENANTS, Store
from carrick.testing.samples import OWNER, claim, declare, finish_each, put, put_run, sample

pytestmark = pytest.mark.slow

EMPTIED = """
update pg_class set reltuples = 0, relpages = greatest(relpages, 1)
 where relnamespace = 'carrick'::regnamespace and relkind in ('r', 'i')
"""
"""What is known of tables that were analysed when everything had been removed from them."""

READ = """
select coalesce(sum(seq_tup_read), 0)::int, coalesce(sum(idx_tup_fetch), 0)::int
  from pg_stat_xact_user_tables where schemaname = 'carrick' and relname in ('record', 'work', 'ended')
"""


def test_the_contents_of_an_entry_are_what_was_put(store: Store) -> None:
    declare(store)
    entry = put(store, payload=b'{"a": "\xc3\xa9"}', key="k", priority=3, headers=b'{"x":"y"}', traceparent="00-ab")
    found = store.contents(entry, characters=100)
    assert (found.payload, found.cut, found.payload_size_bytes) == ('{"a": "é"}', False, 11)
    assert (found.key, found.priority, found.headers, found.traceparent) == ("k", 3, {"x": "y"}, "00-ab")


def test_a_long_payload_is_cut_and_says_so(store: Store) -> None:
    declare(store)
    entry = put(store, payload=b'"' + b"x" * 1000 + b'"')
    whole, cut = store.contents(entry, characters=1002), store.contents(entry, characters=1001)
    assert (len(whole.payload), whole.cut) == (1002, False)
    assert (len(cut.payload), cut.cut) == (1001, True)


def test_contents_of_what_is_not_there_are_refused(store: Store) -> None:
    with pytest.raises(EntryNotFound):
        store.contents(uuid4(), characters=10)
    with pytest.raises(InvalidInput):
        store.contents(uuid4(), characters=0)


def test_tenants_come_with_the_most_waiting_first(store: Store) -> None:
    declare(store)
    declare(store, "others")
    put_run(store, 2, tenant_id="few")
    put_run(store, 5, tenant_id="many")
    put_run(store, 1)
    put_run(store, 9, "others", tenant_id="elsewhere")
    claim(store, tenant="few", max_rows=1)
    found = store.tenants("things")
    assert [(one.tenant_id, one.waiting) for one in found] == [("many", 5), ("", 1), ("few", 1)]
    assert len(store.tenants("things", max_rows=2)) == 2
    assert store.tenants("nowhere") == []


def test_of_a_tenant_and_of_tenants_only_so_many_are_counted(store: Store) -> None:
    declare(store)
    store.put_many([sample(tenant_id=f"t{number:03}") for number in range(MOST_TENANTS)])
    put_run(store, MOST_COUNTED + 5, tenant_id="big")
    put_run(store, 7, tenant_id="zz")
    found = store.tenants("things", max_rows=MOST_TENANTS)
    assert (found[0].tenant_id, found[0].waiting) == ("big", MOST_COUNTED)
    assert len(found) == MOST_TENANTS
    assert "zz" not in {one.tenant_id for one in found}


def test_duties_and_leases_are_signs_of_life(store: Store) -> None:
    declare(store)
    put_run(store, 3)
    store.take_duty("janitor:things", "worker-2", 60)
    batch = claim(store)
    signs = {(sign.owner, sign.doing): sign for sign in store.signs()}
    lease, duty = signs[OWNER, "lease"], signs["worker-2", "duty"]
    assert (lease.what, lease.entries, lease.until) == ("things", 3, batch.lease_expires_at)
    assert lease.since is not None
    assert (duty.what, duty.since) == ("janitor:things", None)
    store.finish_all(batch.token)
    assert [sign.doing for sign in store.signs()] == ["duty"]


def test_on_postgres_a_relay_that_rests_is_seen(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn)
    declare(store)
    store.rest("things", "relay-7", 10)
    assert [(sign.owner, sign.doing, sign.what) for sign in store.signs()] == [("relay-7", "rest", "things")]
    store.close()


@pytest.mark.parametrize("statistics", ["select", "analyze", EMPTIED], ids=["as they are", "analysed", "emptied"])
def test_looking_reads_no_table_through_on_postgres(postgres_dsn: str, statistics: str) -> None:
    store = PostgresStore(postgres_dsn)
    declare(store)
    for tenant in ("a", "b"):
        store.put_many([sample(tenant_id=tenant, key=f"{n}", group_key=f"{n % 9}") for n in range(1500)])
    for outcome in (Outcome.delivered(), Outcome.rejected()):
        finish_each(store, claim(store, max_rows=800), outcome)
    entry = put(store, tenant_id="c")
    pairs = {"channels": ["things", "things"], "tenants": ["a", "b"], "rows": 20}
    ended = {"channel": "things", "text": "a", "tenant": None, "look": 150, "rows": 20}
    asked: dict[str, dict[str, Any]] = {
        "tenants": {"channel": "things", "look": 200, "most": 100, "rows": 20},
        "find_keyed": {"pairs": 100},
        "find_grouped": {"pairs": 100},
        "find_key": {"text": "1499", **pairs},
        "find_group": {"text": "8", **pairs},
        "find_tenant": {"text": "b", "rows": 20},
        "find_claimed": {"text": "b", "tenant": None, "rows": 20},
        "find_dead": ended,
        "find_delivered": ended,
        "lines": {"ids": [entry]},
        "discard_all": {"channel": "things", "reason": None, "died_by": None, "max_rows": 5},
        "contents": {"id": entry, "characters": 100},
        "signs": {"rows": 500},
    }
    with psycopg.connect(postgres_dsn) as connection:
        for name, params in asked.items():
            connection.execute(statistics.encode())
            if "pin_plan" in query(PACKAGE, name):
                connection.execute(query(PACKAGE, "pin_plan").encode())
            before = connection.execute(READ).fetchone()
            connection.execute(query(PACKAGE, name).encode(), params)
            after = connection.execute(READ).fetchone()
            assert before is not None
            assert after is not None
            assert after[0] - before[0] == 0, f"{name} reads a table through"
            assert after[1] - before[1] < 500, f"{name} reads too much"
            connection.rollback()
    store.close()
