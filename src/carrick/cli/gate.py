"""`carrick gate`: see, close and open gates."""

from __future__ import annotations

from cyclopts import App

from carrick import wiring
from carrick.cli.options import naming_options
from carrick.cli.printing import AsJson, print_json, print_line, print_table
from carrick.errors import UnknownChannel
from carrick.settings import read_settings

app = App(name="gate", help="See, close and open gates: a closed gate holds entries and spends no attempts.")


@app.command(name="list")
def list_gates(*, channel: str | None = None, as_json: AsJson = False, database: str | None = None) -> int:
    """List the gates that are closed now.

    Parameters
    ----------
    channel
        Only gates of this channel.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_store(database or read_settings().database_url) as store:
        known = sorted(store.channels())
        if channel is not None and channel not in known:
            raise UnknownChannel(channel, known)
        gates = store.gates(channel)
    if as_json:
        print_json({"gates": gates})
        return 0
    rows = [
        (
            gate.channel,
            gate.scope,
            gate.closed_until or "until opened",
            gate.closed_by,
            gate.consecutive_failures,
            gate.reason,
        )
        for gate in gates
    ]
    print_table(
        "Closed gates", ("channel", "scope", "until", "by", "failures", "reason"), rows, empty="No gate is closed."
    )
    return 0


@app.command
def close(
    channel: str,
    scope: str = "*",
    /,
    *,
    seconds: float | None = None,
    reason: str = "closed by hand",
    database: str | None = None,
) -> int:
    """Close a gate: its entries wait and spend nothing.

    Parameters
    ----------
    channel
        The channel.
    scope
        * for the whole channel, tenant:NAME or principal:NAME.
    seconds
        For how long; without it until somebody opens it.
    reason
        Why; shown wherever held entries are explained.
    database
        The database to use instead of DATABASE_URL.
    """
    with naming_options(), wiring.opened_store(database or read_settings().database_url) as store:
        store.close_gate(channel, scope, seconds, reason)
    until = "until it is opened" if seconds is None else f"for {seconds:g} seconds"
    print_line(f"closed: {channel} {scope} {until}")
    return 0


@app.command(name="open")
def open_gate(channel: str, scope: str = "*", /, *, database: str | None = None) -> int:
    """Open a gate: what it held goes on.

    Parameters
    ----------
    channel
        The channel.
    scope
        * for the whole channel, tenant:NAME or principal:NAME.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_store(database or read_settings().database_url) as store:
        store.open_gate(channel, scope)
    print_line(f"open: {channel} {scope}")
    return 0
