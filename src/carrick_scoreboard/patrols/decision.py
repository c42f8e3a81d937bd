"""What to do for a device that asks: serve what is there, ask OSM first, or refuse. Pure; the time is passed in."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.patrols.known import Known, SectionScores, Term

LONDON = ZoneInfo("Europe/London")
"""OSM's days begin there."""

TERM_SECONDS = 24 * 3600
"""A term that was found is looked up again after that."""
MISSING_SECONDS = 15 * 60
"""A term or section that was not there is looked for again after that."""
LEAST_TERM_SECONDS = 5 * 60
"""No look-up comes sooner after the one before."""
BLOCKED_SECONDS = 5 * 60
"""When devices come again while the service is blocked."""
LONGEST_SECONDS = 15 * 60
"""Devices are never sent away for longer: others may bring fresh scores meanwhile."""

Error = Literal[
    "blocked",
    "section_not_found",
    "not_in_term",
    "rate_limited",
    "service_blocked",
    "upstream_error",
    "internal_error",
]


class Serve(msgspec.Struct, frozen=True):
    """Answer with the scores; the device comes again after `expires_at`."""

    scores: SectionScores
    stale: bool
    expires_at: datetime


class Fetch(msgspec.Struct, frozen=True):
    """Ask OSM, then decide again. `term`: for the term and the user's access; `scores`: for the patrols."""

    term: bool
    scores: bool


class Refuse(msgspec.Struct, frozen=True):
    """Answer with that error; asking again before `until` changes nothing."""

    error: Error
    until: datetime | None = None


Decision = Serve | Fetch | Refuse


def decide(known: Known, now: datetime) -> Decision:
    """What to do. Scores are only served to a user whose profile has had the section."""
    if known.revoked:
        return Refuse("blocked")
    term_due = is_term_due(known.term, now)
    if known.term is not None and known.term.found != "term" and not term_due:
        return _missing(known.term)
    stale = known.scores is None or known.scores.valid_until <= now
    if known.scores is not None and not stale and not term_due:
        return Serve(known.scores, known.service_blocked, _shown(known.scores.valid_until, now))
    obstacle = _obstacle(known, now)
    if obstacle is None:
        return Fetch(term=term_due, scores=stale)
    return _without_asking(known, obstacle, now)


def give_up(known: Known, until: datetime, now: datetime) -> Serve | Refuse:
    """What to answer when OSM was asked and still nothing is known."""
    return _without_asking(known, Refuse("upstream_error", until), now)


def is_term_due(term: Term | None, now: datetime) -> bool:
    """Whether the term must be looked up before the next read, if that can be done."""
    if term is None:
        return True
    age = (now - term.checked_at).total_seconds()
    if age < LEAST_TERM_SECONDS:
        return False
    if term.found != "term":
        return age >= MISSING_SECONDS
    ended = term.end_date is not None and term.end_date < today(now)
    return ended or term.suspect or age >= TERM_SECONDS


def today(now: datetime) -> date:
    """The day at OSM."""
    return now.astimezone(LONDON).date()


def _obstacle(known: Known, now: datetime) -> Refuse | None:
    """Why OSM must not be asked now."""
    if known.service_blocked:
        return Refuse("service_blocked", now + timedelta(seconds=BLOCKED_SECONDS))
    if known.blocked_until is not None and now < known.blocked_until:
        return Refuse("rate_limited", known.blocked_until)
    if not known.may_read:
        renewed = known.budget.reset_at if known.budget is not None else None
        return Refuse("rate_limited", renewed or longest(now))
    if known.failure is not None and now < known.failure.until:
        return Refuse(known.failure.error, known.failure.until)
    return None


def _without_asking(known: Known, obstacle: Refuse, now: datetime) -> Serve | Refuse:
    """The best that can be said without OSM."""
    if known.term is not None and known.term.found != "term":
        return _missing(known.term)
    if known.scores is None or known.term is None:
        return obstacle
    is_fresh = known.scores.valid_until > now
    until = known.scores.valid_until if is_fresh else min(obstacle.until or longest(now), longest(now))
    return Serve(known.scores, known.service_blocked or not is_fresh, _shown(until, now))


def _missing(term: Term) -> Refuse:
    until = term.checked_at + timedelta(seconds=MISSING_SECONDS)
    return Refuse("section_not_found" if term.found == "no_section" else "not_in_term", until)


def longest(now: datetime) -> datetime:
    """When a device comes again at the latest."""
    return now + timedelta(seconds=LONGEST_SECONDS)


def _shown(until: datetime, now: datetime) -> datetime:
    """A whole second in the future."""
    return whole_second(max(until, now + timedelta(seconds=1)))
