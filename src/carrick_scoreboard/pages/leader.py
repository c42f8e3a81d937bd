"""What a leader sees beside the score page: signing out by hand. Pure."""

from __future__ import annotations

from carrick_scoreboard.pages.device import Link, message
from carrick_scoreboard.pages.render import Html, page, render

SCORES = Link("/admin/", "To the scores")


def sign_out(person: str, csrf: str) -> Html:
    """Sign out?"""
    return page("Sign out?", render("sign_out", person=person, csrf=csrf))


def signed_out() -> Html:
    """Nobody is signed in here."""
    return message("You are signed out", "Nobody is signed in to the scores in this browser.", link=SCORES)
