"""public.outbox: what its document does not say, and what is refused there."""

from __future__ import annotations

import psycopg
import pytest

from tests.scenario.queries import Connection, column, refusal, rows, run

ONE = "11111111-1111-1111-1111-111111111111"
TWO = "22222222-2222-2222-2222-222222222222"
TENANT = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


def put(db: Connection, count: int = 1) -> None:
    run(db, f"insert into outbox (topic, payload) select 'e' || n, '0' from generate_series(1, {count}) n")


def test_an_insert_returns_what_was_stored(db: Connection) -> None:
    insert = "insert into outbox (topic, payload) values ('e', '{}') "
    assert rows(db, insert + "returning id is not null, created_at is not null, attempts") == [(True, True, 0)]
    insert = f"insert into outbox (id, topic, payload, tenant_id) values ('{ONE}', 'e', '{{}}', '{TENANT}') "
    assert rows(db, insert + "returning id::text, tenant_id::text") == [(ONE, TENANT)]
    stored = rows(db, f"select tenant_id, event_type, state from carrick.entry where id = '{ONE}'")
    assert stored == [(TENANT, "e", "pending")]


def test_an_entry_without_a_tenant_or_with_one_that_is_no_uuid_has_none_in_the_view(db: Connection) -> None:
    run(db, "select carrick.put('outbox', 'e', '1'), carrick.put('outbox', 'e', '1', tenant_id => 'acme')")
    assert column(db, "select tenant_id from outbox") == [None, None]


@pytest.mark.parametrize(
    ("values", "problem"),
    [("null, '1'", "topic: null, not characters"), ("'', '1'", "topic: 0 characters"), ("'e', null", "payload: null")],
)
def test_an_insert_without_topic_or_payload_is_refused(values: str, problem: str, db: Connection) -> None:
    assert refusal(db, f"insert into outbox (topic, payload) values ({values})").startswith(f"{problem}; accepted: ")


def test_the_same_id_twice_is_refused_as_by_a_table(db: Connection) -> None:
    run(db, f"insert into outbox (id, topic, payload) values ('{ONE}', 'e', '1')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        run(db, f"insert into outbox (id, topic, payload) values ('{ONE}', 'e', '1')")


def test_a_row_can_be_inserted_as_claimed_or_as_delivered(db: Connection) -> None:
    run(
        db,
        f"""insert into outbox (topic, payload, processing_token, delivered_at, attempts)
            values ('claimed', '0', '{ONE}', null, 2), ('delivered', '0', null, now() - interval '3 days', 4)""",
    )
    assert rows(db, "select event_type, state, attempt_count from carrick.entry order by 1") == [
        ("claimed", "claimed", 2),
        ("delivered", "delivered", 4),
    ]
    assert column(db, "select delivered_at < now() - interval '2 days' from outbox where topic = 'delivered'") == [True]


def test_clearing_the_processing_token_by_hand_releases_without_an_attempt(db: Connection) -> None:
    put(db)
    run(db, f"select app.outbox_claim(1, '{ONE}', null)")
    assert run(db, f"update outbox set processing_token = null where processing_token = '{ONE}'") == 1
    assert column(db, f"select attempts from app.outbox_claim(1, '{TWO}', null)") == [0]


def test_clearing_the_processing_token_with_one_more_attempt_is_a_retry(db: Connection) -> None:
    put(db)
    run(db, f"select app.outbox_claim(1, '{ONE}', null)")
    update = "update outbox set processing_token = null, attempts = attempts + 1 returning processing_token, attempts"
    assert rows(db, update) == [(None, 1)]
    assert column(db, "select next_attempt_at > now() from carrick.entry") == [True]


def test_a_waiting_row_moves_with_its_created_at(db: Connection) -> None:
    put(db, 2)
    run(db, "update outbox set created_at = created_at - interval '1 day' where topic = 'e2'")
    assert column(db, f"select topic from app.outbox_claim(1, '{ONE}', null)") == ["e2"]


def test_a_waiting_row_can_be_declared_delivered(db: Connection) -> None:
    put(db)
    assert run(db, "update outbox set delivered_at = now() - interval '1 hour'") == 1
    assert rows(db, "select state, attempt_count, delivered_at < now() - interval '59 minutes' from carrick.entry") == [
        ("delivered", 1, True)
    ]


def test_a_dead_entry_is_neither_a_waiting_nor_a_delivered_row(db: Connection) -> None:
    put(db)
    held = column(db, f"select id::text from app.outbox_claim(1, '{ONE}', null)")
    run(db, f"""select carrick.finish('{ONE}', '[{{"id": "{held[0]}", "outcome": "rejected"}}]')""")
    assert column(db, "select state from carrick.entry") == ["dead"]
    assert rows(db, "select id from outbox") == []


@pytest.mark.parametrize(
    ("before", "change", "problem"),
    [
        ("", "topic = 'other'", "topic: cannot change while an entry is pending; accepted: created_at"),
        ("", "payload = '1'", "payload: cannot change while an entry is pending; accepted: created_at"),
        ("", "attempts = 3", "attempts: cannot change while an entry is pending; accepted: created_at"),
        (
            "delivered_at = now()",
            "delivered_at = null",
            "delivered_at: cannot change when an entry goes from delivered to pending; accepted: no change",
        ),
        (
            f"processing_token = '{ONE}'",
            f"processing_token = '{TWO}'",
            "processing_token: cannot change while an entry is claimed; accepted: lease_expires_at",
        ),
        (
            f"processing_token = '{ONE}'",
            "processing_token = null, attempts = 7",
            "attempts: 7 after 0; accepted: as it is, or 1",
        ),
        (f"processing_token = '{ONE}'", "lease_expires_at = null", "lease_expires_at: null; accepted: at most one day"),
        (
            f"processing_token = '{ONE}'",
            "lease_expires_at = 'infinity'",
            "lease_expires_at: infinity; accepted: at most one day",
        ),
    ],
)
def test_an_update_that_makes_no_sense_is_refused(before: str, change: str, problem: str, db: Connection) -> None:
    put(db)
    if before:
        assert run(db, f"update outbox set {before}") == 1
    stored = rows(db, "select * from carrick.entry")
    assert refusal(db, f"update outbox set {change}").startswith(problem)
    assert rows(db, "select * from carrick.entry") == stored


@pytest.mark.parametrize("taken", [False, True])
def test_a_row_that_waits_or_is_claimed_cannot_be_deleted(taken: bool, db: Connection) -> None:
    run(db, f"insert into outbox (id, topic, payload) values ('{ONE}', 'e', '0')")
    if taken:
        run(db, f"select app.outbox_claim(1, '{TWO}', null)")
    state = "claimed" if taken else "pending"
    assert refusal(db, "delete from outbox") == (
        f"outbox: entry {ONE} is {state} and cannot be deleted; "
        "accepted: only what was delivered or is dead; nothing but retention removes an entry"
    )
    assert column(db, "select state from carrick.entry") == [state]


def test_a_deleted_row_leaves_the_memory_of_its_key(db: Connection) -> None:
    run(db, """select carrick.declare_channel('outbox', '{"remember_keys_days": 1}')""")
    run(db, "select carrick.put('outbox', 'e', '1', key => 'k')")
    run(db, "update outbox set delivered_at = now()")
    assert run(db, "delete from outbox") == 1
    assert rows(db, "select created, state from carrick.put('outbox', 'e', '1', key => 'k')") == [(False, "delivered")]
