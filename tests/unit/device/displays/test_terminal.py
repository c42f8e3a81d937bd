"""The scores in a terminal."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from carrick_device.displays.qr import framed, modules_of
from carrick_device.displays.terminal import BAR, TerminalDisplay, bar, qr_lines
from carrick_device.screen import COLOURS, Board, Line, Notice, Screen, SignIn

LINK = "https://scores.example.org/d/BCDFGHJK"


def printed(screen: Screen, *, terminal: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    display = TerminalDisplay(Console(file=out, width=width, height=50, force_terminal=terminal))
    assert display.pages(screen) == 1
    display.show(screen, 0)
    display.close()
    return out.getvalue()


def test_every_patrol_has_its_name_bar_and_score() -> None:
    said = printed(Board((Line("Eagles", 100), Line("Owls", 50), Line("Foxes", -999_999))))
    eagles, owls, foxes = (line for line in said.splitlines() if any(n in line for n in ("Eagles", "Owls", "Foxes")))
    assert "100" in eagles
    assert eagles.count("█") == 2 * owls.count("█") == BAR
    assert "-999999" in foxes
    assert "█" not in foxes


def test_bars_are_in_the_colour_of_the_patrol() -> None:
    out = io.StringIO()
    display = TerminalDisplay(Console(file=out, width=80, force_terminal=True, color_system="truecolor"))
    display.show(Board((Line("Eagles", 5, COLOURS["orange"]),)), 0)
    display.close()
    assert "38;2;255;140;0" in out.getvalue()


def test_pending_and_stale_have_their_dots_and_say_what_they_mean() -> None:
    fresh = printed(Board((Line("Eagles", 5),)))
    assert "●" not in fresh
    said = printed(Board((Line("Eagles", 5, pending=True),), True, "Cannot reach it.", "2026-01-08T14:29:00+00:00"))
    assert said.count("●") == 3
    assert "on its way" in said
    assert "January" in said
    assert "Cannot reach it." in said


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_scores_and_dots_stay_however_narrow_the_terminal_is(width: int) -> None:
    said = printed(Board((Line("Woodpeckers of the Forest by the River", 999_999, pending=True),)), width=width)
    (line,) = (line for line in said.splitlines() if "Woodp" in line)
    assert "999999 ●" in line
    assert len(line) <= width


@pytest.mark.parametrize("as_of", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-14:00", ""])
def test_a_time_beyond_the_calendar_is_unknown(as_of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert "as of " in printed(Board((Line("Eagles", 5),), True, "", as_of))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_bar_is_its_share_of_the_highest_score() -> None:
    assert [bar(total, 80, 10) for total in (-5, 0, 8, 12, 80)] == ["", "", "█", "█▌", "█" * 10]
    assert bar(0, 0, 10) == ""
    assert bar(5, 5, 0) == ""


def test_long_names_and_markup_are_harmless() -> None:
    said = printed(Board((Line("[red]" + "x" * 60, 5),)))
    assert "[red]xxx" in said
    assert "…" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_signing_in_shows_code_address_and_qr() -> None:
    said = printed(SignIn("BCDF-GHJK", "https://scores.example.org/device", LINK, "The device was signed out."))
    assert "BCDF-GHJK" in said
    assert "https://scores.example.org/device" in said
    assert "The device was signed out." in said
    assert all(line.plain in said for line in qr_lines(framed(modules_of(LINK), 2)))
    assert len(said.splitlines()) <= 24


def test_half_letters_are_the_modules_of_the_code() -> None:
    modules = framed(modules_of(LINK), 2)
    halves = {"█": (True, True), "▀": (True, False), "▄": (False, True), " ": (False, False)}
    read: list[tuple[bool, ...]] = []
    for line in qr_lines(modules):
        pairs = [halves[sign] for sign in line.plain]
        read += [tuple(up for up, _ in pairs), tuple(down for _, down in pairs)]
    assert tuple(read[: len(modules)]) == modules
    assert not any(read[-1])


def test_a_terminal_shows_one_screen_in_the_place_of_the_other() -> None:
    out = io.StringIO()
    display = TerminalDisplay(Console(file=out, width=80, height=50, force_terminal=True))
    display.show(Notice("First", "one"), 0)
    display.show(Notice("Second", "two"), 0)
    display.close()
    display.close()
    first, second = out.getvalue().index("one"), out.getvalue().index("two")
    assert "\x1b[1A" in out.getvalue()[first:second]
    assert out.getvalue().endswith("\x1b[?25h")
