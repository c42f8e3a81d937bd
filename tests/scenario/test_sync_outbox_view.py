"""public.sync_outbox: what its document does not say, and what is refused there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.scenario.queries import Connection, column, refusal, rows, run


def put(db: Connection, count: int = 1, tenant: str = "acme") -> None:
    run(
        db,
        f"""insert into sync_outbox (tenant_id, event_type, payload_json)
            select '{tenant}', 'e', '{{}}' from generate_series(1, {count})""",
    )


def take(db: Connection, worker: str) -> int:
    return run(db, f"update sync_outbox set status = 'claimed', claimed_by = '{worker}' where status = 'pending'")


def test_a_row_that_is_made_due_wakes_a_relay_that_rests(db: Connection) -> None:
    put(db)
    run(db, "update sync_outbox set next_attempt_at = now() + interval '1 hour'")
    run(db, "insert into carrick.sleeper (channel, owner, until) values ('cloud', 'r', now() + interval '1 hour')")
    run(db, "listen carrick_put")
    run(db, "update sync_outbox set next_attempt_at = now()")
    assert [heard.payload for heard in db.notifies(timeout=20, stop_after=1)] == ["cloud"]


def test_ageing_some_rows_splits_their_lease_and_leaves_the_rest(db: Connection) -> None:
    put(db, 6)
    assert take(db, "dead-pod-1") == 6
    oldest = "select id from sync_outbox order by created_at limit 2"
    run(db, f"update sync_outbox set lease_expires_at = now() - interval '1 minute' where id in ({oldest})")
    leases = rows(db, "select cardinality(ids), bytes, units, count(*) over (partition by token) from carrick.lease")
    assert sorted(leases) == [(2, 4, 6, 2), (4, 8, 6, 2)]
    assert column(db, "select carrick.release_expired('cloud')") == [2]
    counts = rows(db, "select status, count(*) from sync_outbox group by 1 order by 1")
    assert counts == [("claimed", 4), ("pending", 2)]


def test_a_row_aged_apart_does_not_count_as_having_been_alone(db: Connection) -> None:
    put(db, 2)
    take(db, "dead-pod-1")
    run(db, "update sync_outbox set lease_expires_at = now() where id = (select id from sync_outbox limit 1)")
    assert column(db, "select carrick.release_expired('cloud')") == [1]
    assert column(db, "select max(crash_count) from carrick.entry") == [0]


def test_ageing_one_entry_of_a_group_takes_its_group_along(db: Connection) -> None:
    run(db, """select carrick.declare_channel('cloud', '{"mode": "ordered"}')""")
    run(db, "select carrick.put('cloud', 'e', '1', group_key => g) from unnest('{a,a,b}'::text[]) g")
    run(db, "select carrick.claim('cloud', 'dead-pod-1')")
    first = "select id from carrick.entry order by seq limit 1"
    run(db, f"update sync_outbox set lease_expires_at = now() - interval '1 minute' where id = ({first})")
    held = "select group_key from carrick.hold h join carrick.lease l using (batch_id) where l.expires_at < now()"
    assert column(db, held) == ["a"]
    assert column(db, "select carrick.release_expired('cloud')") == [2]
    states = rows(db, "select group_key, state from carrick.entry order by seq")
    assert states == [("a", "pending"), ("a", "pending"), ("b", "claimed")]
    assert column(db, "select group_key from carrick.hold") == ["b"]


def test_an_entry_of_a_group_is_left_to_the_engines_claim(db: Connection) -> None:
    run(db, """select carrick.declare_channel('cloud', '{"mode": "ordered"}')""")
    run(db, "select carrick.put('cloud', 'e', '1', group_key => 'g')")
    problem = refusal(db, "update sync_outbox set status = 'claimed', claimed_by = 'pod'")
    assert "is one of a group in a channel of mode ordered; accepted: carrick.claim('cloud', owner)" in problem


def test_rows_of_several_tenants_are_claimed_under_one_lease_each(db: Connection) -> None:
    put(db, 2, "acme")
    put(db, 3, "bolt")
    assert take(db, "pod-1") == 5
    assert column(db, "select cardinality(ids) from carrick.lease order by 1") == [2, 3]


def test_rows_behind_a_closed_gate_are_left_out_of_a_claim(db: Connection) -> None:
    put(db, 1, "acme")
    put(db, 1, "bolt")
    run(db, "select carrick.close_gate('cloud', 'tenant:acme', null, 'pause')")
    assert take(db, "pod-1") == 1
    left = rows(db, "select tenant_id, status from sync_outbox order by 1")
    assert left == [("acme", "pending"), ("bolt", "claimed")]


def test_a_row_that_five_workers_died_with_is_dead(db: Connection) -> None:
    put(db)
    for _ in range(5):
        assert take(db, "pod-1") == 1
        run(db, "update sync_outbox set lease_expires_at = now()")
        assert column(db, "select carrick.release_expired('cloud')") == [1]
    assert rows(db, "select status, dlq_reason from sync_outbox") == [("dlq", "crash_loop")]


def test_a_suspect_of_a_crash_and_a_fresh_row_are_not_claimed_together(db: Connection) -> None:
    put(db)
    take(db, "pod-1")
    run(db, "update sync_outbox set lease_expires_at = now()")
    run(db, "select carrick.release_expired('cloud')")
    put(db)
    assert take(db, "pod-2") == 1
    assert take(db, "pod-2") == 1


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("pending", "pending"),
        ("claimed", "claimed"),
        ("sending", "claimed"),
        ("processing", "claimed"),
        ("acked", "acked"),
        ("delivered", "acked"),
        ("completed", "acked"),
        ("dlq", "dlq"),
        ("dead", "dlq"),
        ("failed", "dlq"),
    ],
)
def test_a_row_can_be_inserted_in_any_status_under_any_of_its_names(given: str, shown: str, db: Connection) -> None:
    insert = f"""insert into sync_outbox (tenant_id, event_type, status, payload_json, claimed_by)
                 values ('t', 'e', '{given}', '1', 'pod') returning status"""
    assert column(db, insert) == [shown]


def test_a_row_keeps_what_it_went_through_elsewhere(db: Connection) -> None:
    run(
        db,
        """insert into sync_outbox
             (tenant_id, event_type, payload_json, attempt_count, last_error_code, priority, occurred_at)
           values ('t', 'e', '1', 4, '503', 7, '2025-01-01T00:00Z')""",
    )
    stored = "select attempt_count, last_error_code, priority, payload_size_bytes from sync_outbox"
    assert rows(db, stored) == [(4, "503", 7, 1)]
    assert column(db, "select occurred_at = '2025-01-01T00:00Z' from sync_outbox") == [True]
    take(db, "pod")
    run(db, "update sync_outbox set status = 'acked'")
    assert column(db, "select attempt_count from sync_outbox") == [5]


def test_a_pending_row_waits_until_its_next_attempt_and_ranks_by_it(db: Connection) -> None:
    put(db, 2)
    first = "select id from sync_outbox order by created_at limit 1"
    run(db, f"update sync_outbox set next_attempt_at = now() + interval '1 hour' where id = ({first})")
    assert len(rows(db, "select id from carrick.claim('cloud', 'pod')")) == 1
    run(db, "update sync_outbox set next_attempt_at = now() - interval '1 hour' where status = 'pending'")
    run(db, "update sync_outbox set status = 'pending' where status = 'claimed'")
    assert column(db, f"select id = ({first}) from carrick.claim('cloud', 'pod', 1)") == [True]


def test_sending_is_claimed(db: Connection) -> None:
    put(db)
    take(db, "pod")
    assert column(db, "update sync_outbox set status = 'sending' returning status") == ["claimed"]


def test_a_claim_without_a_claimer_is_released(db: Connection) -> None:
    put(db)
    take(db, "pod")
    assert column(db, "update sync_outbox set claimed_by = null returning status") == ["pending"]


CLAIMED = "status = 'claimed', claimed_by = 'pod'"


@pytest.mark.parametrize(
    ("before", "change", "problem"),
    [
        ("", "status = 'gone'", "status: unknown status 'gone'; accepted: pending, claimed (sending, processing),"),
        ("", "status = null", "status: unknown status null; accepted: pending"),
        ("", "priority = 9", "priority: cannot change while an entry is pending; accepted: next_attempt_at"),
        ("", "payload_json = '2'", "payload_json: cannot change while an entry is pending; accepted: next_attempt_at"),
        ("", "tenant_id = 'x'", "tenant_id: cannot change while an entry is pending; accepted: next_attempt_at"),
        ("", "next_attempt_at = null", "next_attempt_at: null; accepted: a time"),
        ("", "status = 'claimed'", "claimed_by: empty; accepted: the name of the worker"),
        ("", f"{CLAIMED}, lease_expires_at = 'infinity'", "lease_expires_at: infinity; accepted: at most one day"),
        (
            "status = 'acked'",
            "status = 'pending'",
            "status: cannot change when an entry goes from delivered to pending; accepted: no change",
        ),
        (
            "status = 'dlq'",
            "status = 'acked'",
            "status: cannot change when an entry goes from dead to delivered; accepted: no change",
        ),
        (
            "status = 'dlq'",
            "status = 'pending', attempt_count = 3",
            "attempt_count: 3 for an entry that starts again; accepted: 0",
        ),
        (CLAIMED, "claimed_by = 'thief'", "claimed_by: entry "),
        (CLAIMED, "status = 'pending', attempt_count = 5", "attempt_count: 5 after 0; accepted: as it is, or 1"),
        (CLAIMED, "status = 'pending', last_error_code = '500'", "last_error_code, last_error_message: changed"),
    ],
)
def test_an_update_that_makes_no_sense_is_refused(before: str, change: str, problem: str, db: Connection) -> None:
    put(db)
    if before:
        assert run(db, f"update sync_outbox set {before}") == 1
    stored = rows(db, "select * from carrick.entry")
    assert refusal(db, f"update sync_outbox set {change}").startswith(problem)
    assert rows(db, "select * from carrick.entry") == stored


def test_dead_and_acked_rows_can_be_deleted_and_no_others(db: Connection) -> None:
    put(db, 3)
    run(db, "update sync_outbox set status = 'dlq' where id = (select id from sync_outbox limit 1)")
    a_pending_one = "select id from sync_outbox where status = 'pending' limit 1"
    run(db, f"update sync_outbox set status = 'acked' where id = ({a_pending_one})")
    assert run(db, "delete from sync_outbox where status in ('acked', 'dlq')") == 2
    assert "is pending and cannot be deleted" in refusal(db, "delete from sync_outbox")


@pytest.mark.parametrize(
    ("update", "where"),
    [
        ("status = 'acked'", "claimed_by = 'pod-1'"),
        ("lease_expires_at = now()", "claimed_by = 'pod-1'"),
        ("status = 'claimed', claimed_by = 'pod-1'", "claimed_by = 'pod-1' or status = 'pending'"),
    ],
)
def test_an_update_leaves_alone_what_moved_on_after_it_read(
    update: str, where: str, db: Connection, compat_url: str
) -> None:
    put(db)
    if "claimed_by" not in update:
        take(db, "pod-1")
    run(db, "select pg_advisory_lock(1)")
    waits = "with lock as materialized (select pg_advisory_lock_shared(1))"
    with ThreadPoolExecutor() as pool, psycopg.connect(compat_url, autocommit=True) as late:
        changed = pool.submit(run, late, f"{waits} update sync_outbox set {update} from lock where {where}")
        while not column(db, "select count(*) from pg_locks where locktype = 'advisory' and not granted")[0]:
            assert not changed.done()
        run(db, "update sync_outbox set status = 'pending' where status = 'claimed'")
        take(db, "pod-2")
        run(db, "select pg_advisory_unlock(1)")
        assert changed.result(timeout=60) == 0
    left = rows(db, "select status, claimed_by, lease_expires_at > now() from sync_outbox")
    assert left == [("claimed", "pod-2", True)]


def test_one_row_goes_ahead_through_a_gate_that_is_half_open(db: Connection) -> None:
    put(db, 3)
    run(db, "select carrick.fail_gate('cloud', '*', 'no answer', 60)")
    assert take(db, "pod-1") == 0
    run(db, "update carrick.gate set closed_until = now()")
    assert take(db, "pod-1") == 1
    assert take(db, "pod-2") == 0
    assert column(db, "select carrick.claim('cloud', 'relay')") == []
    ends = "select g.closed_until = l.expires_at from carrick.gate g join carrick.lease l using (channel)"
    assert column(db, ends) == [True]
    run(db, "select carrick.open_gate('cloud', '*')")
    assert take(db, "pod-2") == 2


def test_only_one_of_two_workers_goes_ahead_through_a_half_open_gate(db: Connection, compat_url: str) -> None:
    put(db, 3)
    run(db, "select carrick.fail_gate('cloud', '*', 'no answer', 60); update carrick.gate set closed_until = now()")
    with psycopg.connect(compat_url) as first:
        assert take(first, "pod-1") == 1
        assert take(db, "pod-2") == 0
    assert take(db, "pod-2") == 0
