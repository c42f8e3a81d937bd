"""Signing the device in: shows a code and polls until somebody has confirmed it. The rules are in `signing_in`."""

from __future__ import annotations

from typing import assert_never

from carrick_device.answers import Failed, TooMany
from carrick_device.client import Server
from carrick_device.clock import Clock
from carrick_device.plan import backoff, least_wait
from carrick_device.screen import Notice, SignIn
from carrick_device.showing import explained
from carrick_device.signing_in import (
    REFUSED_PAUSE_SECONDS,
    Code,
    Denied,
    Expired,
    Pending,
    SlowDown,
    Token,
    UnknownClient,
    pace_after,
    pace_of,
    read_code,
    read_token,
)
from carrick_device.stage import Stage

PollEnd = Token | Denied | Expired | UnknownClient
End = PollEnd | TooMany | Failed


class Enrolment:
    """Signs in at one server."""

    def __init__(self, server: Server, stage: Stage, clock: Clock) -> None:
        self._server = server
        self._stage = stage
        self._clock = clock

    async def token(self, note: str) -> str:
        """Ask until somebody has signed this device in; its token. `note` says why it must sign in again."""
        failures = 0
        while True:
            end = await self.attempt(note)
            if isinstance(end, Token):
                return end.access_token
            if not isinstance(end, Expired):
                await self._clock.sleep(pause_after(end, failures, self._clock.chance()))
            failures = failures + 1 if isinstance(end, TooMany | UnknownClient | Failed) else 0

    async def attempt(self, note: str) -> End:
        """One code, shown and polled until it leads somewhere."""
        code = read_code(await self._server.authorize())
        if not isinstance(code, Code):
            self._stage.show(Notice("Cannot sign in", reason(code)))
            return code
        self._stage.show(SignIn(code.user_code, code.verification_uri, code.link, note))
        end = await self._poll(code)
        if not isinstance(end, Token | Expired):
            self._stage.show(Notice("Not signed in", reason(end)))
        return end

    async def _poll(self, code: Code) -> PollEnd:
        """Poll as RFC 8628 says, until the code is confirmed, refused or too old."""
        until = self._clock.seconds() + code.expires_in
        pace = pace_of(code)
        while self._clock.seconds() + pace.seconds < until:
            await self._clock.sleep(pace.seconds)
            answer = read_token(await self._server.token(code.device_code))
            match answer:
                case Token() | Denied() | Expired() | UnknownClient():
                    return answer
                case Pending() | SlowDown() | TooMany() | Failed():
                    pace = pace_after(answer, pace)
        await self._clock.sleep(max(0.0, until - self._clock.seconds()))
        return Expired()


def pause_after(end: Denied | UnknownClient | TooMany | Failed, failures: int, chance: float) -> float:
    """How long to wait before the next code, when so many before it failed."""
    match end:
        case Denied():
            return REFUSED_PAUSE_SECONDS
        case TooMany() | Failed():
            return least_wait(end.seconds, failures, chance)
        case UnknownClient():
            return backoff(failures, chance)
        case _:
            assert_never(end)


def reason(end: Denied | Expired | UnknownClient | TooMany | Failed) -> str:
    """Why the device is not signed in, in one sentence."""
    match end:
        case Denied():
            return "Somebody refused the sign-in."
        case Expired():
            return "Nobody confirmed the code in time."
        case UnknownClient(message=message):
            return f"The server does not accept this client: {message}"
        case _:
            return explained(end)
