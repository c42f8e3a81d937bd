"""`carrick contacts`: who is known, and whose events are resolved on arrival."""

from __future__ import annotations

from uuid import UUID

from cyclopts import App

from carrick import wiring
from carrick.cli.printing import AsJson, print_json, print_line, print_table, shown
from carrick.errors import ContactNotFound
from carrick.settings import read_settings

app = App(name="contacts", help="Look at contacts; turn the resolving of ingested events on and off.")


@app.command
def on(tenant: str, /, *, database: str | None = None) -> int:
    """Resolve the contacts of this tenant's ingested events from now on.

    Parameters
    ----------
    tenant
        The tenant.
    database
        The database to use instead of DATABASE_URL.
    """
    return _turn(tenant, on=True, database=database)


@app.command
def off(tenant: str, /, *, database: str | None = None) -> int:
    """Resolve them no longer. Contacts that are known stay.

    Parameters
    ----------
    tenant
        The tenant.
    database
        The database to use instead of DATABASE_URL.
    """
    return _turn(tenant, on=False, database=database)


@app.command
def tenants(*, as_json: AsJson = False, database: str | None = None) -> int:
    """List the tenants whose ingested events are resolved.

    Parameters
    ----------
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    settings = read_settings()
    with wiring.open_contacts(database or settings.database_url, settings) as contacts:
        listed = contacts.tenants()
    if as_json:
        print_json({"tenants": [{"tenant_id": tenant, "turned_on_at": since} for tenant, since in listed]})
        return 0
    print_table("Resolved on arrival", ("tenant", "since"), listed, empty="No tenant has turned it on.")
    return 0


@app.command
def show(tenant: str, who: str, /, *, as_json: AsJson = False, database: str | None = None) -> int:
    """Show one contact.

    Parameters
    ----------
    tenant
        The tenant it belongs to.
    who
        Its id, or an identity as TYPE:VALUE, for instance email:ann@example.org.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    settings = read_settings()
    with wiring.open_contacts(database or settings.database_url, settings) as contacts:
        kind, colon, value = who.partition(":")
        found = contacts.find(tenant, kind, value) if colon else contacts.get(tenant, who)
    if found is None:
        raise ContactNotFound(tenant, who)
    if as_json:
        print_json(found)
        return 0
    print_line(_sentence(found.id, found.merged_into, found.living_id))
    print_line(f"created {shown(found.created_at)}, updated {shown(found.updated_at)}")
    known = [(one.type.value, one.value, one.normalised) for one in found.identities]
    print_table("Identities", ("type", "value", "compared as"), known, empty="It has no identities.")
    print_table("Traits", ("name", "value"), list(found.traits.items()), empty="It has no traits.")
    return 0


def _turn(tenant: str, *, on: bool, database: str | None) -> int:
    settings = read_settings()
    with wiring.open_contacts(database or settings.database_url, settings) as contacts:
        new = contacts.turn_on(tenant) if on else contacts.turn_off(tenant)
    print_line(f"{'on' if on else 'off'}: {tenant}" + ("" if new else " (it was already)"))
    return 0


def _sentence(contact_id: UUID, merged_into: UUID | None, living_id: UUID) -> str:
    if merged_into is None:
        return f"Contact {contact_id}"
    became = "" if living_id == merged_into else f", which is {living_id} now"
    return f"Contact {contact_id} is a tombstone: merged into {merged_into}{became}"
