"""public.contact_identities (`--compat`): identities written by hand, as the smoke test of uniqueness does."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

INSERT = """
insert into contact_identities (tenant_id, contact_id, type, value)
values (%(one)s::uuid, gen_random_uuid(), %(type)s, %(first)s), (%(two)s::uuid, gen_random_uuid(), %(type)s, %(second)s)
"""
PAIRS = [("external_id", "acct_123", "acct_123"), ("email", "Alice@Example.com", "alice@example.com")]


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
def test_one_identity_for_two_contacts_of_a_tenant_is_refused(
    compat_url: str, kind: str, first: str, second: str
) -> None:
    tenant = uuid4()
    given = {"one": tenant, "two": tenant, "type": kind, "first": first, "second": second}
    with psycopg.connect(compat_url) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(INSERT, given)


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
def test_two_tenants_may_have_the_same_and_a_resolve_finds_it(
    compat_url: str, kind: str, first: str, second: str
) -> None:
    one, two = uuid4(), uuid4()
    given = {"one": one, "two": two, "type": kind, "first": first, "second": second}
    with psycopg.connect(compat_url) as connection:
        connection.execute(INSERT, given)
        owner = connection.execute("select contact_id from contact_identities where tenant_id = %s", (str(one),))
        found = connection.execute(
            "select contact_id, created from carrick.resolve_contact(%s, "
            "jsonb_build_array(jsonb_build_object('type', %s::text, 'value', %s::text)))",
            (str(one), kind, second),
        )
        assert found.fetchone() == (*(owner.fetchone() or ()), False)
        connection.rollback()
