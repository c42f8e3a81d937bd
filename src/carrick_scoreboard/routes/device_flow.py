"""What devices ask over HTTP to be signed in (RFC 8628): a pair of codes, and then their token."""

from __future__ import annotations

import logging
import secrets
from typing import Any

import msgspec
from aiohttp import web

from carrick.relay.threads import Threads
from carrick.web.addresses import Visitor
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route, as_json
from carrick_scoreboard.routes.parameters import BadParameters, parameters_of
from carrick_scoreboard.sealing import digest, short
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.store.clients import CLIENT_ID, Clients
from carrick_scoreboard.store.devices import DeviceCode, Devices
from carrick_scoreboard.user_codes import new_user_code, shown
from carrick_scoreboard.web_security import Limits, is_secret, new_secret, visitor

log = logging.getLogger("carrick.scoreboard.device")

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
TOKEN_SECONDS = 365 * 86_400
"""Tokens of devices do not end by time: they end when a leader revokes them or nobody uses them any more. Clients want
a number all the same, so they are told a year; who asks again then gets a new token by signing in again."""
TRIES = 5
"""How often new codes are made when those before were taken."""

SAID = {
    "authorization_pending": "nobody has let this device in yet; ask again after the interval",
    "slow_down": "asked too soon; wait five seconds longer between two requests from now on",
    "access_denied": "a person has refused this device",
    "expired_token": "the code has expired; begin again",
    "invalid_grant": "the device code is not known, not of this client, or was used",
}


class AuthorizeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of `/device/authorize`, as JSON or as a form; others are ignored."""

    client_id: str


class Authorization(msgspec.Struct, frozen=True, kw_only=True):
    """A pair of codes: one for the device, one for a person."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    verification_uri_short: str
    expires_in: int
    interval: int


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of `/device/token`, as JSON or as a form; others are ignored."""

    grant_type: str
    device_code: str
    client_id: str


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """The device's token. `expires_in` is always there; see TOKEN_SECONDS."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  no secret
    expires_in: int = TOKEN_SECONDS


class _Refused(Exception):
    """Answer with this error of OAuth."""

    def __init__(self, error: str, said: str, status: int = 400, retry_after: int | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.said = said
        self.status = status
        self.retry_after = retry_after


class DeviceFlow:
    """The two endpoints."""

    def __init__(
        self, settings: ScoreboardSettings, devices: Devices, clients: Clients, threads: Threads, limits: Limits
    ) -> None:
        self._settings = settings
        self._devices = devices
        self._clients = clients
        self._threads = threads
        self._limits = limits

    async def authorize(self, call: Call[Any, Any]) -> web.Response:
        """A new pair of codes for a device application that is let in."""
        return await _answered(self._authorize(call.request))

    async def token(self, call: Call[Any, Any]) -> web.Response:
        """The token, or why there is none yet."""
        return await _answered(self._token(call.request))

    async def _authorize(self, request: web.Request) -> Authorization:
        who = visitor(request, self._settings)
        seconds = await self._limits.wait("authorize", who, self._settings.authorize_rate)
        if seconds:
            raise _Refused("rate_limited", f"too many requests from here; wait {seconds} seconds", 429, seconds)
        client_id = _needed(await parameters_of(request), "client_id")
        await self._pass_allow_list(client_id)
        device_code = new_secret()
        code = await self._begun(device_code, client_id, who)
        log.info("device.authorize", extra={"client_id": client_id, "device_code": short(device_code)})
        return self._authorization(device_code, code)

    async def _pass_allow_list(self, client_id: str) -> None:
        known = CLIENT_ID.fullmatch(client_id) is not None
        client = await self._threads.call(self._clients.get, client_id) if known else None
        if client is None or client.disabled_at is not None:
            raise _Refused("invalid_client", "this client_id is not let in; `carrick clients add` does that")

    async def _begun(self, device_code: str, client_id: str, who: Visitor) -> DeviceCode:
        for _ in range(TRIES):
            code = await self._threads.call(
                self._devices.begin,
                digest(device_code),
                new_user_code(secrets.choice),
                client_id,
                address=who.address,
                country=who.country,
                poll_seconds=self._settings.device_poll_seconds,
                seconds=self._settings.device_code_seconds,
            )
            if code is not None:
                return code
        raise Problem(503, "no_code", "no free code was found; try again", retry_after=1)

    def _authorization(self, device_code: str, code: DeviceCode) -> Authorization:
        here = self._settings.exposed_domain
        return Authorization(
            device_code=device_code,
            user_code=shown(code.user_code),
            verification_uri=f"{here}/device",
            verification_uri_complete=f"{here}/device?user_code={shown(code.user_code)}",
            verification_uri_short=f"{here}/d/{code.user_code}",
            expires_in=self._settings.device_code_seconds,
            interval=self._settings.device_poll_seconds,
        )

    async def _token(self, request: web.Request) -> Token:
        given = await parameters_of(request)
        if _needed(given, "grant_type") != GRANT_TYPE:
            raise _Refused("unsupported_grant_type", f"accepted: {GRANT_TYPE}")
        device_code, client_id = _needed(given, "device_code"), _needed(given, "client_id")
        if not is_secret(device_code):
            raise _Refused("invalid_grant", SAID["invalid_grant"])
        token = new_secret()
        polled = await self._threads.call(self._devices.poll, digest(device_code), client_id, digest(token))
        if polled.device is None:
            raise _Refused(polled.answer, SAID[polled.answer])
        log.info("device.token", extra={"device": polled.device.id, "device_code": short(device_code)})
        return Token(access_token=token)


def _needed(given: dict[str, str], name: str) -> str:
    value = given.get(name)
    if value is None:
        raise _Refused("invalid_request", f"{name} is missing, empty or no text")
    return value


async def _answered(work: Any) -> web.Response:
    """What came of it, as OAuth writes it. Nothing of it is ever kept on the way."""
    try:
        answer = as_json(await work)
    except _Refused as refused:
        answer = _error(refused.error, refused.said, refused.status, refused.retry_after)
    except BadParameters as bad:
        answer = _error("invalid_request", str(bad), bad.status)
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["Pragma"] = "no-cache"
    return answer


def _error(error: str, said: str, status: int, retry_after: int | None = None) -> web.Response:
    body: dict[str, Any] = {"error": error, "error_description": said}
    if retry_after is None:
        return as_json(body, status)
    answer = as_json({**body, "retry_after": retry_after}, status)
    answer.headers["Retry-After"] = str(retry_after)
    return answer


def routes(
    settings: ScoreboardSettings, devices: Devices, clients: Clients, threads: Threads, limits: Limits
) -> list[Route]:
    """The device's side of the flow."""
    flow = DeviceFlow(settings, devices, clients, threads, limits)
    return [
        Route(
            method="POST",
            path="/device/authorize",
            summary="Begin the sign-in of a device (RFC 8628, 3.1); also takes a form",
            handle=flow.authorize,
            takes=AuthorizeRequest,
            reads_itself=True,
            gives=Authorization,
            problems=[400, 408, 413, 415, 429, 503],
        ),
        Route(
            method="POST",
            path="/device/token",
            summary="Ask for the token of a device (RFC 8628, 3.4); also takes a form",
            handle=flow.token,
            takes=TokenRequest,
            reads_itself=True,
            gives=Token,
            problems=[400, 408, 413, 415, 503],
        ),
    ]
