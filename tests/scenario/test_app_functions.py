"""app.outbox_claim and app.outbox_mark_delivered beyond their document, and how their names come into a database."""

from __future__ import annotations

import psycopg
import pytest

from carrick.errors import InvalidInput
from carrick.wiring import migrate, pending_migrations
from tests.postgres_server import drop_database, fresh_database
from tests.scenario.queries import Connection, column, refusal, rows, run
from tests.scenario.test_examples import examples

ONE = "11111111-1111-1111-1111-111111111111"
TWO = "22222222-2222-2222-2222-222222222222"
TENANT = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


@pytest.mark.parametrize("limit", ["null", "0", "-1", "10001", "2147483647"])
def test_a_claim_with_a_limit_that_makes_no_sense_is_refused(limit: str, db: Connection) -> None:
    problem = refusal(db, f"select app.outbox_claim({limit}, '{ONE}', null)")
    assert problem == f"p_limit: {limit} is out of range; accepted: 1 to 10000"


@pytest.mark.parametrize("call", ["app.outbox_claim(1, null, null)", "app.outbox_mark_delivered(null, '{}')"])
def test_a_call_without_a_token_is_refused(call: str, db: Connection) -> None:
    assert refusal(db, f"select {call}").startswith("p_token: must not be null; accepted: ")


def test_a_claim_of_one_tenant_takes_no_others(db: Connection) -> None:
    run(
        db,
        f"""insert into outbox (topic, payload, tenant_id)
            values ('a', '1', '{TENANT}'), ('b', '2', '{ONE}'), ('c', '3', null)""",
    )
    assert rows(db, f"select topic, tenant_id::text from app.outbox_claim(10, '{ONE}', '{TENANT}')") == [("a", TENANT)]
    assert column(db, f"select topic from app.outbox_claim(10, '{TWO}', null)") == ["b", "c"]


def test_a_claim_goes_by_age_across_tenants_and_leaves_the_youngest(db: Connection) -> None:
    for hours, tenant in ((1, "null"), (4, f"'{TENANT}'"), (2, f"'{TENANT}'"), (3, f"'{TENANT}'")):
        run(
            db,
            f"""insert into outbox (topic, payload, tenant_id, created_at)
                values ('{hours}', '0', {tenant}, now() - interval '{hours} hours')""",
        )
    assert column(db, f"select topic from app.outbox_claim(3, '{ONE}', null)") == ["4", "3", "2"]


def test_a_claim_takes_as_many_rows_as_asked_however_large_they_are(db: Connection) -> None:
    run(db, "insert into outbox (topic, payload) select 'e', to_jsonb(repeat('x', 600000)) from generate_series(1, 3)")
    assert len(rows(db, f"select id from app.outbox_claim(3, '{ONE}', null)")) == 3


def test_only_the_given_rows_are_marked_delivered_and_only_once(db: Connection) -> None:
    run(db, "insert into outbox (topic, payload) select 'e', '0' from generate_series(1, 3)")
    first, second, third = column(db, f"select id::text from app.outbox_claim(3, '{ONE}', null)")
    mark = f"select app.outbox_mark_delivered('{ONE}', array['{first}', '{second}', '{first}']::uuid[])"
    assert column(db, mark) == [2]
    assert column(db, mark) == [0]
    assert column(db, f"select app.outbox_mark_delivered('{ONE}', null)") == [0]
    assert column(db, "select id::text from outbox where delivered_at is null") == [third]


def test_a_token_delivers_nothing_of_another_channel_here(db: Connection) -> None:
    run(db, "select carrick.put('cloud', 'e', '1')")
    held = column(db, f"select id::text from carrick.claim('cloud', 'pod', token => '{ONE}')")
    assert column(db, f"select app.outbox_mark_delivered('{ONE}', array['{held[0]}']::uuid[])") == [0]


def test_a_claim_takes_over_an_expired_lease_and_the_old_token_is_worth_nothing(db: Connection) -> None:
    run(db, "insert into outbox (topic, payload) values ('e', '0')")
    held = column(db, f"select id::text from app.outbox_claim(1, '{ONE}', null)")
    assert column(db, f"select id::text from app.outbox_claim(1, '{TWO}', null)") == []
    run(db, f"update outbox set lease_expires_at = now() - interval '1 second' where processing_token = '{ONE}'")
    assert column(db, f"select id::text from app.outbox_claim(1, '{TWO}', null)") == held
    assert column(db, f"select app.outbox_mark_delivered('{ONE}', array['{held[0]}']::uuid[])") == [0]


def test_a_payload_that_jsonb_cannot_hold_dies_alone(db: Connection) -> None:
    run(db, r"""select carrick.put('outbox', 'odd', '"a\u0000b"'), carrick.put('outbox', 'fine', '1')""")
    assert rows(db, "select topic, payload is null from outbox order by topic") == [("fine", False), ("odd", True)]
    assert column(db, f"select topic from app.outbox_claim(10, '{ONE}', null)") == ["fine"]
    dead = rows(db, "select event_type, last_error_code from carrick.entry where state = 'dead'")
    assert dead == [("odd", "not_jsonb")]


@pytest.mark.parametrize("name", ["outbox", "sync_outbox"])
def test_a_table_of_that_name_is_not_touched_and_the_error_says_what_to_do(name: str, plain_url: str) -> None:
    with psycopg.connect(plain_url, autocommit=True) as connection:
        connection.execute(f"create table public.{name} (id int); insert into public.{name} values (7)".encode())
        with pytest.raises(InvalidInput, match=rf"public\.{name}: exists already as a table; accepted: ") as raised:
            migrate(plain_url, compat=True)
        assert "docs/how-to/move-from-an-outbox-table.md" in str(raised.value)
        assert connection.execute(f"select id from public.{name}".encode()).fetchall() == [(7,)]
        connection.execute(f"alter table public.{name} rename to {name}_before".encode())
    migrate(plain_url, compat=True)
    assert pending_migrations(plain_url, compat=True) == []


OLD_TABLES = """
create table public.outbox (
  id uuid, topic text, payload jsonb, tenant_id uuid, created_at timestamptz, attempts int, delivered_at timestamptz);
insert into public.outbox
select gen_random_uuid(), topic, '{}', null, now() - age, attempts, delivered_at
  from (values ('young', interval '1 hour', 0, null), ('old', interval '2 hours', 3, null),
               ('gone', interval '3 hours', 1, now())) as v(topic, age, attempts, delivered_at);
create table sync_outbox_before (
  id uuid, tenant_id text, event_type text, status text, next_attempt_at timestamptz, payload_json json, priority int,
  occurred_at timestamptz, attempt_count int);
insert into sync_outbox_before
select gen_random_uuid(), 't', status, status, now(), '1', 5, now(), 2 from unnest('{claimed,acked}'::text[]) status;
"""


def test_what_waits_in_old_tables_moves_as_the_page_about_it_says(plain_url: str) -> None:
    make_room, *move = examples("docs/how-to/move-from-an-outbox-table.md", "sql")
    with psycopg.connect(plain_url, autocommit=True) as connection:
        connection.execute(OLD_TABLES.encode())
        connection.execute(make_room.encode())
        migrate(plain_url, compat=True)
        for text in move[:2]:
            connection.execute(text.encode())
        moved = rows(
            connection, "select event_type, attempt_count, priority from carrick.entry order by next_attempt_at"
        )
        assert moved == [("old", 3, 0), ("young", 0, 0), ("claimed", 2, 5)]
        for text in move[2:]:
            connection.execute(text.encode())
        assert column(connection, "select state from carrick.entry where channel = 'outbox'") == ["delivered"] * 2


def test_functions_of_that_name_are_not_replaced(postgres_version: int) -> None:
    url = fresh_database(postgres_version, migrated=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create schema app")
        connection.execute("create function app.outbox_claim(int, uuid, uuid) returns int language sql as 'select 7'")
        with pytest.raises(InvalidInput, match=r"schema app: app\.outbox_claim\(integer,uuid,uuid\) exists already"):
            migrate(url)
        connection.execute("drop function app.outbox_claim")
    assert "engine/0010_app_functions" in migrate(url)
    drop_database(postgres_version, url)


def test_the_views_are_made_once(plain_url: str) -> None:
    assert migrate(plain_url, compat=True) == [
        "compat/0001_outbox_view",
        "compat/0002_sync_outbox_view",
        "contacts-compat/0001_contact_identities_view",
    ]
    assert migrate(plain_url, compat=True) == []
