"""`carrick migrate`: create or upgrade the schema of the outbox."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import CycloptsError, Parameter

from carrick import wiring
from carrick.settings import read_settings

Flag = Parameter(negative="")


def migrate(
    *,
    check: Annotated[bool, Flag] = False,
    sql: Annotated[bool, Flag] = False,
    compat: Annotated[bool, Flag] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    database: str | None = None,
) -> int:
    """Create or upgrade the outbox's schema. Doing it again changes nothing; many replicas may do it at once.

    Parameters
    ----------
    check
        Change nothing: list what is pending, with exit code 1 if there is something.
    sql
        Change nothing: print the SQL of all migrations, for a database that has none of them.
    compat
        Also create the views public.outbox, public.sync_outbox and public.contact_identities (PostgreSQL only).
    as_json
        Print one JSON object for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    if sql and (check or as_json):
        raise CycloptsError(msg="--sql stands alone: give it without --check and --json.")
    url = database or read_settings().database_url
    if sql:
        sys.stdout.write(wiring.migration_script(url, compat=compat))
        return 0
    if check:
        pending = wiring.pending_migrations(url, compat=compat)
        _report("pending", pending, as_json, nothing="The schema is up to date.")
        return 1 if pending else 0
    _report("applied", wiring.migrate(url, compat=compat), as_json, nothing="The schema was up to date already.")
    return 0


def _report(what: str, names: Sequence[str], as_json: bool, *, nothing: str) -> None:
    if as_json:
        sys.stdout.write(json.dumps({what: list(names)}) + "\n")
        return
    for line in [f"{what}: {name}" for name in names] or [nothing]:
        sys.stdout.write(f"{line}\n")
