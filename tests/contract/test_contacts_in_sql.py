"""Contacts for callers in plain SQL: the function, its refusals, and the indexes by their names."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import psycopg
import pytest

from carrick.contacts.contacts import Contacts
from carrick.contacts.identity import MOST_TRAIT_BYTES, given_traits
from carrick.errors import InvalidInput
from carrick.testing.interleaving import Session
from tests.contract.sessions import Open

RESOLVE = "select * from carrick.resolve_contact(%s, %s, %s)"

INDEXES = {
    "uniq_identity_external": "CREATE UNIQUE INDEX uniq_identity_external ON carrick.contact_identities "
    "USING btree (tenant_id, type, value) WHERE (type = 'external_id'::text)",
    "uniq_identity_email_lower": "CREATE UNIQUE INDEX uniq_identity_email_lower ON carrick.contact_identities "
    "USING btree (tenant_id, type, lower(value)) WHERE (type = 'email'::text)",
}


def identity(kind: Any, value: Any) -> str:
    return json.dumps([{"type": kind, "value": value}])


def insert(session: Session, contact: UUID, tenant: str, kind: str, value: str) -> None:
    session.run(
        "insert into carrick.contact_identities (tenant_id, contact_id, type, value) values (%s, %s, %s, %s)",
        *(tenant, contact, kind, value),
    )


def contact(session: Session, tenant: str) -> UUID:
    made: UUID = session.run("insert into carrick.contacts (tenant_id) values (%s) returning id", tenant)[0][0]
    return made


def test_an_e_mail_address_is_normalised_by_the_function(opened: Open) -> None:
    session = opened()
    ((made, *_),) = session.run(RESOLVE, "acme", identity("email", "\t Ann\u0130@X.org\n"), "{}")
    assert session.run(RESOLVE, "acme", identity("email", "aNN\u0130@x.ORG"), "{}") == [(made, False, [], [])]
    stored = session.run("select value, value_normalised from carrick.contact_identities")
    assert stored == [("Ann\u0130@X.org", "ann\u0130@x.org")]


def test_traits_need_not_be_given(opened: Open) -> None:
    session = opened()
    ((_, created),) = session.run(
        "select contact_id, created from carrick.resolve_contact('acme', %s)", identity("email", "a@x")
    )
    assert created


@pytest.mark.parametrize(
    ("tenant", "identities", "traits", "said"),
    [
        ("", identity("email", "a@x"), "{}", "tenant: is empty"),
        (None, identity("email", "a@x"), "{}", "tenant: is empty"),
        ("a" * 256, identity("email", "a@x"), "{}", "tenant: is empty or too long"),
        ("acme", None, "{}", "identities: is no list"),
        ("acme", "{}", "{}", "identities: is no list"),
        ("acme", "[]", "{}", "identities: is no list"),
        ("acme", json.dumps([{"type": "email", "value": "a@x"}] * 21), "{}", "identities: is no list of 1 to 20"),
        ("acme", "[5]", "{}", r"identities\[0\]: is no object"),
        ("acme", "[null]", "{}", r"identities\[0\]: is no object"),
        ("acme", identity("email", 5), "{}", r"identities\[0\]: is no object"),
        ("acme", identity("twitter", "a"), "{}", r"identities\[0\]: unknown type 'twitter'"),
        ("acme", identity("external_id", ""), "{}", r"identities\[0\]: external_id has 0 characters"),
        ("acme", identity("anonymous_id", "x" * 256), "{}", "has 256 characters"),
        ("acme", identity("email", "a b@x"), "{}", "is no e-mail address"),
        ("acme", identity("email", " "), "{}", "is no e-mail address"),
        ("acme", identity("email", "a" * 320 + "@x"), "{}", "is no e-mail address"),
        ("acme", identity("phone", "020 7946 0958"), "{}", "phone is not in E.164"),
        ("acme", identity("phone", "+44 20 7946 0958"), "{}", "phone is not in E.164"),
        ("acme", identity("phone", "+442079460958\n"), "{}", "phone is not in E.164"),
        ("acme", identity("email", "a@x"), "[]", "traits: is no object"),
        ("acme", identity("email", "a@x"), None, "traits: is no object"),
        (
            "acme",
            json.dumps([{"type": "external_id", "value": "a"}, {"type": "external_id", "value": "b"}]),
            "{}",
            "identities: two different external ids",
        ),
    ],
)
def test_what_cannot_be_resolved_is_refused_with_what_is_accepted(
    opened: Open, tenant: Any, identities: Any, traits: Any, said: str
) -> None:
    session = opened()
    with pytest.raises(psycopg.Error, match=said) as caught:
        session.run(RESOLVE, tenant, identities, traits)
    assert caught.value.sqlstate == "CK004"
    assert (caught.value.diag.message_hint or "").startswith("accepted: ")


@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
@pytest.mark.parametrize(
    ("requests", "said"),
    [
        (json.dumps([{"identities": json.loads(identity("email", "a@x")), "traits": 5}]), "traits: is no object"),
        (json.dumps([{"identities": json.loads(identity("email", "a@x")), "traits": None}]), "traits: is no object"),
        (json.dumps([{"identities": json.loads(identity("email", "a@x")), "traits": [1]}]), "traits: is no object"),
        (json.dumps([{"traits": {}}]), "identities: is no list"),
        ("[5]", "identities: is no list"),
        ("{}", "requests: is no list"),
        (None, "requests: is no list"),
    ],
)
def test_a_batch_that_cannot_be_resolved_is_refused_with_what_is_accepted(
    opened: Open, known: bool, requests: Any, said: str
) -> None:
    session = opened()
    if known:
        session.run(RESOLVE, "acme", identity("email", "a@x"), "{}")
    with pytest.raises(psycopg.Error, match=said) as caught:
        session.run("select * from carrick.resolve_contacts('acme', %s)", requests)
    assert caught.value.sqlstate == "CK004"
    assert (caught.value.diag.message_hint or "").startswith("accepted: ")


def filled(traits: dict[str, Any], size: int) -> dict[str, Any]:
    """The traits with a text more, so that they have exactly so many bytes as Python counts them."""
    room = size - len(given_traits({**traits, "rest": ""}))
    return {**traits, "rest": "x" * room}


@pytest.mark.parametrize(
    "traits",
    [
        {f"key {number}": [number, 1.5, True, None] for number in range(500)},
        {"said": ['a, "b": c', "\\", '\\", "', "\u00e9\u2028\n\x01", "0000000, 0"] * 200},
        {"large": [1e300, 1.5e-300, 1e16, 1e-05, -1e-07] * 200},
    ],
    ids=["blanks", "texts", "numbers"],
)
def test_traits_that_python_takes_are_taken_in_sql(opened: Open, postgres_dsn: str, traits: dict[str, Any]) -> None:
    full = filled(traits, MOST_TRAIT_BYTES)
    session = opened()
    ((made, *_),) = session.run(RESOLVE, "acme", identity("email", "a@x"), given_traits(full).decode())
    assert session.run("select traits ->> 'rest' from carrick.contacts where id = %s", made) == [(full["rest"],)]
    with Contacts.connect(postgres_dsn) as contacts:
        assert contacts.resolve("acme", [("email", "a@x")], full).contact_id == made


@pytest.mark.parametrize("call", ["resolve_contact", "resolve_contacts"])
@pytest.mark.parametrize(
    "traits",
    [{}, {f"key {number}": [number, 1.5] for number in range(500)}, {"said": ['a, "b": c', "\\", '\\", "'] * 200}],
    ids=["plain", "blanks", "texts"],
)
def test_traits_of_one_byte_more_are_refused_as_python_refuses_them(
    opened: Open, traits: dict[str, Any], call: str
) -> None:
    full = filled(traits, MOST_TRAIT_BYTES)
    more = {**full, "rest": full["rest"] + "x"}
    with pytest.raises(InvalidInput, match="traits: has 16385 bytes"):
        given_traits(more)
    request = {"identities": json.loads(identity("email", "a@x")), "traits": more}
    params = [json.dumps(request[name]) for name in request] if call == "resolve_contact" else [json.dumps([request])]
    marks = ", ".join("%s" for _ in params)
    with pytest.raises(psycopg.Error, match="traits: has 16385 bytes") as caught:
        opened().run(f"select * from carrick.{call}('acme', {marks})", *params)
    assert caught.value.sqlstate == "CK004"


def test_the_two_indexes_have_their_names_and_definitions(opened: Open) -> None:
    found = dict(opened().run("select indexname, indexdef from pg_indexes where tablename = 'contact_identities'"))
    assert {name: found[name] for name in INDEXES} == INDEXES


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [("external_id", "acct_123", "acct_123"), ("email", "Alice@Example.com", "alice@example.com")],
)
def test_an_identity_is_unique_within_a_tenant_and_free_across_them(
    opened: Open, kind: str, one: str, other: str
) -> None:
    session = opened()
    first, second, foreign = contact(session, "t1"), contact(session, "t1"), contact(session, "t2")
    insert(session, first, "t1", kind, one)
    insert(session, foreign, "t2", kind, other)
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert(session, second, "t1", kind, other)


def test_an_identity_cannot_belong_to_a_contact_of_another_tenant(opened: Open) -> None:
    session = opened()
    made = contact(session, "t1")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        insert(session, made, "t2", "external_id", "a")


def test_an_identity_added_by_other_means_is_found(opened: Open) -> None:
    session = opened()
    made = contact(session, "acme")
    insert(session, made, "acme", "email", "Ann@X.org")
    assert session.run(RESOLVE, "acme", identity("email", "ann@x.org"), "{}") == [(made, False, [], [])]


def test_one_added_by_other_means_at_the_same_moment_is_told_to_try_again(opened: Open, postgres_dsn: str) -> None:
    first, second = opened(), opened()
    made = contact(first, "acme")
    first.begin()
    insert(first, made, "acme", "email", "ann@x.org")
    step = second.start(RESOLVE, "acme", identity("email", "ann@x.org"), "{}")
    step.until_it_waits(postgres_dsn)
    first.commit()
    with pytest.raises(psycopg.errors.SerializationFailure, match="try again"):
        step.result()
    assert second.run("select count(*) from carrick.contacts") == [(1,)]


def test_the_channel_can_be_another(opened: Open) -> None:
    session = opened()
    session.run("select carrick.resolve_contact('acme', %s, '{}', 'people')", identity("email", "a@x"))
    assert session.run("select channel from carrick.record") == [("people",)]


def test_a_tombstone_leads_to_the_living_contact(opened: Open) -> None:
    session = opened()
    ((one, *_),) = session.run(RESOLVE, "acme", identity("email", "a@x"), "{}")
    ((two, *_),) = session.run(RESOLVE, "acme", identity("email", "b@x"), "{}")
    both = json.dumps([{"type": "email", "value": "a@x"}, {"type": "email", "value": "b@x"}])
    session.run(RESOLVE, "acme", both, "{}")
    assert session.run("select carrick.living_contact('acme', %s)", two) == [(one,)]
    assert session.run("select carrick.living_contact('other', %s)", two) == [(None,)]
