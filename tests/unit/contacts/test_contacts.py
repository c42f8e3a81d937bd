from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest

from carrick import wiring
from carrick.contacts.contacts import Contacts
from carrick.errors import InvalidInput, SchemaMissing, UnsupportedConnection
from carrick.outbox.sqlite.migrate import migrate


@pytest.fixture
def url(sqlite_path: Path) -> str:
    wiring.migrate(f"sqlite:///{sqlite_path}")
    return f"sqlite:///{sqlite_path}"


@pytest.fixture
def contacts(url: str) -> Iterator[Contacts]:
    with Contacts.connect(url) as contacts:
        yield contacts


def test_connect_declares_the_channel_in_order_per_contact(url: str) -> None:
    with Contacts.connect(url, channel="people") as contacts:
        contacts.resolve("acme", [("email", "a@x.org")])
    with wiring.opened_store(url) as store:
        assert store.channels()["people"].mode == "ordered"
        assert [entry.event_type for entry in store.claim("people", "w")] == ["contact.created.v1"]


def test_connect_needs_the_tables_of_contacts(sqlite_path: Path) -> None:
    migrate(sqlite_path)  # the engine alone
    with pytest.raises(SchemaMissing, match="carrick migrate"):
        Contacts.connect(f"sqlite:///{sqlite_path}")


@pytest.mark.parametrize("options", [{"default_region": "XX"}, {"channel": "no channel"}])
def test_connect_refuses_what_cannot_be(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Contacts.connect(url, **options)


def test_a_connection_to_another_kind_of_database_is_refused(contacts: Contacts, newest_postgres_dsn: str) -> None:
    with (
        psycopg.connect(newest_postgres_dsn) as connection,
        pytest.raises(UnsupportedConnection, match="postgresql connection"),
    ):
        contacts.resolve_in(connection, "acme", [("email", "a@x.org")])


def test_an_async_connection_is_awaited(contacts: Contacts, sqlite_path: Path) -> None:
    async def story() -> Any:
        async with aiosqlite.connect(sqlite_path) as connection:
            made = await contacts.resolve_in(connection, "acme", [("email", "a@x.org")])
            await connection.commit()
            return made

    assert asyncio.run(story()).created
    assert contacts.find("acme", "email", "a@x.org") is not None


def test_a_connection_without_a_transaction_gets_a_short_one(contacts: Contacts, sqlite_path: Path) -> None:
    connection = sqlite3.connect(sqlite_path, isolation_level=None)
    contacts.resolve_in(connection, "acme", [("email", "a@x.org")])
    assert not connection.in_transaction
    connection.close()
    assert contacts.find("acme", "email", "a@x.org") is not None


@pytest.mark.parametrize("contact_id", ["x", 5, None])
def test_an_id_that_is_none_is_refused(contacts: Contacts, contact_id: Any) -> None:
    with pytest.raises(InvalidInput, match="contact_id: "):
        contacts.get("acme", contact_id)


def test_a_refusal_writes_nothing(contacts: Contacts) -> None:
    with pytest.raises(InvalidInput):
        contacts.resolve("acme", [("email", "a@x.org"), ("email", "b")])
    assert contacts.find("acme", "email", "a@x.org") is None
