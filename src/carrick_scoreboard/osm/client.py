"""Calls OSM: never while it says stop, never more than needed, and always knowing whether a request had left."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NoReturn, Protocol, TypeVar, assert_never
from urllib.parse import urlsplit

import aiohttp
import msgspec

from carrick.steady import steady_seconds
from carrick_scoreboard.osm import classify as said
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Nonsense, Patrol, Profile, patrols_of, profile_of, written_of
from carrick_scoreboard.osm.limits import Purpose, Thresholds
from carrick_scoreboard.osm.standing import Standing

log = logging.getLogger("carrick.osm")

T = TypeVar("T")

TIMEOUT_SECONDS = 15.0
MAX_ANSWER_BYTES = 5 * 1024 * 1024
LARGEST_ID = 2**53
LARGEST_POINTS = 10**9
TOO_LONG = "the answer is too long"
TOO_LATE = "it was too late to begin"
ONCE = "no request leaves twice"


class Meter(Protocol):
    """Counts calls."""

    def called(self, endpoint: str, status: str, seconds: float) -> None:
        """A call is over; the status is that of HTTP, or the kind of failure."""
        ...


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in or a refresh gave. Never logged."""

    access_token: str
    refresh_token: str
    expires_in: int

    def __repr__(self) -> str:
        return "Tokens(***)"


class Credential(msgspec.Struct, frozen=True):
    """Whose call it is, and what proves it."""

    user_id: int
    access_token: str

    def __repr__(self) -> str:
        return f"Credential({self.user_id}, ***)"


class Application(msgspec.Struct, frozen=True):
    """How OSM knows Carrick: OSM_DOMAIN, OSM_CLIENT_ID, OSM_CLIENT_SECRET."""

    domain: str
    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"Application({self.domain!r}, {self.client_id!r}, ***)"


class OsmClient:
    """One per process. Every call raises an OsmError when it did not work."""

    def __init__(
        self,
        application: Application,
        standing: Standing,
        meter: Meter,
        *,
        thresholds: Thresholds | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._application = application
        self._standing = standing
        self._meter = meter
        self._thresholds = thresholds or Thresholds()
        self.timeout_seconds = timeout_seconds
        self._now = now
        self._session: aiohttp.ClientSession | None = None
        self._flights: dict[tuple[Any, ...], asyncio.Task[Any]] = {}

    async def close(self) -> None:
        """End the connections. Closing again changes nothing."""
        if self._session is not None:
            await self._session.close()

    async def reachable(self) -> bool:
        """Whether a bare connection to OSM comes about now, if there may be one at all; nothing is asked."""
        if await self._standing.service_block() is not None:
            return False
        address = urlsplit(self._application.domain)
        port = address.port or (443 if address.scheme == "https" else 80)
        try:
            async with asyncio.timeout(self.timeout_seconds):
                _, writer = await asyncio.open_connection(address.hostname, port)
        except OSError:  # a TimeoutError is one
            return False
        writer.close()
        return True

    async def profile(self, access_token: str, user_id: int | None = None, *, purpose: Purpose = "read") -> Profile:
        """Who the token belongs to, and what they see. The user is not known yet when they have just signed in."""

        async def fetch() -> Profile:
            return await self._asked("profile", "/oauth/resource", access_token, user_id, profile_of, purpose=purpose)

        return await self._single_flight(("profile", purpose, access_token), fetch)

    async def patrols(
        self, credential: Credential, section_id: int, term_id: int, *, purpose: Purpose = "read"
    ) -> tuple[Patrol, ...]:
        """The patrols of a section that take part, with their points. One call serves all who ask meanwhile.

        A read that a write needs is made for that purpose: it may use what is kept for writes, and is its own.
        """
        query = {
            "action": "getPatrolsWithPeople",
            "sectionid": _checked_id("section", section_id),
            "termid": _checked_id("term", term_id),
            "include_no_patrol": "y",
        }

        async def fetch() -> tuple[Patrol, ...]:
            return await self._asked(
                "patrols",
                "/ext/members/patrols/",
                credential.access_token,
                credential.user_id,
                patrols_of,
                purpose=purpose,
                query=query,
            )

        return await self._single_flight(("patrols", purpose, section_id, term_id, credential.user_id), fetch)

    async def set_points(
        self, credential: Credential, section_id: int, patrol_id: str, points: int, *, not_after: float = math.inf
    ) -> None:
        """Set a patrol's points to this value. Neither repeated nor shared: who calls decides about a second time.

        `not_after` is a time of `steady_seconds`: the last look at it is taken when the request leaves.
        """
        if not patrol_id.isascii() or not patrol_id.isdecimal() or len(patrol_id) > 16:
            raise ValueError(f"patrol id {patrol_id[:40]!r}; accepted: digits")
        if abs(points) > LARGEST_POINTS:
            raise ValueError(f"points {points}; accepted: up to {LARGEST_POINTS} either way")
        await self._asked(
            "set_points",
            "/ext/members/patrols/",
            credential.access_token,
            credential.user_id,
            written_of,
            purpose="write",
            query={"action": "updatePatrolPoints", "sectionid": _checked_id("section", section_id)},
            form={"points": str(points), "patrolid": patrol_id},
            not_after=not_after,
        )

    async def exchange(self, code: str, redirect_uri: str, verifier: str | None) -> Tokens:
        """The tokens for the code of a sign-in."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        return await self._tokens({**form, **({"code_verifier": verifier} if verifier else {})})

    async def refresh(self, refresh_token: str) -> Tokens:
        """New tokens; the one given is used up."""
        return await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def _tokens(self, form: Mapping[str, str]) -> Tokens:
        """The application's secret goes in the body, as OSM wants it."""
        await self._pass_service_block()
        own = {"client_id": self._application.client_id, "client_secret": self._application.client_secret}
        response = await self._exchange("token", "/oauth/token", {}, None, {**form, **own})
        answer = said.classify_token(response, self._now())
        return await self._value(answer, None, "token", lambda value: msgspec.convert(value, Tokens, strict=False))

    async def _asked(
        self,
        endpoint: str,
        path: str,
        access_token: str,
        user_id: int | None,
        read: Callable[[Any], T],
        *,
        purpose: Purpose = "read",
        query: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        not_after: float = math.inf,
    ) -> T:
        """One call of the API, if it may be made."""
        await self._pass_service_block()
        if user_id is not None:
            await self._pass_user_limits(user_id, purpose)
        response = await self._exchange(
            endpoint, path, {"Authorization": f"Bearer {access_token}"}, query, form, not_after
        )
        return await self._value(said.classify(response, self._now()), user_id, endpoint, read)

    async def _pass_service_block(self) -> None:
        if await self._standing.service_block() is not None:
            raise errors.ServiceBlocked

    async def _pass_user_limits(self, user_id: int, purpose: Purpose) -> None:
        block = await self._standing.user_block(user_id)
        if block is not None:
            raise errors.RateLimited(block.blocked_at + timedelta(seconds=block.retry_after))
        known = await self._standing.budget(user_id)
        if known is not None and not self._thresholds.allows(purpose, known.remaining):
            raise errors.OutOfBudget(known.reset_at)

    async def _value(self, answer: said.Answer, user_id: int | None, endpoint: str, read: Callable[[Any], T]) -> T:
        """What the answer holds; what OSM says beside it is remembered first."""
        if answer.deprecated is not None or isinstance(answer.verdict, said.Ok):
            await self._standing.note_deprecated(endpoint, answer.deprecated)
        if user_id is not None:
            await self._standing.note_budget(user_id, answer.budget)
        try:
            if not isinstance(answer.verdict, said.Ok):
                await self._refuse(answer.verdict, user_id, endpoint)
            return _content(answer.verdict.value, endpoint, read)
        except errors.OsmError as error:
            error.http_status = answer.status
            raise

    async def _refuse(
        self,
        verdict: said.RateLimited
        | said.ServiceBlocked
        | said.AuthRevoked
        | said.Misconfigured
        | said.Denial
        | said.UpstreamError
        | said.InvalidData,
        user_id: int | None,
        endpoint: str,
    ) -> NoReturn:
        match verdict:
            case said.ServiceBlocked(header):
                log.critical("osm.service_blocked", extra={"endpoint": endpoint, "header": header[:200]})
                await self._standing.note_service_block(header)
                raise errors.ServiceBlocked(in_doubt=True)
            case said.RateLimited(seconds):
                log.error("osm.rate_limited", extra={"endpoint": endpoint, "user_id": user_id, "seconds": seconds})
                if user_id is not None:
                    await self._standing.note_user_block(user_id, seconds)
                raise errors.RateLimited(self._now() + timedelta(seconds=seconds))
            case said.AuthRevoked():
                log.warning("osm.auth_revoked", extra={"endpoint": endpoint, "user_id": user_id})
                raise errors.AuthRevoked
            case said.Misconfigured(message):
                log.error("osm.misconfigured", extra={"endpoint": endpoint, "said": message})
                raise errors.Misconfigured(message)
            case said.Denial(code, message, weight):
                log.warning(
                    "osm.denied", extra={"endpoint": endpoint, "user_id": user_id, "code": code, "said": message}
                )
                raise _denied(endpoint, code, message, weight)
            case said.UpstreamError(code, message, seconds):
                log.warning("osm.failed", extra={"endpoint": endpoint, "code": code, "said": message})
                raise errors.Unavailable(code, message, seconds)
            case said.InvalidData(message):
                log.error("osm.bad_data", extra={"endpoint": endpoint, "error": message})
                raise errors.BadData(message)
            case _:
                assert_never(verdict)

    async def _exchange(
        self,
        endpoint: str,
        path: str,
        headers: Mapping[str, str],
        query: Mapping[str, str] | None,
        form: Mapping[str, str] | None,
        not_after: float = math.inf,
    ) -> said.Response:
        """One request and its whole answer. Raises TimedOut, which knows whether the request had left."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        trace = SimpleNamespace(sent=False, not_after=not_after)
        status = "failed"
        try:
            async with (
                asyncio.timeout(self.timeout_seconds),
                self._opened().request(
                    "GET" if form is None else "POST",
                    self._application.domain + path,
                    params=query,
                    data=form,
                    headers=headers,
                    allow_redirects=False,
                    trace_request_ctx=trace,
                ) as response,
            ):
                status = str(response.status)
                body = await _read(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            why = "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
            log.warning("osm.no_answer", extra={"endpoint": endpoint, "why": why, "sent": trace.sent})
            raise errors.TimedOut(why, sent=trace.sent) from None
        finally:
            self._meter.called(endpoint, status, loop.time() - started)
        return said.Response(response.status, {name.lower(): value for name, value in response.headers.items()}, body)

    async def _single_flight(self, key: tuple[Any, ...], call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Who asks what is being asked already waits for that answer. A caller that goes leaves it to the others."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.get_running_loop().create_task(call())
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        waiting: Awaitable[T] = asyncio.shield(flight)
        return await waiting

    def _landed(self, key: tuple[Any, ...], flight: asyncio.Task[Any]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # whoever waited has it; if all are gone, nobody need be told

    def _opened(self) -> aiohttp.ClientSession:
        """The session, made when the first call needs it: it belongs to the event loop."""
        if self._session is None:
            tracing = aiohttp.TraceConfig()
            tracing.on_request_headers_sent.append(_note_sent)
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"user-agent": "carrick", "accept": "application/json"},
                timeout=aiohttp.ClientTimeout(total=None),
                trace_configs=[tracing],
            )
        return self._session


async def _note_sent(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    """The request leaves now: the last moment to think better of it."""
    trace = context.trace_request_ctx
    if steady_seconds() > trace.not_after:
        raise TimeoutError(TOO_LATE)
    if trace.sent:
        raise ConnectionResetError(ONCE)  # aiohttp repeats a GET by itself when the connection was cut
    trace.sent = True


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The whole body. Raises ValueError when it is longer than anything OSM sends."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError(TOO_LONG)
    return bytes(body)


def _denied(endpoint: str, code: str, message: str, weight: said.Weight) -> errors.OsmError:
    """Only a no to a write can be final; one to a section's patrols is about that section."""
    if endpoint == "set_points":
        return errors.Denied(code, message, weight)
    if code.startswith("http_5"):
        return errors.Unavailable(code, message)
    return errors.SectionDenied(code, message) if endpoint == "patrols" else errors.Denied(code, message, "held")


def _content(value: Any, endpoint: str, read: Callable[[Any], T]) -> T:
    """What an answer holds. Raises BadData."""
    try:
        return read(value)
    except (Nonsense, msgspec.ValidationError) as error:
        log.error("osm.bad_data", extra={"endpoint": endpoint, "error": str(error)})
        raise errors.BadData(str(error)) from None


def _checked_id(what: str, value: int) -> str:
    if not 1 <= value <= LARGEST_ID:
        raise ValueError(f"{what} id {value}; accepted: 1 to {LARGEST_ID}")
    return str(value)
