"""Every row of the decision: what is known, and what is done about it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest

from carrick_scoreboard.osm.answers import Patrol, Profile, Section
from carrick_scoreboard.osm.answers import Term as OsmTerm
from carrick_scoreboard.osm.standing import KnownBudget
from carrick_scoreboard.patrols.decision import Decision, Fetch, Refuse, Serve, decide, give_up, today
from carrick_scoreboard.patrols.fetching import pause_seconds, term_of
from carrick_scoreboard.patrols.known import Failure, Known, SectionScores, Term
from carrick_scoreboard.patrols.patrols import newer

NOW = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)


def ago(**given: float) -> datetime:
    return NOW - timedelta(**given)


def ahead(**given: float) -> datetime:
    return NOW + timedelta(**given)


def scores(valid_until: datetime) -> SectionScores:
    return SectionScores(
        patrols=(Patrol("1", "Eagles", 3),), cached_at=ago(hours=1), valid_until=valid_until, term_id=7
    )


def budget(remaining: int, reset_at: datetime | None) -> KnownBudget:
    return KnownBudget(limit=1000, remaining=remaining, reset_at=reset_at, last_updated=NOW)


FRESH, OLD = scores(ahead(minutes=2)), scores(NOW)
TERM = Term(found="term", checked_at=ago(hours=1), term_id=7, end_date=date(2026, 4, 1))
NO_TERM = Term(found="no_term", checked_at=ago(minutes=14))
NO_SECTION = Term(found="no_section", checked_at=ago(minutes=14))
FAILED = Failure(error="upstream_error", until=ahead(seconds=40), count=1)
SPENT = budget(10, ahead(minutes=9))
EARLIER = Term(found="term", checked_at=ago(days=2), term_id=7, end_date=date(2026, 4, 1))


def changed(term: Term, **given: object) -> Term:
    return msgspec.structs.replace(term, **given)


ROWS: dict[str, tuple[Known, Decision]] = {
    "fresh scores are served": (Known(term=TERM, scores=FRESH), Serve(FRESH, False, FRESH.valid_until)),
    "old scores are fetched": (Known(term=TERM, scores=OLD), Fetch(term=False, scores=True)),
    "no scores are fetched": (Known(term=TERM), Fetch(term=False, scores=True)),
    "nothing known: term and scores are fetched": (Known(), Fetch(term=True, scores=True)),
    "access never checked: fresh scores of others are not served": (
        Known(scores=FRESH),
        Fetch(term=True, scores=False),
    ),
    "term looked up a day ago: again": (Known(term=EARLIER, scores=FRESH), Fetch(term=True, scores=False)),
    "term looked up just under a day ago: not again": (
        Known(term=changed(TERM, checked_at=ago(hours=23, minutes=59)), scores=FRESH),
        Serve(FRESH, False, FRESH.valid_until),
    ),
    "term past its end: again": (
        Known(term=changed(TERM, end_date=date(2026, 3, 1)), scores=FRESH),
        Fetch(term=True, scores=False),
    ),
    "on the last day of a term it still is the term": (
        Known(term=changed(TERM, end_date=date(2026, 3, 2)), scores=FRESH),
        Serve(FRESH, False, FRESH.valid_until),
    ),
    "after an error of OSM the term is looked up again": (
        Known(term=changed(TERM, suspect=True), scores=OLD),
        Fetch(term=True, scores=True),
    ),
    "but not within five minutes of the last time": (
        Known(term=changed(TERM, suspect=True, checked_at=ago(minutes=4)), scores=OLD),
        Fetch(term=False, scores=True),
    ),
    "no term: refused, with or without scores": (
        Known(term=NO_TERM, scores=FRESH),
        Refuse("not_in_term", ahead(minutes=1)),
    ),
    "no term after a quarter of an hour: looked up again": (
        Known(term=changed(NO_TERM, checked_at=ago(minutes=15)), scores=OLD),
        Fetch(term=True, scores=True),
    ),
    "no term and nobody to ask: refused": (
        Known(term=changed(NO_TERM, checked_at=ago(minutes=15)), scores=OLD, failure=FAILED),
        Refuse("not_in_term", NOW),
    ),
    "section not seen: refused": (Known(term=NO_SECTION, scores=FRESH), Refuse("section_not_found", ahead(minutes=1))),
    "section not seen, even while blocked": (
        Known(term=NO_SECTION, scores=FRESH, service_blocked=True),
        Refuse("section_not_found", ahead(minutes=1)),
    ),
    "revoked: refused at once, without old scores": (
        Known(revoked=True, term=TERM, scores=FRESH, service_blocked=True),
        Refuse("blocked", ahead(minutes=1)),
    ),
    "service blocked: old scores": (
        Known(service_blocked=True, term=TERM, scores=OLD),
        Serve(OLD, True, ahead(minutes=5), "service_blocked"),
    ),
    "service blocked: fresh ones, told as stale": (
        Known(service_blocked=True, term=TERM, scores=FRESH),
        Serve(FRESH, True, FRESH.valid_until, "service_blocked"),
    ),
    "service blocked without scores": (
        Known(service_blocked=True, term=TERM),
        Refuse("service_blocked", ahead(minutes=5)),
    ),
    "service blocked and the term is not known: the scores all the same": (
        Known(service_blocked=True, scores=FRESH),
        Serve(FRESH, True, FRESH.valid_until, "service_blocked"),
    ),
    "user limited and the term is not known: old scores": (
        Known(blocked_until=ahead(minutes=3), scores=OLD),
        Serve(OLD, True, ahead(minutes=3), "rate_limited"),
    ),
    "user limited: old scores until then": (
        Known(blocked_until=ahead(minutes=3), term=TERM, scores=OLD),
        Serve(OLD, True, ahead(minutes=3), "rate_limited"),
    ),
    "user limited for days: devices come again in a quarter of an hour": (
        Known(blocked_until=ahead(days=3), term=TERM, scores=OLD),
        Serve(OLD, True, ahead(minutes=15), "rate_limited"),
    ),
    "user limited, scores fresh through others": (
        Known(blocked_until=ahead(days=3), term=TERM, scores=FRESH),
        Serve(FRESH, False, FRESH.valid_until, "rate_limited"),
    ),
    "user limited without scores": (
        Known(blocked_until=ahead(hours=1), term=TERM),
        Refuse("rate_limited", ahead(hours=1)),
    ),
    "limit over": (Known(blocked_until=NOW, term=TERM, scores=OLD), Fetch(term=False, scores=True)),
    "budget kept for writes: old scores": (
        Known(budget=SPENT, term=TERM, scores=OLD),
        Serve(OLD, True, ahead(minutes=9), "rate_limited"),
    ),
    "budget kept for writes, no scores": (Known(budget=SPENT, term=TERM), Refuse("rate_limited", ahead(minutes=9))),
    "budget kept for writes, nobody knows how long": (
        Known(budget=budget(0, None), term=TERM),
        Refuse("rate_limited", ahead(minutes=15)),
    ),
    "budget good for one more read": (
        Known(budget=budget(11, None), term=TERM, scores=OLD),
        Fetch(term=False, scores=True),
    ),
    "budget good for a read and not for a person's look: told": (
        Known(budget=budget(20, None), term=TERM, scores=FRESH),
        Serve(FRESH, False, FRESH.valid_until, "rate_limited"),
    ),
    "failed lately: old scores": (
        Known(failure=FAILED, term=TERM, scores=OLD),
        Serve(OLD, True, FAILED.until, "upstream_error"),
    ),
    "failed lately: no scores": (Known(failure=FAILED, term=TERM), Refuse("upstream_error", FAILED.until)),
    "made no sense lately: no scores": (
        Known(failure=msgspec.structs.replace(FAILED, error="internal_error"), term=TERM),
        Refuse("internal_error", FAILED.until),
    ),
    "failed, but the pause is over": (
        Known(failure=msgspec.structs.replace(FAILED, until=NOW), term=TERM, scores=OLD),
        Fetch(term=False, scores=True),
    ),
    "failed while the term was due: fresh scores stay fresh": (
        Known(failure=FAILED, term=EARLIER, scores=FRESH),
        Serve(FRESH, False, FRESH.valid_until, "upstream_error"),
    ),
    "a block comes before a limit, a limit before a failure": (
        Known(service_blocked=True, blocked_until=ahead(hours=1), failure=FAILED, term=TERM),
        Refuse("service_blocked", ahead(minutes=5)),
    ),
}


@pytest.mark.parametrize(("known", "wanted"), ROWS.values(), ids=ROWS.keys())
def test_what_is_known_decides_what_is_done(known: Known, wanted: Decision) -> None:
    assert decide(known, NOW) == wanted


LOOKS: dict[str, tuple[Known, Decision]] = {
    "fresh scores are read again, with the term": (
        Known(term=TERM, scores=FRESH),
        Fetch(term=True, scores=True, purpose="look"),
    ),
    "what was read since is served": (
        Known(term=changed(TERM, checked_at=NOW), scores=msgspec.structs.replace(FRESH, cached_at=NOW)),
        Serve(msgspec.structs.replace(FRESH, cached_at=NOW), False, FRESH.valid_until),
    ),
    "budget good for one more look": (
        Known(budget=budget(21, None), term=TERM, scores=FRESH),
        Fetch(term=True, scores=True, purpose="look"),
    ),
    "budget kept for reads and writes: the scores, told as stale": (
        Known(budget=budget(20, ahead(minutes=9)), term=TERM, scores=FRESH),
        Serve(FRESH, True, FRESH.valid_until, "rate_limited"),
    ),
    "limited: the scores, told as stale": (
        Known(blocked_until=ahead(minutes=3), term=TERM, scores=FRESH),
        Serve(FRESH, True, FRESH.valid_until, "rate_limited"),
    ),
    "failed lately: the scores, told as stale": (
        Known(failure=FAILED, term=TERM, scores=OLD),
        Serve(OLD, True, FAILED.until, "upstream_error"),
    ),
    "no section a moment ago: looked for again": (
        Known(term=NO_SECTION, scores=FRESH),
        Fetch(term=True, scores=True, purpose="look"),
    ),
    "no section, and nobody to ask: refused": (
        Known(term=NO_SECTION, scores=FRESH, service_blocked=True),
        Refuse("section_not_found", ahead(minutes=1)),
    ),
}


@pytest.mark.parametrize(("known", "wanted"), LOOKS.values(), ids=LOOKS.keys())
def test_what_a_person_who_asks_now_gets(known: Known, wanted: Decision) -> None:
    assert decide(known, NOW, since=NOW) == wanted


def test_devices_come_again_on_a_whole_second_in_the_future() -> None:
    now = NOW + timedelta(milliseconds=300)
    served = decide(Known(service_blocked=True, term=TERM, scores=OLD), now)
    assert isinstance(served, Serve)
    assert served.expires_at == ahead(minutes=5, seconds=1)
    soon = decide(Known(blocked_until=now + timedelta(milliseconds=1), term=TERM, scores=OLD), now)
    assert isinstance(soon, Serve)
    assert soon.expires_at == ahead(seconds=2)


def test_who_asked_in_vain_gets_old_scores_or_an_upstream_error() -> None:
    until = ahead(seconds=30)
    assert give_up(Known(term=TERM, scores=OLD), until, NOW) == Serve(OLD, True, until, "upstream_error")
    assert give_up(Known(term=TERM), until, NOW) == Refuse("upstream_error", until)


@pytest.mark.parametrize(
    ("now", "day"),
    [
        ("2026-03-28T23:59:59+00:00", date(2026, 3, 28)),
        ("2026-06-30T23:00:00+00:00", date(2026, 7, 1)),  # summer time
        ("2026-06-30T22:59:59+00:00", date(2026, 6, 30)),
    ],
)
def test_days_begin_in_london(now: str, day: date) -> None:
    assert today(datetime.fromisoformat(now)) == day


def test_the_term_of_a_day_that_two_terms_share_is_the_later_one() -> None:
    terms = (
        OsmTerm(1, "Autumn", date(2026, 1, 1), date(2026, 3, 2)),
        OsmTerm(2, "Spring", date(2026, 3, 2), date(2026, 5, 1)),
    )
    profile = Profile(user_id=1, sections=(Section(9, "Scouts", terms=terms), Section(10, "Cubs")))
    assert term_of(profile, 9, NOW) == Term(found="term", checked_at=NOW, term_id=2, end_date=date(2026, 5, 1))
    assert term_of(profile, 10, NOW).found == "no_term"
    assert term_of(profile, 11, NOW).found == "no_section"


def test_pauses_after_failures_grow_from_a_minute_to_a_quarter_of_an_hour() -> None:
    assert [pause_seconds(failures) for failures in (1, 2, 3, 4, 5, 99)] == [60, 120, 240, 480, 900, 900]


def test_a_term_that_the_devices_row_has_later_wins_unless_it_was_written_with_the_shared_one() -> None:
    shared = changed(TERM, suspect=True)
    assert newer(shared, changed(TERM, checked_at=TERM.checked_at + timedelta(seconds=30))) == shared
    later = changed(TERM, checked_at=TERM.checked_at + timedelta(minutes=10))
    assert newer(shared, later) == later
    assert newer(NO_TERM, later) == NO_TERM
    assert (newer(None, TERM), newer(TERM, None), newer(None, None)) == (TERM, TERM, None)
