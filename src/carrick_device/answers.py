"""What an answer of the server means. Pure: no I/O, no clock.

Something other than the server may answer too (a proxy, the login page of a wireless network), so nothing is believed
that does not look like the server: least of all that the token is no longer good.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

MAX_PATROLS = 200
MAX_NAME = 60
MAX_MESSAGE = 160
LONGEST_RETRY_SECONDS = 86_400
FOREIGN = "The answer is not that of a scoreboard; is something between us and the server?"

T = TypeVar("T")

Points = Annotated[int, Meta(ge=-(10**9), le=10**9)]
Word = Annotated[str, Meta(max_length=2000)]


class Response(msgspec.Struct, frozen=True):
    """An HTTP response. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Unreachable(msgspec.Struct, frozen=True):
    """No response came; why, in a few words."""

    message: str


Reply = Response | Unreachable


class Patrol(msgspec.Struct, frozen=True, rename="camel"):
    """A patrol as the server tells it."""

    id: Word
    name: Word
    score: Points
    pending_delta: Points = 0
    has_pending: bool = False


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """What leaders have set for the section."""

    patrol_colors: dict[str, str] = {}


class WebSocket(msgspec.Struct, frozen=True):
    """Whether the server wants to tell this device about changes."""

    requested: bool = False


class Scores(msgspec.Struct, frozen=True):
    """The answer of GET /api/v1/patrols, as far as a display needs it."""

    patrols: Annotated[tuple[Patrol, ...], Meta(max_length=MAX_PATROLS)]
    cached_at: datetime
    cache_expires_at: datetime
    stale: bool = False
    settings: Settings = Settings()
    websocket: WebSocket = WebSocket()


class Got(msgspec.Struct, frozen=True):
    """Scores. `fresh_seconds`: until the server may have newer ones, by its own clock; None without one."""

    scores: Scores
    fresh_seconds: float | None


class SignInAgain(msgspec.Struct, frozen=True):
    """The token is no longer good; why, in words for a leader."""

    message: str


class BetweenTerms(msgspec.Struct, frozen=True):
    """The section has no term now, so there are no scores."""


class TooMany(msgspec.Struct, frozen=True):
    """Asked too often: not again for so many seconds, where the server says how many."""

    seconds: int | None


class NoSection(msgspec.Struct, frozen=True):
    """The device has no section, or one that is gone: a leader must choose."""

    message: str


class Failed(msgspec.Struct, frozen=True):
    """It did not work and may work later. `seconds`: not before, where the server says so."""

    message: str
    seconds: int | None = None
    away: bool = False
    """Nothing answered at all."""


Verdict = Got | SignInAgain | BetweenTerms | TooMany | NoSection | Failed


class Problem(msgspec.Struct, frozen=True):
    """The body of a refusal."""

    error: Word = ""
    message: Word = ""
    error_description: Word = ""
    retry_after: float | None = None

    @property
    def words(self) -> str:
        """What the server says about it, fit to be shown."""
        return clean(self.message or self.error_description or self.error, MAX_MESSAGE)


def read_scores(reply: Reply) -> Verdict:
    """What the answer of GET /api/v1/patrols means."""
    if isinstance(reply, Unreachable):
        return Failed(reply.message, away=True)
    problem = problem_of(reply)
    match reply.status, problem.error:
        case 200, _:
            return _scores(reply)
        case 401, _ if _from_the_api(reply):
            return SignInAgain("This device was signed out.")
        case 403, "blocked":
            return SignInAgain("The authorisation was withdrawn.")
        case 409, "not_in_term":
            return BetweenTerms()
        case 429, _:
            return TooMany(retry_seconds(reply, problem))
        case 400, "section_not_configured" | "section_not_found":
            return NoSection(problem.words)
        case _:
            return failure_of(reply)


def failure_of(response: Response) -> Failed:
    """A response that is no answer to what was asked."""
    problem = problem_of(response)
    if 300 <= response.status < 400:
        return Failed(f"The server sends us to {clean(response.headers.get('location', ''), MAX_MESSAGE)}; use that.")
    words = problem.words or "no reason given"
    return Failed(f"The server answered {response.status}: {words}", retry_seconds(response, problem))


def problem_of(response: Response) -> Problem:
    """The body of a refusal; an empty one where it is no such body."""
    return decoded(response.body, Problem) or Problem()


def retry_seconds(response: Response, problem: Problem) -> int | None:
    """How long the server wants to be left alone: Retry-After in seconds or as a date, else the body."""
    stated = response.headers.get("retry-after", "").strip()
    if stated.isascii() and stated.isdecimal():
        return _within(int(stated[:9]))
    if (until := _http_date(stated)) and (now := _http_date(response.headers.get("date", ""))):
        return _within((until - now).total_seconds())
    return None if problem.retry_after is None else _within(problem.retry_after)


def decoded(body: bytes, kind: type[T]) -> T | None:
    """The body as such a value, or None when it is something else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def clean(text: str, limit: int) -> str:
    """The text on one line without control characters, cut to the limit: it goes to a terminal."""
    shown = "".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text)
    return " ".join(shown.split())[:limit]


def _scores(response: Response) -> Verdict:
    scores = decoded(response.body, Scores)
    if scores is None:
        return Failed(FOREIGN)
    if scores.cache_expires_at.tzinfo is None:
        return Failed("The answer has a time without a zone.")
    patrols = tuple(msgspec.structs.replace(patrol, name=clean(patrol.name, MAX_NAME)) for patrol in scores.patrols)
    now = _http_date(response.headers.get("date", ""))
    fresh = None if now is None else (scores.cache_expires_at - now).total_seconds()
    return Got(msgspec.structs.replace(scores, patrols=patrols), fresh)


def _from_the_api(response: Response) -> bool:
    """Whether a 401 is about our token, and not of a proxy that wants its own password."""
    challenge = response.headers.get("www-authenticate", "")
    return not challenge or "bearer" in challenge.lower()


def _http_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _within(seconds: float) -> int:
    return round(max(0.0, min(float(LONGEST_RETRY_SECONDS), seconds)))
