"""What to do for a device that asks: serve what is there, ask OSM first, or refuse. Pure; the time is passed in."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.osm.limits import Purpose, Thresholds
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
REVOKED_SECONDS = 60
"""When devices come again whose leader must sign in first."""
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
    why: Error | None = None
    """Why OSM would not be asked now, not even for a person."""


class Fetch(msgspec.Struct, frozen=True):
    """Ask OSM for the term, the scores or both, for that purpose; then decide anew."""

    term: bool
    scores: bool
    purpose: Purpose = "read"


class Refuse(msgspec.Struct, frozen=True):
    """Answer with that error; asking again before `until` changes nothing."""

    error: Error
    until: datetime | None = None


Decision = Serve | Fetch | Refuse


def decide(
    known: Known, now: datetime, *, since: datetime | None = None, thresholds: Thresholds | None = None
) -> Decision:
    """What to do; `since`: a person wants nothing older than that.

    Scores that are there are kept from nobody but users whose sign-in is revoked, or whose profile has no such section
    or no term of it.
    """
    purpose: Purpose = "read" if since is None else "look"
    thresholds = thresholds or Thresholds()
    if known.revoked:
        return Refuse("blocked", now + timedelta(seconds=REVOKED_SECONDS))
    term_due = is_term_due(known.term, now, since)
    if known.term is not None and known.term.found != "term" and not term_due:
        return _missing(known.term)
    stale = known.scores is None or not known.scores.is_fresh(now, since)
    if known.scores is not None and not stale and not term_due:
        look = _obstacle(known, now, thresholds, "look")
        until = _shown(known.scores.valid_until, now)
        return Serve(known.scores, known.service_blocked, until, None if look is None else look.error)
    obstacle = _obstacle(known, now, thresholds, purpose)
    if obstacle is None:
        return Fetch(term=term_due, scores=stale, purpose=purpose)
    return _without_asking(known, obstacle, now, since)


def give_up(known: Known, until: datetime, now: datetime, *, since: datetime | None = None) -> Serve | Refuse:
    """What to answer when OSM was asked and still nothing is known."""
    return _without_asking(known, Refuse("upstream_error", until), now, since)


def is_term_due(term: Term | None, now: datetime, since: datetime | None = None) -> bool:
    """Whether the term must be looked up before the next read, if that can be done; `since` as for `decide`."""
    if term is None or (since is not None and term.checked_at < since):
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


def _obstacle(known: Known, now: datetime, thresholds: Thresholds, purpose: Purpose) -> Refuse | None:
    """Why OSM must not be asked now for that purpose."""
    if known.service_blocked:
        return Refuse("service_blocked", now + timedelta(seconds=BLOCKED_SECONDS))
    if known.blocked_until is not None and now < known.blocked_until:
        return Refuse("rate_limited", known.blocked_until)
    if not thresholds.allows(purpose, known.remaining):
        renewed = known.budget.reset_at if known.budget is not None else None
        return Refuse("rate_limited", renewed or longest(now))
    if known.failure is not None and now < known.failure.until:
        return Refuse(known.failure.error, known.failure.until)
    return None


def _without_asking(known: Known, obstacle: Refuse, now: datetime, since: datetime | None) -> Serve | Refuse:
    """The best that can be said without OSM."""
    if known.term is not None and known.term.found != "term":
        return _missing(known.term)
    if known.scores is None:
        return obstacle
    is_fresh = known.scores.is_fresh(now)
    until = known.scores.valid_until if is_fresh else min(obstacle.until or longest(now), longest(now))
    stale = known.service_blocked or not known.scores.is_fresh(now, since)
    return Serve(known.scores, stale, _shown(until, now), obstacle.error)


def _missing(term: Term) -> Refuse:
    until = term.checked_at + timedelta(seconds=MISSING_SECONDS)
    return Refuse("section_not_found" if term.found == "no_section" else "not_in_term", until)


def longest(now: datetime) -> datetime:
    """When a device comes again at the latest."""
    return now + timedelta(seconds=LONGEST_SECONDS)


def _shown(until: datetime, now: datetime) -> datetime:
    """A whole second in the future."""
    return whole_second(max(until, now + timedelta(seconds=1)))
