"""What an answer of OSM means: one place that looks at every response, whatever was asked. Pure.

OSM says "blocked" with a header or with a page of status 200, errors with status 200 and a body, and JSON as text/html.
And it is not always OSM that answers: only what it says in its own words, by name, is taken for a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec

from carrick.sinks.own_words import own_words

BLOCK_TITLE = re.compile(rb"<title>\s*Online Scout Manager \(OSM\):\s*Blocked\s*</title>", re.IGNORECASE)
TITLE_WITHIN = 65_536
"""How much of a page is searched for its title."""

FIRST_RETRY_SECONDS = 60
"""How long to wait after a 429 that does not say."""
LONGEST_RETRY_SECONDS = 7 * 86_400
MAX_MESSAGE = 200

FINAL = frozenset((400, 409, 413, 415, 422))
"""With these a refusal is about what was asked: the same will be refused again."""
FAILED = frozenset((500, 501, 505))
PASSING = frozenset((408, 425, 502, 503, 504))
"""These are about the moment, whoever says them."""

Weight = Literal["final", "again", "held"]
"""What points come to that OSM refuses: they are over; they are tried a few times more; or their leader waits."""


class Response(msgspec.Struct, frozen=True):
    """An HTTP response. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Budget(msgspec.Struct, frozen=True):
    """What the rate-limit headers say. None is unknown, which is not zero."""

    limit: int | None
    remaining: int | None
    reset_seconds: int | None


class Ok(msgspec.Struct, frozen=True):
    """It worked; `value` is the JSON of the answer."""

    value: Any


class RateLimited(msgspec.Struct, frozen=True):
    """This user has asked too often: nothing for so many seconds."""

    seconds: int


class ServiceBlocked(msgspec.Struct, frozen=True):
    """The whole application is blocked. To go on makes it permanent: nothing leaves until a person says so."""

    header: str
    """The value of X-Blocked; empty where a page said it."""


class AuthRevoked(msgspec.Struct, frozen=True):
    """The user's authorisation is gone: they must sign in again."""


class Misconfigured(msgspec.Struct, frozen=True):
    """OSM does not know this application: the operator must correct its id or secret. No user's fault."""

    message: str


class Denial(msgspec.Struct, frozen=True):
    """OSM itself says no to this call of this user."""

    code: str
    message: str
    weight: Weight


class UpstreamError(msgspec.Struct, frozen=True):
    """OSM failed, or somebody on the way answered in its place. `seconds`: how long they ask to be left alone."""

    code: str
    message: str
    seconds: int | None = None


class InvalidData(msgspec.Struct, frozen=True):
    """An answer that makes no sense."""

    message: str


Verdict = Ok | RateLimited | ServiceBlocked | AuthRevoked | Misconfigured | Denial | UpstreamError | InvalidData


class Deprecated(msgspec.Struct, frozen=True):
    """OSM will no longer answer a call: in its own words, and from when on; None where it names no date that is one."""

    said: str
    ends_at: datetime | None


class Answer(msgspec.Struct, frozen=True):
    """A verdict, with what OSM says beside it."""

    status: int
    verdict: Verdict
    budget: Budget
    deprecated: Deprecated | None


def classify(response: Response, now: datetime) -> Answer:
    """What a response to a call of the API means."""
    return _answer(response, _stopped(response, now) or _refusal(response, now) or _content(response))


def classify_token(response: Response, now: datetime) -> Answer:
    """What a response of the token endpoint means: there a refused grant says that the authorisation is gone."""
    return _answer(response, _stopped(response, now) or _grant_refused(response, now) or _content(response))


def budget_of(headers: Mapping[str, str]) -> Budget:
    """The rate-limit headers; what is missing or no number is unknown."""
    return Budget(
        limit=_whole(headers.get("x-ratelimit-limit")),
        remaining=_whole(headers.get("x-ratelimit-remaining")),
        reset_seconds=_whole(headers.get("x-ratelimit-reset")),
    )


def _answer(response: Response, verdict: Verdict) -> Answer:
    said = response.headers.get("x-deprecated")
    deprecated = None if said is None else Deprecated(said[:MAX_MESSAGE], moment_of(said))
    return Answer(response.status, verdict, budget_of(response.headers), deprecated)


def _stopped(response: Response, now: datetime) -> Verdict | None:
    """What any endpoint may say instead of an answer. A block comes first, whatever else the response is."""
    if "x-blocked" in response.headers:
        return ServiceBlocked(response.headers["x-blocked"])
    if _is_page(response.body) and BLOCK_TITLE.search(response.body[:TITLE_WITHIN]):
        return ServiceBlocked("")
    if response.status == 429:
        return RateLimited(_retry_seconds(response.headers, now))
    return None


def _refusal(response: Response, now: datetime) -> Verdict | None:
    """A status that is not a good one. OSM's own no has a name; a 401 of its own may have none."""
    if _is_good(response.status):
        return None
    said = own_words(response.body)
    if response.status == 401 and said is not None:
        return AuthRevoked()
    name = _name_of_error(said)
    if name is None or response.status in PASSING:
        return _not_osm(response, now)
    return Denial(f"http_{response.status}", name, _weight(response.status))


def _grant_refused(response: Response, now: datetime) -> Verdict | None:
    """A used refresh token is 401 invalid_request or 400 invalid_grant; a wrong client is not the user's fault."""
    if _is_good(response.status):
        return None
    name = _name_of_error(own_words(response.body))
    if name is None or response.status >= 500 or response.status in PASSING:
        return _not_osm(response, now)
    if name in ("invalid_client", "unauthorized_client"):
        return Misconfigured(name)
    if name == "invalid_grant" or response.status == 401:
        return AuthRevoked()
    return Denial(name, f"OSM refused: {name}", "held")


def _weight(status: int) -> Weight:
    if status in FINAL:
        return "final"
    return "again" if status in FAILED else "held"


def _not_osm(response: Response, now: datetime) -> UpstreamError:
    """Nothing that OSM says of this call, by name."""
    seconds = _asked_pause(response.headers, now) if response.status == 503 else None
    told = f"status {response.status} came back, and no word of OSM's own about it"
    return UpstreamError(f"http_{response.status}", told, seconds)


def _content(response: Response) -> Verdict:
    """The body of an answer with a good status, which is not always a good answer."""
    if not response.body.strip():
        return UpstreamError("empty", "OSM answered with nothing")
    if _is_page(response.body):
        return UpstreamError("page", "a page came back instead of data")
    value = _json_of(response.body)
    if value is msgspec.UNSET:
        return InvalidData("the answer is not JSON")
    if value is False or value is None:
        return Denial("false", "OSM answered no", "held")
    name = _name_of_error(value)
    if name is not None:
        return Denial("stated", name, "again")
    if isinstance(value, dict) and value.get("status") is False:
        return Denial("stated", "OSM says that it did not work", "held")
    return Ok(value)


def _name_of_error(value: Any) -> str | None:
    """The error that an answer names: `error` or `err`, a text or an object with a message."""
    said = (value.get("error") or value.get("err")) if isinstance(value, dict) else None
    if not said:
        return None
    text = said.get("message") if isinstance(said, dict) else said
    return "".join(letter if letter.isprintable() else " " for letter in str(text or "unnamed")[:MAX_MESSAGE])


def _json_of(body: bytes) -> Any:
    """The value, whatever its content type claims; UNSET when it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.UNSET


def _is_good(status: int) -> bool:
    return 200 <= status < 300


def _is_page(body: bytes) -> bool:
    return body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _retry_seconds(headers: Mapping[str, str], now: datetime) -> int:
    """Retry-After in either form, else the reset of the budget, else a minute."""
    seconds = _asked_pause(headers, now)
    if seconds is None:
        seconds = _whole(headers.get("x-ratelimit-reset"))
    return min(max(FIRST_RETRY_SECONDS if seconds is None else seconds, 1), LONGEST_RETRY_SECONDS)


def _asked_pause(headers: Mapping[str, str], now: datetime) -> int | None:
    """Retry-After in either form."""
    given = headers.get("retry-after", "").strip()
    seconds = _whole(given)
    return _until(given, now) if seconds is None else seconds


def _until(date: str, now: datetime) -> int | None:
    at = moment_of(date)
    return None if at is None else max(0, round((at - now).total_seconds()))


def moment_of(text: str) -> datetime | None:
    """A date of ISO 8601 or of HTTP, in UTC where it names no zone; None where it is neither."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            at = read(text.strip())
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and len(text) <= 18 and text.strip().isdecimal() and text.isascii() else None
