"""What is shown after which answer."""

from __future__ import annotations

import msgspec
import pytest

from carrick_device.answers import BetweenTerms, Failed, Got, NoSection, Scores, SignInAgain, TooMany, Verdict
from carrick_device.screen import COLOURS, WHITE, Board, Line, Notice
from carrick_device.showing import screen_after
from tests.unit.device.scripted import scores

SCORES = msgspec.convert(scores(3, 5), Scores)


def test_the_board_counts_what_is_on_its_way_and_marks_it() -> None:
    body = scores(3, 5)
    body["patrols"][1] |= {"pendingDelta": -7, "hasPending": True}
    shown = screen_after(Got(msgspec.convert(body, Scores), 300.0), None)
    assert shown == Board(
        (Line("Patrol 0", 3, COLOURS["red"]), Line("Patrol 1", -2, WHITE, pending=True)),
        as_of="2026-01-08T14:29:00+00:00",
    )


@pytest.mark.parametrize("colour", ["", "beige"])
def test_a_patrol_without_a_known_colour_is_white(colour: str) -> None:
    shown = screen_after(Got(msgspec.convert(scores(3, settings={"patrolColors": {"0": colour}}), Scores), 1.0), None)
    assert isinstance(shown, Board)
    assert shown.lines[0].colour == WHITE


def test_scores_that_the_server_calls_stale_are_shown_so() -> None:
    shown = screen_after(Got(msgspec.convert(scores(3, stale=True), Scores), 300.0), None)
    assert isinstance(shown, Board)
    assert shown.stale


@pytest.mark.parametrize("verdict", [TooMany(5), Failed("502"), Failed("gone", away=True)])
def test_without_new_scores_the_last_ones_stay_and_are_stale(verdict: Verdict) -> None:
    shown = screen_after(verdict, SCORES)
    assert isinstance(shown, Board)
    assert (shown.stale, [line.total for line in shown.lines]) == (True, [3, 5])
    assert shown.note


@pytest.mark.parametrize(
    ("verdict", "title"),
    {
        "too many": (TooMany(5), "No scores yet"),
        "failed": (Failed("502"), "No scores yet"),
        "no answer": (Failed("gone", away=True), "No connection"),
        "no patrols": (Got(msgspec.convert(scores(), Scores), 5.0), "No patrols"),
    }.values(),
)
def test_without_any_scores_it_says_why(verdict: Verdict, title: str) -> None:
    shown = screen_after(verdict, None)
    assert isinstance(shown, Notice)
    assert shown.title == title


@pytest.mark.parametrize(
    ("verdict", "title"),
    [(BetweenTerms(), "Between terms"), (NoSection("x"), "No section"), (SignInAgain("x"), "Sign in again")],
)
def test_old_scores_are_not_shown_where_there_can_be_none(verdict: Verdict, title: str) -> None:
    shown = screen_after(verdict, SCORES)
    assert isinstance(shown, Notice)
    assert shown.title == title
