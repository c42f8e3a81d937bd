"""`carrick demo`: the engine at work in the terminal, with live figures."""

from __future__ import annotations

import fcntl
import logging
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter, validators
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from carrick import wiring
from carrick.entry import ChannelStats
from carrick.errors import CarrickError, MissingExtra
from carrick.ops.simulation import CHANNELS, Balance, Simulation
from carrick.variables import mask_url
from carrick_scoreboard import wiring as scoreboard_wiring

if TYPE_CHECKING:  # every command would wait for the web server's packages, else
    from carrick.forward.demo import EdgeDemo, EdgeFigures

REFRESHES_PER_SECOND = 4
FOLDER = Path("carrick-demo")
KEPT = ("demo.db*", "osm.json*", "board-link", "secret-key")
"""What the demo leaves in its folder."""
EDGE_PORT = 8082
"""The forwarder's; 8080 is for the scoreboard, which people look at."""
RATE_SAMPLES = 3 * REFRESHES_PER_SECOND


def demo(
    *,
    seconds: Annotated[float | None, Parameter(validator=validators.Number(gt=0, lte=86_400))] = None,
    database: str | None = None,
    folder: Path = FOLDER,
    fresh: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """Show Carrick at work: three channels, four tenants, an unreliable destination, workers that die; a gateway that
    forwards a device's events to a cloud which is often away; and a scoreboard with a simulated Online Scout Manager.

    Needs no server, account or configuration. Ctrl-C stops it; then it checks that nothing was lost. What was there is
    kept in a folder, and the next demo goes on with it.

    Parameters
    ----------
    seconds
        Stop after that many seconds.
    database
        Use this database (sqlite:///FILE or postgresql://…) instead of the file in the folder.
    folder
        Where to keep everything: the database, its key, what the simulated Online Scout Manager knows.
    fresh
        Begin anew: forget what the folder keeps. A database that was given with --database is left as it is.
    """
    logging.getLogger("carrick").addHandler(logging.NullHandler())  # what happens is shown, not logged
    with asked_to_stop() as stopping, kept_folder(folder, fresh=fresh):
        url = database or f"sqlite:///{folder / 'demo.db'}"
        wiring.migrate(url)
        with wiring.open_outbox(url) as outbox:
            simulation = Simulation(outbox, stopping)
            edge = wiring.edge_demo(url, EDGE_PORT)
            with scoreboard_running(url, folder), edge.running(), simulation.running():
                _show(World(simulation, edge), stopping, seconds)
            return max(summarise(simulation.balance()), summarise_edge(edge.figures(), outbox.store.stats()))


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; the former handlers come back afterwards."""
    stopping = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        # not here: the signal may have come while this very thread holds the event's lock, waiting for it
        threading.Thread(target=stopping.set).start()

    former = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def kept_folder(folder: Path, *, fresh: bool) -> Iterator[None]:
    """The folder is there, and nobody else's, while the block runs; fresh: nothing of a former demo is in it.

    Raises CarrickError when it cannot be had.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise CarrickError(f"the folder {folder} cannot be used: {error.strerror}; try --folder DIR") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the file, or with the process
        except OSError:
            raise CarrickError(f"another demo uses the folder {folder}; stop it, or try --folder DIR") from None
        for file in (found for pattern in KEPT for found in folder.glob(pattern) if fresh):
            file.unlink()
        yield


@contextmanager
def scoreboard_running(database_url: str, folder: Path) -> Iterator[None]:
    """The scoreboard and its simulated OSM, once they have started and said where they are."""
    try:
        board = scoreboard_wiring.scoreboard_demo(database_url, folder)
    except MissingExtra as missing:
        _print(f"without the scoreboard: {missing}")
        yield
        return
    with board.running():
        board.started.wait()
        if not board.places.scoreboard:
            return  # leaving raises what made it fail
        for line in scoreboard_wiring.demo_guide(board):
            _print(line)
        _print(
            f"Commands in another terminal: export DATABASE_URL={mask_url(database_url)}   then carrick osm status, …"
        )
        yield


class World(NamedTuple):
    """Everything that the demo shows."""

    simulation: Simulation
    edge: EdgeDemo


def _show(world: World, stopping: threading.Event, seconds: float | None) -> None:
    deadline = time.monotonic() + seconds if seconds is not None else None
    console = Console()
    if sys.stdout.isatty() and not console.is_dumb_terminal:
        _show_live(console, world, stopping, deadline)
    else:
        _show_lines(world, stopping, deadline)


def _show_live(console: Console, world: World, stopping: threading.Event, deadline: float | None) -> None:
    rates = Rates()
    with Live(_view(world, rates), console=console, auto_refresh=False) as live:
        while not _over(stopping, deadline, 1 / REFRESHES_PER_SECOND):
            live.update(_view(world, rates), refresh=True)


def _show_lines(world: World, stopping: threading.Event, deadline: float | None) -> None:
    """One plain line per second, for a pipe or a log."""
    started = time.monotonic()
    while not _over(stopping, deadline, 1.0):
        now = world.simulation.balance()
        latest = world.simulation.events()[-1:]
        figures = f"{time.monotonic() - started:.0f}s put {now.put} delivered {now.delivered} dead {now.dead}"
        _print(" | ".join([f"{figures} waiting {now.waiting}", edge_line(world.edge.figures()), *latest]))


def _over(stopping: threading.Event, deadline: float | None, wait: float) -> bool:
    """Wait a little; whether it is time to stop."""
    left = wait if deadline is None else min(wait, deadline - time.monotonic())
    return left <= 0 or stopping.wait(left)


def _view(world: World, rates: Rates) -> Group:
    simulation = world.simulation
    delivered = simulation.delivered()
    retried = simulation.retried()
    per_second = rates.after(delivered)
    table = Table(
        title="Carrick at work (Ctrl-C stops)", title_justify="left", box=None, pad_edge=False, collapse_padding=True
    )
    for heading in ("channel", "mode"):
        table.add_column(heading, no_wrap=True)
    for heading in ("pending", "held", "claimed", "delivered", "retried", "dead", "per s", "oldest"):
        table.add_column(heading, justify="right", min_width=6 if heading == "oldest" else None)
    for stats in simulation.stats():
        age = stats.oldest_pending_age_seconds
        table.add_row(
            stats.channel,
            CHANNELS[stats.channel].value,
            *map(str, (stats.pending_count, stats.held_count, stats.claimed_count)),
            *map(str, (delivered[stats.channel], retried[stats.channel], stats.dead_count)),
            f"{per_second[stats.channel]:.0f}",
            "-" if age is None else f"{age:.1f} s",
        )
    edge = Text(edge_line(world.edge.figures()), style="bold")
    return Group(
        table,
        "",
        edge,
        "",
        *(Text(event, style="dim", overflow="ellipsis", no_wrap=True) for event in simulation.events()),
    )


def edge_line(edge: EdgeFigures) -> str:
    """How the gateway stands: its address is there to be looked at."""
    cloud = "the cloud is up" if edge.up else "the cloud is away"
    return f"forwarder {edge.address}/api/v1/sync/state: posted {edge.posted}, arrived {edge.arrived}, {cloud}"


class Rates:
    """How many entries per second, over the last few seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=RATE_SAMPLES)

    def after(self, counts: dict[str, int]) -> dict[str, float]:
        """The rates now that the counts are these."""
        now = time.monotonic()
        self._samples.append((now, counts))
        then, before = self._samples[0]
        elapsed = now - then
        return {name: (count - before[name]) / elapsed if elapsed else 0.0 for name, count in counts.items()}


def summarise(balance: Balance) -> int:
    sums = f"put {balance.put} = delivered {balance.delivered} + dead {balance.dead} + waiting {balance.waiting}"
    if balance.adds_up:
        _print(f"{sums}: it adds up, nothing was lost")
        return 0
    _print(f"{sums}: it does NOT add up (does another demo use the same database?)")
    return 1


def summarise_edge(edge: EdgeFigures, stats: Sequence[ChannelStats]) -> int:
    """Every posted event has arrived or waits; one may be both, when its finish was cut off."""
    waiting = sum(s.pending_count + s.claimed_count for s in stats if s.channel == "cloud")
    sums = f"forwarder: posted {edge.posted}, arrived {edge.arrived}, waiting {waiting}"
    if edge.arrived + waiting >= edge.posted:
        _print(f"{sums}: nothing was lost")
        return 0
    _print(f"{sums}: something is MISSING")
    return 1


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
