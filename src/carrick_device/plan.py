"""When to ask again. Pure: chance is passed in as a number from 0 to 1."""

from __future__ import annotations

from typing import assert_never

import msgspec

from carrick_device.answers import BetweenTerms, Failed, Got, NoSection, SignInAgain, TooMany, Verdict

FIRST_RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 900.0
BETWEEN_TERMS_SECONDS = 3600.0
UNDATED_SECONDS = 300.0
"""How long scores are fresh when the answer has no date to compare with."""
SHORTEST_FRESH_SECONDS = 10.0
"""Against a server that calls its scores stale already: it is asked now and then, not all the time."""
LONGEST_FRESH_SECONDS = 6 * 3600.0
"""Against a server that names a year to come."""
JITTER_SECONDS = (1.0, 5.0)
"""Many devices have the same answer; they do not all come back in the same second."""
BETWEEN_REQUESTS_SECONDS = 1.0
"""However often the server says that there is news."""


class Wait(msgspec.Struct, frozen=True):
    """Ask again after so many seconds. `hurried`: sooner, if the server says that there is news."""

    seconds: float
    hurried: bool = True
    failures: int = 0
    """How many times in a row it did not work."""


def wait_after(verdict: Verdict, failures: int, chance: float) -> Wait:
    """How long to wait after an answer, when so many before it were failures."""
    match verdict:
        case Got(fresh_seconds=fresh):
            return Wait(_fresh(fresh) + jitter(chance))
        case BetweenTerms():
            return Wait(BETWEEN_TERMS_SECONDS + jitter(chance))
        case TooMany():
            return Wait(least_wait(verdict.seconds, failures, chance), hurried=False, failures=failures + 1)
        case Failed():
            hurried = verdict.seconds is None
            return Wait(least_wait(verdict.seconds, failures, chance), hurried=hurried, failures=failures + 1)
        case NoSection():
            return Wait(backoff(failures, chance), failures=failures + 1)
        case SignInAgain():
            return Wait(0.0)
        case _:
            assert_never(verdict)


def backoff(failures: int, chance: float) -> float:
    """Seconds to wait after one more failure: doubled each time, at most a quarter of an hour, spread over its half."""
    longest = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(failures, 20))
    return longest * (0.5 + 0.5 * chance)


def least_wait(stated: int | None, failures: int, chance: float) -> float:
    """Seconds to wait after a failure: those the server stated, where it did, and no less than backing off."""
    return max(backoff(failures, chance), 0.0 if stated is None else stated + jitter(chance))


def jitter(chance: float) -> float:
    """A few seconds more."""
    least, most = JITTER_SECONDS
    return least + (most - least) * chance


def hurry(asked_ago: float) -> float:
    """How long to wait when there is news and the last request left so many seconds ago."""
    return max(0.0, BETWEEN_REQUESTS_SECONDS - asked_ago)


def _fresh(seconds: float | None) -> float:
    if seconds is None:
        return UNDATED_SECONDS
    return max(SHORTEST_FRESH_SECONDS, min(LONGEST_FRESH_SECONDS, seconds))
