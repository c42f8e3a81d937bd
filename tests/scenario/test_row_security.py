"""Row-level security on PostgreSQL: an application's role is held to one tenant per transaction; the owner is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from carrick.contacts.contacts import Contacts, open_contact_store
from carrick.errors import StoreReadOnly
from carrick.testing.interleaving import Session
from tests.contract.resolves import identities

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "resolve-contacts.md"
RESOLVE = "select contact_id, created from carrick.resolve_contact(%s, %s)"
ARRIVED = """
insert into carrick.inbox (tenant_id, event_id, event_type, received_at, payload) values (%s, 'e', 'x', now(), '1')
"""
STORED = "insert into carrick.intake (tenant_id, received_at, event_ids) values (%s, now(), '{e}')"
SEEN = "select distinct tenant_id from carrick.{} order by 1"


def documented_grants(role: str) -> str:
    """The grants that the page tells an operator to give."""
    text = PAGE.read_text().partition("```sql\n-- the rights of an application's role")[2].partition("```")[0]
    return "--" + text.replace("app_role", role)


@pytest.fixture
def role(newest_postgres_dsn: str) -> Iterator[str]:
    """A role with the rights that the documentation names, on a database with two tenants and row security on."""
    name = f"app_{uuid4().hex[:12]}"
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as owner:
        owner.execute(sql.SQL("create role {}").format(sql.Identifier(name)))
        owner.execute(documented_grants(name).encode())
        for tenant in ("acme", "bolt"):
            owner.execute(RESOLVE.encode(), (tenant, identities("x:1", "ann@")))
            owner.execute("insert into carrick.contact_tenants (tenant_id) values (%s)", (tenant,))
            owner.execute(ARRIVED, (tenant,))
            owner.execute(STORED, (tenant,))
        owner.execute("select carrick.enable_row_security()")
    yield name
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as owner:
        owner.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture
def app(newest_postgres_dsn: str, role: str) -> Iterator[Session]:
    with Session(newest_postgres_dsn) as session:
        session.run(f"set role {role}")
        yield session


def as_tenant(session: Session, tenant: str) -> None:
    session.begin()
    session.run("select set_config('carrick.tenant', %s, true)", tenant)


@pytest.mark.parametrize("table", ["contacts", "contact_identities", "contact_tenants", "inbox", "intake"])
def test_the_application_sees_its_tenant_only_and_the_owner_sees_all(
    app: Session, newest_postgres_dsn: str, table: str
) -> None:
    assert app.run(SEEN.format(table)) == []
    as_tenant(app, "acme")
    assert app.run(SEEN.format(table)) == [("acme",)]
    app.commit()
    assert app.run(SEEN.format(table)) == [], "the setting has outlived its transaction"
    with Session(newest_postgres_dsn) as owner:
        assert owner.run(SEEN.format(table)) == [("acme",), ("bolt",)]


def test_the_application_resolves_for_its_tenant(app: Session, newest_postgres_dsn: str) -> None:
    as_tenant(app, "acme")
    ((known, created),) = app.run(RESOLVE, "acme", identities("ann@", "cookie"))
    assert not created
    ((other, created),) = app.run(RESOLVE, "acme", identities("x:2", "ann@"))
    assert created
    app.run(RESOLVE, "acme", identities("bob"))
    assert app.run(RESOLVE, "acme", identities("bob", "cookie")) == [(known, False)]
    app.commit()
    with Session(newest_postgres_dsn) as owner:
        rows = owner.run("select event_type from carrick.record where tenant_id = 'acme' order by seq")
        assert [kind for (kind,) in rows][1:] == [
            "contact.updated.v1",
            "contact.created.v1",
            "contact.conflict.v1",
            "contact.created.v1",
            "contact.merged.v1",
        ]
        assert owner.run("select count(*) from carrick.contacts where tenant_id = 'bolt'") == [(1,)]
    assert other != known


@pytest.mark.parametrize("tenant", ["acme", None])
def test_the_application_cannot_resolve_for_another_tenant(app: Session, tenant: str | None) -> None:
    app.begin()
    if tenant is not None:
        app.run("select set_config('carrick.tenant', %s, true)", tenant)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        app.run(RESOLVE, "bolt", identities("ann@"))


def test_the_application_cannot_move_a_row_to_another_tenant(app: Session) -> None:
    as_tenant(app, "acme")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.run("update carrick.contacts set tenant_id = 'bolt'")


def test_the_application_cannot_read_what_waits_in_the_outbox(app: Session) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.run("select payload from carrick.record")


def test_it_is_turned_off_again(app: Session, newest_postgres_dsn: str) -> None:
    with Session(newest_postgres_dsn) as owner:
        owner.run("select carrick.disable_row_security()")
    assert app.run(SEEN.format("contacts")) == [("acme",), ("bolt",)]


def test_the_application_cannot_turn_it_off(app: Session) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.run("select carrick.disable_row_security()")


def test_python_names_the_tenant_in_its_own_transactions(newest_postgres_dsn: str, role: str) -> None:
    dsn = make_conninfo(newest_postgres_dsn, options=f"-c role={role}")
    with Contacts(open_contact_store(newest_postgres_dsn), dialect="postgresql") as owner:
        theirs = owner.find("bolt", "external_id", "x:1")
    from carrick.contacts.postgres.store import PostgresContacts

    with Contacts(PostgresContacts(dsn, "events"), dialect="postgresql") as contacts:
        assert not contacts.resolve("acme", [("external_id", "x:1"), ("anonymous_id", "c")]).created
        assert contacts.find("bolt", "external_id", "x:1") == theirs
        with psycopg.connect(dsn) as connection:
            connection.execute("select set_config('carrick.tenant', 'acme', true)")
            with pytest.raises(StoreReadOnly, match="row-level security"):
                contacts.resolve_in(connection, "bolt", [("anonymous_id", "new")])


def test_no_function_runs_with_the_rights_of_its_owner(newest_postgres_dsn: str) -> None:
    with Session(newest_postgres_dsn) as owner:
        assert owner.run("select proname from pg_proc where pronamespace = 'carrick'::regnamespace and prosecdef") == []
