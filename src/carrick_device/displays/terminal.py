"""The scores in a terminal: a table with bars that follows them, or plain text where nobody looks at a terminal."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from carrick_device.displays.qr import Modules, framed, modules_of
from carrick_device.screen import Board, Colour, Line, Notice, Screen, SignIn

BAR = 32
"""The longest bar, in letters."""
LONGEST_NAME = 28
SHORTEST_NAME = 8
AROUND = 6 + 3 + 1
"""Columns that are neither name, bar nor score: the frame, the gaps and the dot."""
QUIET_ZONE = 2
EIGHTHS = " ▏▎▍▌▋▊▉"


class TerminalDisplay:
    """Owns the terminal until it is closed. Everything fits on one page."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._live: Live | None = None

    def pages(self, _: Screen) -> int:
        return 1

    def show(self, screen: Screen, _: int) -> None:
        """Put it in the place of what was there; without a terminal, below it."""
        if not self._console.is_terminal:
            self._console.print(rendered(screen, self._console.width))
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(rendered(screen, self._console.width), refresh=True)

    def close(self) -> None:
        """The last screen stays above the prompt."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def rendered(screen: Screen, width: int) -> RenderableType:
    """The screen for rich, for a terminal of so many columns."""
    match screen:
        case Board():
            return _board(screen, width)
        case SignIn():
            return _sign_in(screen)
        case Notice():
            return _panel(Text(screen.text), screen.title)
        case _:
            assert_never(screen)


def _board(board: Board, width: int) -> RenderableType:
    score = max((len(str(line.total)) for line in board.lines), default=0)
    room = max(SHORTEST_NAME, width - AROUND - score)
    name = min(LONGEST_NAME, room, max((cell_len(line.name) for line in board.lines), default=0))
    longest_bar = min(BAR, room - name)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(width=name, no_wrap=True, overflow="ellipsis")
    table.add_column(width=longest_bar, no_wrap=True, overflow="crop")
    table.add_column(justify="right", no_wrap=True, width=score)
    table.add_column(width=1)
    most = max((line.total for line in board.lines), default=0)
    for line in board.lines:
        table.add_row(*_row(line, most, longest_bar))
    return _panel(Group(table, *_below(board)), "Patrol scores")


def _row(line: Line, most: int, longest_bar: int) -> tuple[Text, Text, Text, Text]:
    colour = _style(line.colour)
    name = Text(line.name, style=f"bold {colour}")
    shown = Text(bar(line.total, most, longest_bar), style=colour)
    return name, shown, Text(str(line.total), style="bold"), Text("●" if line.pending else " ", style="red")


def bar(total: int, most: int, longest: int) -> str:
    """A bar as long as its share of the highest score, in eighths of a letter."""
    eighths = longest * 8 * max(0, total) // max(1, most)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _below(board: Board) -> list[Text]:
    """What the dots mean, and how old the scores are."""
    lines = []
    if any(line.pending for line in board.lines):
        lines.append(Text.assemble(("● ", "red"), ("on its way to Online Scout Manager", "dim")))
    if board.stale:
        old = f"as of {_moment(board.as_of)}" + (f": {board.note}" if board.note else "")
        lines.append(Text.assemble(("● ", "bright_black"), (old, "dim")))
    return [Text(), *lines] if lines else []


def _moment(as_of: str) -> str:
    """The time in the zone of this device, as short as it can be told."""
    try:
        return f"{datetime.fromisoformat(as_of).astimezone():%d %B, %H:%M}"
    except (ValueError, OverflowError):
        return "an unknown time"


def _sign_in(screen: SignIn) -> RenderableType:
    """What can be typed comes first: it must be seen where the terminal is too low for the QR code."""
    shown = [Text(screen.note, style="yellow")] if screen.note else []
    shown += [
        Text.assemble("To sign this device in, go to ", (screen.uri, "bold cyan")),
        Text.assemble("and type ", (screen.user_code, "bold yellow"), ", or scan this with a phone:"),
        *qr_lines(framed(modules_of(screen.link), QUIET_ZONE)),
    ]
    return _panel(Group(*shown), "Sign in", above=0)


def qr_lines(modules: Modules) -> list[Text]:
    """Two rows of the code in each line, dark on light whatever the colours of the terminal."""
    blank = (False,) * len(modules[0])
    pairs = zip(modules[::2], [*modules[1::2], blank], strict=False)
    return [
        Text("".join(_half(up, down) for up, down in zip(above, below, strict=True)), style="#000000 on #ffffff")
        for above, below in pairs
    ]


def _half(up: bool, down: bool) -> str:
    return {(True, True): "█", (True, False): "▀", (False, True): "▄", (False, False): " "}[up, down]


def _panel(content: RenderableType, title: str, above: int = 1) -> RenderableType:
    return Panel.fit(content, title=f"[bold]{title}[/bold]", box=box.ROUNDED, padding=(above, 2))


def _style(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
