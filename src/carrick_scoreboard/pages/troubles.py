"""The pages for what can go wrong on the way: each says what happened, in plain words, and how to go on. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from carrick_scoreboard.osm import errors
from carrick_scoreboard.pages.device import Link, code_link, message
from carrick_scoreboard.pages.render import Html
from carrick_scoreboard.sign_in import NotSignedIn

UNSURE_SECONDS = 60
"""When to try again if nobody knows."""

Answer = tuple[Html, int, int | None]
"""A page, its status, and the seconds after which to try again."""


def used_code() -> Html:
    """Somebody has decided about it."""
    said = "If the display shows scores, all is well. If not, start it again: it will show a new code."
    return message("This code has been used", said, link=Link(text="Type another code"))


def old_code() -> Html:
    """It has run out on the way."""
    said = "Codes are good for a few minutes only. The display shows a new one by itself, or when you start it again."
    return message("This code is too old", said, link=Link(text="Type the new code"))


def old_page() -> Html:
    """The sign-in behind the page is gone."""
    said = "This page has been open for too long, or in another browser. Nothing was changed."
    return message("This page is too old", said)


def forged() -> Html:
    """The form did not come from this browser's page; most often a cookie is missing."""
    return message(
        "That did not come from our page",
        "Nothing was changed. This happens when the page was open for very long, or when cookies are switched off.",
        "Allow cookies for this site, and start again.",
    )


def unreadable(said: str) -> Html:
    """No browser sends this."""
    return message("That could not be read", f"Nothing was changed: {said}.")


def store_away() -> Html:
    """The database does not answer."""
    return message("The scoreboard is having a rest", "Nothing was changed. Please try again in a minute.")


def too_many(seconds: int, link: Link) -> Html:
    """Wait a little."""
    return message("One moment, please", f"Too many tries from here. Try again in {_span(seconds)}.", link=link)


def turned_away() -> Html:
    """As the person wanted."""
    said = "It gets no scores. You can close this page."
    return message("The display was turned away", said, link=Link(text="Connect another display"))


def foreign_section() -> Html:
    """Not in the profile."""
    said = "Nothing was changed. Choose one of the sections that you see in Online Scout Manager."
    return message("That is not one of your sections", said)


def no_sections(person: str, user_code: str) -> Html:
    """There is nothing to choose from."""
    return message(
        "No sections to show",
        f"You are signed in{f' as {person}' if person else ''}, but Online Scout Manager shows us no section of yours.",
        "Ask for access to a section there, or sign in as somebody who has it.",
        link=code_link(user_code, "Sign in again"),
    )


def not_signed_in(refused: NotSignedIn, now: datetime, again: Link | None = None) -> Answer:
    """The person is back from OSM without a sign-in; `again` is where they try again, else with their code."""
    again = again or code_link(refused.matter)
    match refused.why:
        case "denied":
            said = "You did not allow it at Online Scout Manager. Nothing was changed."
            return message("Not signed in", said, link=again), 403, None
        case "unknown":
            said = "Each sign-in can be used once, within ten minutes, in the browser it was begun in."
            return message("This sign-in cannot be used", said, "Nothing was changed."), 400, None
        case "not_accepted":
            said = "Online Scout Manager did not accept this sign-in. Nothing was changed."
            return message("Not signed in", said, link=again), 400, None
        case "failed":
            return message("Not signed in", "Something went wrong at Online Scout Manager.", link=again), 502, None
        case "trouble":
            return _trouble(refused.trouble, again, now)
        case _:
            assert_never(refused.why)


def _trouble(trouble: errors.OsmError | None, again: Link, now: datetime) -> Answer:
    title = "Online Scout Manager does not answer"
    match trouble:
        case errors.RateLimited() | errors.OutOfBudget():
            until = trouble.until
            seconds = UNSURE_SECONDS if until is None else max(1, round((until - now).total_seconds()))
            said = f"Online Scout Manager wants you to ask less often. Try again in {_span(seconds)}."
            return message("One moment, please", said, link=again), 429, seconds
        case errors.ServiceBlocked():
            said = "Online Scout Manager has locked this scoreboard out. Whoever runs it must sort that out first."
            return message("The scoreboard is locked out", said, link=again), 503, None
        case errors.Misconfigured():
            said = "Online Scout Manager does not know this scoreboard. Tell whoever runs it; the log has the details."
            return message("The scoreboard is not set up", said, link=again), 502, None
        case _:
            return message(title, "Nothing was changed. Please try again in a minute.", link=again), 502, UNSURE_SECONDS


def _span(seconds: int) -> str:
    """A time to wait, in words."""
    if seconds <= 90:
        return "1 second" if seconds == 1 else f"{seconds} seconds"
    minutes = -(-seconds // 60)
    return f"{minutes} minutes" if minutes < 120 else f"{-(-minutes // 60)} hours"
