"""`carrick osm`: how the application stands with Online Scout Manager, and the end of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from cyclopts import App

from carrick.cli.acting import actor
from carrick.cli.printing import AsJson, print_json, print_line, print_table, shown
from carrick.errors import CarrickError
from carrick.settings import read_settings
from carrick_scoreboard import wiring

if TYPE_CHECKING:
    from carrick_scoreboard.wiring import Block, OsmLook, UserLook

app = App(name="osm", help="See how the application stands with Online Scout Manager; end a block.")

COLUMNS = ("user", "name", "sign-in", "calls left", "of", "renewed at", "limited until", "last used")
NOT_BLOCKED = "OSM has not blocked the application."
REMEDY = (
    "No call leaves while it stands: going on would make it permanent. Find out why with OSM, put it right, then: "
    'carrick osm unblock --reason "…"'
)


@app.command
def status(*, as_json: AsJson = False, database: str | None = None) -> int:
    """Show whether OSM has blocked the application, what is left of each user's budget, and whose sign-in has ended.

    Asks nothing of OSM: this is what it said last.

    Parameters
    ----------
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    settings = read_settings()
    if database is not None:
        settings = msgspec.structs.replace(settings, database_url=database)
    look = wiring.look_at_osm(settings)
    if as_json:
        print_json(look)
        return 0
    _print(look)
    return 0


@app.command
def unblock(*, reason: str, database: str | None = None) -> int:
    """End the block: calls go out again. Do it only when the cause is gone: OSM makes a second offence permanent.

    Parameters
    ----------
    reason
        What was wrong, and what was done about it. Kept in the audit with your name.
    database
        The database to use instead of DATABASE_URL.
    """
    block = wiring.unblock(database or read_settings().database_url, actor(), reason)
    if block is None:
        raise CarrickError(f"{NOT_BLOCKED} There is nothing to end.")
    print_line(f"ended: the block since {shown(block.blocked_at)}; calls go out again within a second")
    return 0


def _print(look: OsmLook) -> None:
    print_line(NOT_BLOCKED if look.block is None else _blocked(look.block))
    for ending in look.endings:
        print_line(f"OSM will end a call: {ending.in_words}. A newer release of Carrick may do without it.")
    rows = [_row(user) for user in look.users]
    print_table("Users", COLUMNS, rows, empty="Nobody has signed in yet.")


def _blocked(block: Block) -> str:
    said = f"X-Blocked: {block.header}" if block.header else "its page says so, without a reason"
    return f"OSM has BLOCKED the application since {shown(block.blocked_at)} ({said}). {REMEDY}"


def _row(user: UserLook) -> tuple[object, ...]:
    return (
        str(user.user_id),
        user.name,
        "good" if user.revoked_at is None else f"ended {shown(user.revoked_at)}: must sign in again",
        user.remaining,
        user.limit,
        user.reset_at,
        user.blocked_until,
        user.last_used_at,
    )
