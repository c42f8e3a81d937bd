"""`carrick status`: every channel at a glance."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console, Group
from rich.live import Live

from carrick import wiring
from carrick.cli.printing import AsJson, age, print_json, table
from carrick.entry import ChannelStats, Gate
from carrick.outbox.store import Store
from carrick.settings import read_settings

COLUMNS = ("channel", "pending", "held", "claimed", "dead", "oldest", "backlog kB", "last success", "last error")


def status(
    *,
    watch: Annotated[bool, Parameter(negative="")] = False,
    every: float = 1.0,
    as_json: AsJson = False,
    database: str | None = None,
) -> int:
    """Show every channel: what waits, what is held and by which gate, what is dead.

    Parameters
    ----------
    watch
        Go on showing it until Ctrl-C.
    every
        With --watch: seconds between two looks.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_store(database or read_settings().database_url) as store:
        if as_json:
            print_json({"channels": store.stats(), "gates": store.gates()})
        elif watch:
            _watch(store, every)
        else:
            Console().print(_shown(store))
    return 0


def _watch(store: Store, every: float) -> None:
    with Live(_shown(store), auto_refresh=False) as live:
        while True:
            live.update(_shown(store), refresh=True)
            time.sleep(max(every, 0.1))


def _shown(store: Store) -> Group:
    stats, gates = store.stats(), store.gates()
    parts: list[object] = [table("Channels", COLUMNS, [_row(channel) for channel in stats])]
    if gates:
        rows = [_gate(gate) for gate in gates]
        parts += ["", table("Closed gates", ("channel", "scope", "until", "failures", "reason"), rows)]
    return Group(*parts)  # type: ignore[arg-type]


def _row(stats: ChannelStats) -> tuple[object, ...]:
    return (
        stats.channel,
        stats.pending_count,
        stats.held_count,
        stats.claimed_count,
        stats.dead_count,
        age(stats.oldest_pending_age_seconds),
        round(stats.backlog_bytes / 1000),
        stats.last_success_at,
        stats.last_error_at,
    )


def _gate(gate: Gate) -> tuple[object, ...]:
    until = "until opened" if gate.closed_until is None else gate.closed_until
    return (gate.channel, gate.scope, until, gate.consecutive_failures, gate.reason)
