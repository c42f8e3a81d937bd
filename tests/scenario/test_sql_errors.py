"""Every SQL function answers a bad value in one form: SQLSTATE CK…, a message that names it, a hint that helps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.postgres_server import drop_database, fresh_database, versions

LONG = "repeat('x', 5000)"
NOBODY = "'00000000-0000-0000-0000-000000000000'::uuid"
TOKEN = "(select token from held)"
ONE = "jsonb_build_object('id', (select id from held), 'outcome', 'retry')"


def option(name: str, *values: str) -> list[str]:
    """Bad values of one option of a channel, as JSON."""
    return [f"""'new', '{{"{name}": {value}}}'""" for value in values]


CASES: dict[str, list[str]] = {
    "carrick.declare_channel": [
        *["null", "''", "'a b'", LONG],
        *["'new', '[]'", "'new', '5'", "'new', 'null'", """'things', '{"mode": "ordered"}'"""],
        *["'new', '{}', array['nope']", "'new', '{}', array[null::text]"],
        *option("mode", '"fast"', "null", "5", '{"a": 1}'),
        *option("one_tenant", "7"),
        *option("fair", '"maybe"', "null"),
        *option("batch_rows", "0", '"many"', "1.5", "1e30", "null", "[]"),
        *option("batch_bytes", "0"),
        *option("lease_seconds", "0"),
        *option("max_attempts", "0"),
        *option("backoff_base_seconds", "0", '"NaN"', "1000"),
        *option("backoff_cap_seconds", "1e9"),
        *option("max_payload_bytes", "1"),
        *option("max_backlog_bytes", "0", "-5"),
        *option("on_full", '"x"'),
        *option("retention_days", "-1"),
        *option("dead_retention_days", "1e9", '"Infinity"'),
        *option("remember_keys_days", "null"),
        *option("name", '"other"'),
        *option("last_error_at", '"2020-01-01"'),
        *option("speed", "5"),
    ],
    "carrick.put": [
        *["null, 'e', '1'", "'nope', 'e', '1'", "'things', null, '1'", "'things', '', '1'", f"'things', {LONG}, '1'"],
        *["'things', 'e', null", "'things', 'e', to_json(repeat('x', 2000000))", "'things', 'e', '2', key => 'taken'"],
        *[
            f"'things', 'e', '1', {name} => {value}"
            for name in ("key", "group_key", "principal")
            for value in ("''", LONG)
        ],
        f"'things', 'e', '1', tenant_id => {LONG}",
        *[f"'things', 'e', '1', priority => {value}" for value in (1001, -1001)],
        *[
            f"'things', 'e', '1', headers => {value}"
            for value in ("'[]'", "'5'", "'null'", "jsonb_build_object('a', repeat('x', 70000))")
        ],
        *[
            f"'things', 'e', '1', occurred_at => '{value}'"
            for value in ("infinity", "-infinity", "0001-06-01 BC", "0001-06-01", "20000-01-01")
        ],
        *[f"'things', 'e', '1', delay_seconds => {value}" for value in ("-1", "'NaN'", "1e300")],
        "'things', 'e', '1', max_wait_seconds => 5",
        *[f"'things', 'e', '1', delay_seconds => 1, max_wait_seconds => {value}" for value in ("-1", "'NaN'")],
    ],
    "carrick.claim": [
        *["null, 'me'", "'nope', 'me'", "'things', null", "'things', ''"],
        *[f"'things', 'me', max_rows => {value}" for value in (0, -1, 10001)],
        *[f"'things', 'me', max_bytes => {value}" for value in (0, -1)],
        *[f"'things', 'me', lease_seconds => {value}" for value in (0, 86401)],
        *[f"'things', 'me', fresh_seconds => {value}" for value in ("-1", "'NaN'", "1e300")],
    ],
    "carrick.renew": [f"{TOKEN}, {value}" for value in ("0", "null", "-1", "86401")],
    "carrick.finish": [
        *[f"{TOKEN}, {value}" for value in ("null", "'{}'", "'5'", "'[5]'", "'[{}]'")],
        f"""{TOKEN}, '[{{"outcome": "delivered"}}]'""",
        f"""{TOKEN}, '[{{"id": "x", "outcome": "delivered"}}]'""",
        f"""{TOKEN}, jsonb_build_array({ONE} || '{{"outcome": "nope"}}')""",
        *[f"{TOKEN}, jsonb_build_array({ONE} || '{{\"after\": {value}}}')" for value in ('"x"', "[]", "true", "1e400")],
    ],
    "carrick.close_gate": [
        *["null, '*', 1, 'r'", "'nope', '*', 1, 'r'"],
        *[f"'things', {scope}, 1, 'r'" for scope in ("null", "''", "'user:x'", "'tenant:'")],
        *[f"'things', '*', {value}, 'r'" for value in ("-1", "'NaN'", "1e300")],
        *["'things', '*', 1, 'r', 'nobody'", "'things', '*', 1, 'r', null"],
    ],
    "carrick.open_gate": [
        "null, '*'",
        "'nope', '*'",
        "'things', null",
        "'things', 'user:x'",
        "'things', '*', 'nobody'",
    ],
    "carrick.fail_gate": [
        *["null, '*', 'r', 1", "'nope', '*', 'r', 1", "'things', 'x', 'r', 1"],
        *[f"'things', '*', 'r', {value}" for value in ("0", "-1", "null", "'NaN'", "1e300")],
    ],
    "carrick.redrive": [
        *["null", "'nope'", "'things', max_rows => 0"],
        *[f"'things', spread_seconds => {value}" for value in ("-1", "'NaN'", "1e300", "null")],
    ],
    "carrick.release_expired": ["null", "'nope'", *[f"'things', {value}" for value in ("-1", "'NaN'", "null")]],
    "carrick.prune": ["null", "'nope'"],
    "carrick.discard": ["null, '{}'", "'nope', '{}'"],
    "app.outbox_claim": [*[f"{value}, {NOBODY}, null" for value in ("0", "null", "10001")], "1, null, null"],
    "app.outbox_mark_delivered": ["null, '{}'"],
    "carrick.resolve_contact": [
        *["null, '[]'", "'', '[]'", f"{LONG}, '[]'"],
        *[
            f"'t', {value}"
            for value in ("null", "'[]'", "'5'", "'[5]'", "'[{}]'", """'[{"type": "phone", "value": "abc"}]'""")
        ],
    ],
    "carrick.resolve_contacts": ["'t', null", "'t', '{}'", "'t', '[5]'", "'t', '[{}]'"],
}
TAKES_ANYTHING = {
    "carrick.clock",
    "carrick.uuid7",
    "carrick.note",
    "carrick.finish_all",
    "carrick.release",
    "carrick.living_contact",
    "carrick.enable_row_security",
    "carrick.disable_row_security",
}
"""A token that is none changes nothing; what is noted may be any JSON."""
OF_PROCESSES = {"carrick.ingest_batch", "carrick.prune_inbox"}
"""Only Carrick's own processes call them."""

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """A connection in a transaction; one entry is held, one has the key `taken`."""
    url = fresh_database(versions()[0])
    with psycopg.connect(url) as connection:
        connection.execute("select carrick.declare_channel('things')")
        connection.execute("select carrick.put('things', 'e', '1', key => 'taken')")
        connection.execute(
            "create temp table held as select id, lease_token as token from carrick.claim('things', 'me')"
        )
        yield connection
    drop_database(versions()[0], url)


def test_every_function_for_users_is_tried(connection: Connection) -> None:
    found = connection.execute(
        "select pronamespace::regnamespace || '.' || proname from pg_proc where prokind = 'f' "
        "and pronamespace in ('carrick'::regnamespace, 'app'::regnamespace) and proname !~ '^_'"
    ).fetchall()
    assert {name for (name,) in found} == CASES.keys() | TAKES_ANYTHING | OF_PROCESSES


@pytest.mark.parametrize(
    ("function", "arguments"), [(function, given) for function, cases in CASES.items() for given in cases]
)
def test_a_bad_value_is_named_with_what_is_accepted(connection: Connection, function: str, arguments: str) -> None:
    with pytest.raises(psycopg.Error) as refused, connection.transaction():
        connection.execute(f"select * from {function}({arguments})".encode())
    said = refused.value.diag
    assert (said.sqlstate or "").startswith("CK"), refused.value
    assert said.message_hint
    assert (said.message_primary or "")[0].isalpha()
