"""What to show after which answer. Pure."""

from __future__ import annotations

from typing import assert_never

from carrick_device.answers import BetweenTerms, Failed, Got, NoSection, Scores, SignInAgain, TooMany, Verdict
from carrick_device.screen import COLOURS, WHITE, Board, Line, Notice, Screen


def screen_after(verdict: Verdict, last: Scores | None) -> Screen:
    """What to show after an answer, with the last scores if there are some."""
    match verdict:
        case Got(scores=scores) if not scores.patrols:
            return Notice("No patrols", "This section has no patrols with members in this term.")
        case Got(scores=scores):
            return board_of(scores, stale=scores.stale, note="no newer ones to be had" if scores.stale else "")
        case BetweenTerms():
            return Notice("Between terms", "The scores come back when the next term begins.")
        case NoSection():
            return Notice("No section", "A leader must choose a section for this device.")
        case SignInAgain():
            return Notice("Sign in again", verdict.message)
        case TooMany() | Failed():
            reason = explained(verdict)
            if last is not None:
                return board_of(last, stale=True, note=reason)
            return Notice("No connection" if isinstance(verdict, Failed) and verdict.away else "No scores yet", reason)
        case _:
            assert_never(verdict)


def board_of(scores: Scores, *, stale: bool, note: str) -> Board:
    """The board of these scores; what is on its way counts already."""
    colours = scores.settings.patrol_colors
    lines = tuple(
        Line(
            patrol.name or "?",
            patrol.score + patrol.pending_delta,
            COLOURS.get(colours.get(patrol.id, ""), WHITE),
            patrol.has_pending,
        )
        for patrol in scores.patrols
    )
    return Board(lines, stale, note, scores.cached_at.isoformat())


def explained(verdict: Verdict) -> str:
    """Why there are no new scores, in one sentence."""
    match verdict:
        case SignInAgain() | NoSection() | Failed():
            return verdict.message
        case BetweenTerms():
            return "The section is between terms."
        case TooMany():
            return "The server is asked too often; waiting."
        case Got():
            return ""
        case _:
            assert_never(verdict)
