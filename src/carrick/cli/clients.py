"""`carrick clients`: which device applications may ask for a sign-in."""

from __future__ import annotations

from cyclopts import App

from carrick.cli.acting import actor
from carrick.cli.printing import AsJson, print_json, print_line, print_table
from carrick.settings import read_settings
from carrick_scoreboard import wiring

app = App(name="clients", help="Let device applications in, give them new ids, shut them out.")


@app.command
def add(client_id: str, /, *, comment: str = "", email: str = "", database: str | None = None) -> int:
    """Let a device application in: displays that name this id may ask for a sign-in.

    Parameters
    ----------
    client_id
        Its id: 1 to 100 letters, digits and . _ ~ -
    comment
        What it is; people see it when they let a display in.
    email
        Whom to ask about it.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_clients(database or read_settings().database_url) as clients:
        clients.add(client_id, comment, email, actor=actor())
    print_line(f"added: {client_id}")
    return 0


@app.command
def disable(client_id: str, /, *, database: str | None = None) -> int:
    """Close the door for new sign-ins. Displays that are signed in stay.

    Parameters
    ----------
    client_id
        Its id.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_clients(database or read_settings().database_url) as clients:
        changed = clients.disable(client_id, actor=actor())
    print_line(f"disabled: {client_id}" + ("" if changed else " (it was already)"))
    return 0


@app.command
def rotate(old: str, new: str, /, *, database: str | None = None) -> int:
    """Give an application a new id, and close the old one for new sign-ins. Displays that are signed in stay.

    Parameters
    ----------
    old
        Its id until now.
    new
        Its id from now on.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_clients(database or read_settings().database_url) as clients:
        clients.rotate(old, new, actor=actor())
    print_line(f"rotated: {old} is {new} now")
    return 0


@app.command(name="list")
def list_clients(*, as_json: AsJson = False, database: str | None = None) -> int:
    """List the device applications.

    Parameters
    ----------
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_clients(database or read_settings().database_url) as clients:
        known = clients.all()
    if as_json:
        print_json({"clients": known})
        return 0
    rows = [(one.client_id, one.comment, one.email, one.created_at, one.disabled_at, one.replaced_by) for one in known]
    columns = ("id", "comment", "e-mail", "since", "disabled", "replaced by")
    print_table("Device applications", columns, rows, empty="There are none: carrick clients add ID --comment …")
    return 0
