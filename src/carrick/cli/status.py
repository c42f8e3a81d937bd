"""`carrick status`: every channel at a glance."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter, validators
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from carrick import wiring
from carrick.cli.printing import AsJson, Flag, about_of, age, print_json, shown, table
from carrick.entry import ChannelStats, Gate
from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.settings import read_settings
from carrick_scoreboard import wiring as scoreboard

if TYPE_CHECKING:
    from carrick_scoreboard.wiring import Block

COLUMNS = ("channel", "pending", "held", "claimed", "dead", "oldest", "backlog kB", "last success", "last error")
GATE_COLUMNS = ("channel", "scope", "until", "failures", "reason")

Every = Annotated[float, Parameter(validator=validators.Number(gte=0.1, lte=3_600))]


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands at one moment."""

    channels: list[ChannelStats]
    gates: list[Gate]
    osm_block: Block | None


def status(*, watch: Flag = False, every: Every = 1.0, as_json: AsJson = False, database: str | None = None) -> int:
    """Show every channel: what waits, what is held and by which gate, what is dead; and a block by OSM.

    Parameters
    ----------
    watch
        Go on showing it until Ctrl-C; with --json one line per look.
    every
        With --watch: seconds between two looks, 0.1 to 3600.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    url = database or read_settings().database_url
    with wiring.opened_store(url) as store:

        def look() -> Glance:
            return glance(store, url)

        if watch:
            return _watch(look, every, as_json)
        if as_json:
            print_json(look())
        else:
            Console().print(drawn(look()))
    return 0


def glance(store: Store, url: str) -> Glance:
    """A look at the database. Raises StoreError."""
    return Glance(channels=store.stats(), gates=store.gates(), osm_block=scoreboard.standing_block(url))


def _watch(look: Callable[[], Glance], every: float, as_json: bool) -> int:
    """Look again and again until Ctrl-C, which is the usual end. A database that is away is shown, and asked again."""
    try:
        if as_json:
            _repeat(lambda: _print_line(look), every)
        console = Console()
        if not console.is_terminal:
            _repeat(lambda: console.print(_drawn_now(look)), every)
        with Live(_drawn_now(look), console=console, auto_refresh=False) as live:
            _repeat(lambda: live.update(_drawn_now(look), refresh=True), every)
    except KeyboardInterrupt:
        return 0
    return 0


def _repeat(show: Callable[[], None], every: float) -> None:
    while True:
        show()
        time.sleep(every)


def _print_line(look: Callable[[], Glance]) -> None:
    try:
        print_json(look())
    except StoreError as error:
        print_json({"error": str(error)})
    sys.stdout.flush()


def _drawn_now(look: Callable[[], Glance]) -> Group:
    try:
        return drawn(look())
    except StoreError as error:
        return Group(Text(f"The database does not answer: {error}", style="bold red"))


def drawn(seen: Glance) -> Group:
    """As a terminal shows it."""
    parts: list[object] = []
    if seen.osm_block is not None:
        since = shown(seen.osm_block.blocked_at)
        parts += [Text(f"OSM has BLOCKED the application since {since}: see carrick osm status", style="bold red"), ""]
    parts.append(table("Channels", COLUMNS, [_row(channel) for channel in seen.channels]))
    if seen.gates:
        parts += ["", table("Closed gates", GATE_COLUMNS, [_gate(gate) for gate in seen.gates])]
    return Group(*parts)  # type: ignore[arg-type]


def _row(stats: ChannelStats) -> tuple[object, ...]:
    return (
        stats.channel,
        about_of(stats, "pending_count", stats.pending_count),
        about_of(stats, "held_count", stats.held_count),
        stats.claimed_count,
        about_of(stats, "dead_count", stats.dead_count),
        about_of(stats, "oldest_pending_age_seconds", age(stats.oldest_pending_age_seconds)),
        about_of(stats, "backlog_bytes", round(stats.backlog_bytes / 1000)),
        stats.last_success_at,
        about_of(stats, "last_error_at", stats.last_error_at),
    )


def _gate(gate: Gate) -> tuple[object, ...]:
    until = "until opened" if gate.closed_until is None else gate.closed_until
    return (gate.channel, gate.scope, until, gate.consecutive_failures, gate.reason)
