"""The rules of signing in by device code (RFC 8628). Pure: what each answer means, and when to ask again."""

from __future__ import annotations

from typing import Annotated, assert_never
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from carrick_device.answers import (
    FOREIGN,
    Failed,
    Reply,
    Response,
    TooMany,
    Unreachable,
    clean,
    decoded,
    failure_of,
    problem_of,
    retry_seconds,
)

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"

DEFAULT_INTERVAL = 5
SLOW_DOWN_SECONDS = 5
LONGEST_INTERVAL = 300
LONGEST_EXPIRY = 86_400
REFUSED_PAUSE_SECONDS = 30.0
MAX_CODE = 20
MAX_LINK = 200

Text = Annotated[str, Meta(min_length=1, max_length=2000)]


class Code(msgspec.Struct, frozen=True):
    """A code that a person can confirm. Its device code is a secret."""

    device_code: Text
    user_code: Text
    verification_uri: Text
    expires_in: Annotated[int, Meta(ge=1)]
    verification_uri_complete: Annotated[str, Meta(max_length=2000)] = ""
    verification_uri_short: Annotated[str, Meta(max_length=2000)] = ""
    interval: Annotated[int, Meta(ge=0)] = DEFAULT_INTERVAL

    def __repr__(self) -> str:
        return f"Code({self.user_code!r}, ***)"

    @property
    def link(self) -> str:
        """What goes into the QR code: the shortest address that has the code in it."""
        return self.verification_uri_short or self.verification_uri_complete or self.verification_uri


class UnknownClient(msgspec.Struct, frozen=True):
    """The server does not let this client in, or wants something else from it: an operator must see to it."""

    message: str


CodeVerdict = Code | TooMany | UnknownClient | Failed


class Token(msgspec.Struct, frozen=True):
    """Signed in. Never logged."""

    access_token: Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[\x21-\x7e]+$")]

    def __repr__(self) -> str:
        return "Token(***)"


class Pending(msgspec.Struct, frozen=True):
    """Nobody has confirmed the code yet."""


class SlowDown(msgspec.Struct, frozen=True):
    """Asked too soon: five seconds more between two polls from now on."""


class Denied(msgspec.Struct, frozen=True):
    """A person said no."""


class Expired(msgspec.Struct, frozen=True):
    """The code is no longer good: a new one is needed."""


TokenVerdict = Token | Pending | SlowDown | Denied | Expired | TooMany | UnknownClient | Failed


class Pace(msgspec.Struct, frozen=True):
    """How far apart two polls are, and how many in a row did not get through."""

    interval: float
    failures: int = 0
    at_least: float = 0.0
    """What the server asked for, for the next poll only."""

    @property
    def seconds(self) -> float:
        """Until the next poll: twice as long for each failure, as RFC 8628 asks."""
        doubled = min(LONGEST_INTERVAL, self.interval * 2.0 ** min(self.failures, 10))
        return max(self.interval, self.at_least, doubled)


def read_code(reply: Reply) -> CodeVerdict:
    """What the answer of POST /device/authorize means."""
    if isinstance(reply, Unreachable):
        return Failed(reply.message, away=True)
    if reply.status == 200:
        return _code(reply)
    if reply.status == 429:
        return TooMany(retry_seconds(reply, problem_of(reply)))
    return _refused(reply)


def read_token(reply: Reply) -> TokenVerdict:
    """What the answer of POST /device/token means."""
    if isinstance(reply, Unreachable):
        return Failed(reply.message, away=True)
    if reply.status == 200:
        return _token(reply)
    if reply.status == 429:
        return TooMany(retry_seconds(reply, problem_of(reply)))
    if reply.status != 400:
        return _refused(reply)
    match problem_of(reply).error:
        case "authorization_pending":
            return Pending()
        case "slow_down":
            return SlowDown()
        case "access_denied":
            return Denied()
        case "expired_token" | "invalid_grant":
            return Expired()
        case _:
            return _refused(reply)


def pace_of(code: Code) -> Pace:
    """How often a code may be polled."""
    return Pace(float(max(1, min(LONGEST_INTERVAL, code.interval))))


def pace_after(verdict: Pending | SlowDown | TooMany | Failed, pace: Pace) -> Pace:
    """How often from now on."""
    match verdict:
        case Pending():
            return Pace(pace.interval)
        case SlowDown():
            return Pace(pace.interval + SLOW_DOWN_SECONDS)
        case TooMany(seconds=seconds) | Failed(seconds=seconds):
            return Pace(pace.interval, pace.failures + 1, float(seconds or 0))
        case _:
            assert_never(verdict)


def _code(response: Response) -> CodeVerdict:
    code = decoded(response.body, Code)
    if code is None:
        return Failed(FOREIGN)
    links = (code.verification_uri, code.verification_uri_complete, code.verification_uri_short)
    if not all(_is_link(link) for link in links if link):
        return Failed("The server gave an address for signing in that is none.")
    return msgspec.structs.replace(
        code, user_code=clean(code.user_code, MAX_CODE), expires_in=min(LONGEST_EXPIRY, code.expires_in)
    )


def _is_link(text: str) -> bool:
    """Whether it is an address that can be shown and scanned."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    shown = clean(text, MAX_LINK) == text and " " not in text
    return shown and parts.scheme in ("http", "https") and bool(parts.netloc)


def _token(response: Response) -> TokenVerdict:
    return decoded(response.body, Token) or Failed(FOREIGN)


def _refused(response: Response) -> UnknownClient | Failed:
    problem = problem_of(response)
    if response.status in (400, 401, 403) and problem.error:
        return UnknownClient(problem.words)
    return failure_of(response)
