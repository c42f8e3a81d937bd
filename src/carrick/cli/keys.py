"""`carrick keys`: the keys that seal what is secret."""

from __future__ import annotations

from cyclopts import App

from carrick.cli.printing import AsJson, print_json, print_line
from carrick.errors import CarrickError
from carrick.settings import read_settings
from carrick_scoreboard import wiring

app = App(name="keys", help="Make keys for what is secret in the database, and seal everything with the newest.")


@app.command
def new() -> int:
    """Print a fresh key, as CARRICK_SECRET_KEYS takes it. Put it first in the list, and keep the others behind it."""
    print_line(wiring.new_key_text())
    return 0


@app.command
def rotate(*, as_json: AsJson = False, database: str | None = None) -> int:
    """Seal all credentials with the newest key. Services may run meanwhile; doing it again changes nothing.

    With CARRICK_SECRET_KEYS the first key is the newest: give the longer list to every replica before. Without it the
    keys are in the file beside the SQLite file, and a new one is made; a service that runs notices it by itself.

    Parameters
    ----------
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    done = wiring.rotate_keys(database or read_settings().database_url)
    if as_json:
        print_json(done)
    else:
        print_line(f"key {done.key}: {done.users} users, {done.resealed} sealed again, {done.current} were already")
    if lost := ", ".join(map(str, done.unreadable)):
        raise CarrickError(f"not opened: users {lost}; give their key again and rotate, or let them sign in again")
    return 0
