"""What users import: the contacts of their tenants, in their own database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from carrick.contacts.arrival import Arrival, arrive_steps
from carrick.contacts.identity import Identity, check_tenant, given_identities, given_traits, identity
from carrick.contacts.phones import check_region
from carrick.contacts.store import Contact, ContactStore, Request, Resolved
from carrick.errors import ContactNotFound, InvalidInput, UnsupportedConnection
from carrick.outbox.adapters import adapter_for
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import named_database, open_store, psycopg_needed

CHANNEL = "events"


class Contacts:
    """Finds or makes the one contact that identities belong to. Safe to share between threads."""

    def __init__(self, store: ContactStore, *, dialect: str, default_region: str | None = None) -> None:
        self.store = store
        self._dialect = dialect
        self._region = default_region and check_region(default_region)

    @classmethod
    def connect(cls, url: str, *, channel: str = CHANNEL, default_region: str | None = None) -> Self:
        """Use the contacts behind a database URL. Raises SchemaMissing (or its kin) when `carrick migrate` must run.

        Events go to the channel; it is declared, in order per contact, when nobody has. A phone number without + is
        read as of the default region (two letters).
        """
        with closing(open_store(url)) as engine:
            engine.check_schema()
            if channel not in engine.channels():
                engine.declare(Channel(name=channel, mode=Mode.ORDERED, said=("mode",)))
        store = open_contact_store(url, channel)
        try:
            store.check_schema()
            dialect = "postgresql" if named_database(url).backend == "postgres" else "sqlite"
            return cls(store, dialect=dialect, default_region=default_region)
        except BaseException:
            store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back all connections."""
        self.store.close()

    def resolve(self, tenant: str, identities: Any, traits: Mapping[str, Any] | None = None) -> Resolved:
        """Find, make or merge the one contact, in a transaction of its own; what changed is told in the outbox.

        Identities are `{"type": …, "value": …}` or pairs of both. A trait that is None goes. Raises InvalidInput,
        MissingExtra, BacklogFull or a StoreError; then nothing was written.
        """
        return self.store.resolve(check_tenant(tenant), self._request(identities, traits))

    def resolve_in(self, connection: Any, tenant: str, identities: Any, traits: Mapping[str, Any] | None = None) -> Any:
        """As `resolve`, in the transaction of the caller's connection or session; with an async one to be awaited.

        On PostgreSQL the contact stays locked until that transaction ends. Who resolves several of them in one
        transaction uses `resolve_many_in`: two transactions that take turns could wait for each other.
        """
        request = self._request(identities, traits)
        return self._adapter(connection).run(self.store.resolve_steps(check_tenant(tenant), request))

    def resolve_many_in(
        self, connection: Any, tenant: str, given: Iterable[tuple[Any, Mapping[str, Any] | None]]
    ) -> Any:
        """Several resolves of one tenant, each as (identities, traits): a list of Resolved in the same order."""
        requests = [self._request(identities, traits) for identities, traits in given]
        return self._adapter(connection).run(self.store.resolve_many_steps(check_tenant(tenant), requests))

    def arrive_in(self, connection: Any, tenant: str, arrivals: Iterable[Arrival]) -> Any:
        """Resolve the contact objects of ingested events, if the tenant has turned that on.

        A list with a Resolved, a Refused or None for each. A bad contact object is told, never raised.
        """
        steps = arrive_steps(self.store, tenant, list(arrivals), self._region)
        return self._adapter(connection).run(steps)

    def get(self, tenant: str, contact_id: UUID | str) -> Contact:
        """The contact with that id, a tombstone as well. Raises ContactNotFound or InvalidInput."""
        found = self.store.contact(check_tenant(tenant), _uuid(contact_id))
        if found is None:
            raise ContactNotFound(tenant, str(contact_id))
        return found

    def find(self, tenant: str, kind: str, value: str) -> Contact | None:
        """The living contact that is known by that identity. Raises InvalidInput or MissingExtra."""
        found = self.store.find(check_tenant(tenant), self.identity(kind, value))
        return None if found is None else self.store.contact(tenant, found)

    def identity(self, kind: str, value: str) -> Identity:
        """An identity in its one spelling. Raises InvalidInput or MissingExtra."""
        return identity(kind, value, region=self._region)

    def turn_on(self, tenant: str) -> bool:
        """Resolve the contacts of this tenant's ingested events from now on; whether that is new."""
        return self.store.turn(check_tenant(tenant), True)

    def turn_off(self, tenant: str) -> bool:
        """Resolve them no longer; whether that is new."""
        return self.store.turn(check_tenant(tenant), False)

    def tenants(self) -> list[tuple[str, datetime]]:
        """The tenants that have it on, and since when."""
        return self.store.tenants()

    def _request(self, identities: Any, traits: Mapping[str, Any] | None) -> Request:
        return Request(given_identities(identities, self._region), given_traits(traits))

    def _adapter(self, connection: Any) -> Any:
        adapter = adapter_for(connection)
        if adapter.dialect != self._dialect:
            raise UnsupportedConnection(
                "connection", f"is a {adapter.dialect} connection", f"one to the {self._dialect} database used here"
            )
        return adapter


def open_contact_store(url: str, channel: str = CHANNEL) -> ContactStore:
    """The contacts behind the URL; close it when done. Raises InvalidInput or MissingExtra."""
    database = named_database(url)
    if database.backend == "postgres":
        with psycopg_needed():
            from carrick.contacts.postgres.store import PostgresContacts
        return PostgresContacts(database.target, channel)
    from carrick.contacts.sqlite.store import SqliteContacts

    return SqliteContacts(database.target, channel)


def _uuid(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput("contact_id", f"{value!r:.80} is no UUID", "the id of a contact") from None
