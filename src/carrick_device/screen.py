"""What a display shows, as plain values, and what a display is."""

from __future__ import annotations

from typing import Protocol

import msgspec

Colour = tuple[int, int, int]

WHITE: Colour = (255, 255, 255)
COLOURS: dict[str, Colour] = {
    "red": (255, 40, 40),
    "green": (40, 220, 60),
    "blue": (70, 110, 255),
    "yellow": (255, 220, 0),
    "cyan": (0, 220, 230),
    "magenta": (240, 60, 220),
    "orange": (255, 140, 0),
    "white": WHITE,
}
"""The colours a leader may give a patrol. Blue is a light one: pure blue can hardly be read on a LED matrix."""


class Line(msgspec.Struct, frozen=True):
    """One patrol: its score with what is still on its way, and whether something is."""

    name: str
    total: int
    colour: Colour = WHITE
    pending: bool = False


class Board(msgspec.Struct, frozen=True):
    """The scores. `stale`: newer ones could not be had; then `note` says why in a few words."""

    lines: tuple[Line, ...]
    stale: bool = False
    note: str = ""
    as_of: str = ""
    """When the scores were read, in the words of the server's answer."""


class SignIn(msgspec.Struct, frozen=True):
    """What a person needs to sign this device in. `note` says why it is asked for again."""

    user_code: str
    uri: str
    """Where to type the code."""
    link: str
    """Leads to the page with the code filled in; goes into the QR code."""
    note: str = ""


class Notice(msgspec.Struct, frozen=True):
    """There is nothing else to show: a few words in large, and one sentence."""

    title: str
    text: str


Screen = Board | SignIn | Notice


class Display(Protocol):
    """Something that shows a screen. One task uses it at a time."""

    def pages(self, screen: Screen) -> int:
        """How many pages the screen has here; at least one."""
        ...

    def show(self, screen: Screen, page: int) -> None:
        """Show a page, counted from 0."""
        ...

    def close(self) -> None:
        """Leave the display as it was found."""
        ...
