"""Who may send: the checks of an API key or a signature. Pure; the time is passed in.

Every accepted key or secret is compared, each in constant time, so that neither says how near a guess was.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence

import msgspec

from carrick.settings import AuthMode, CloudSettings
from carrick.sinks.signing import signature
from carrick.variables import listed

WINDOW_SECONDS = 300
"""How far the sender's clock may be from ours."""
REMEMBER_SECONDS = 1800
"""How long a signature is remembered. It is accepted for 600 at most; the rest is for replicas whose clocks differ."""

TIMESTAMP = re.compile(r"[0-9]{1,15}")


class Refused(Exception):
    """The request is not from somebody who may send; the message says what is missing."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a check looks at. `path` is without the query; `body` is as it was sent, compressed or not."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """What is accepted. Several keys or secrets are accepted while one replaces the other."""

    mode: AuthMode = "none"
    api_keys: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, cloud: CloudSettings) -> Guard:
        """The guard that the settings ask for."""
        return cls(mode=cloud.auth_mode, api_keys=listed(cloud.api_key), secrets=listed(cloud.hmac_secret))

    def check_headers(self, headers: Mapping[str, str], now_ms: int) -> None:
        """What can be refused before a body is read. Raises Refused."""
        if self.mode == "api_key":
            _check_key(headers.get("x-api-key"), self.api_keys)
        elif self.mode == "hmac":
            _timestamp(headers, now_ms)
            _given_signature(headers)

    def check(self, request: Request, now_ms: int) -> bytes | None:
        """The signature to remember, None where nothing is signed. Raises Refused."""
        self.check_headers(request.headers, now_ms)
        if self.mode != "hmac":
            return None
        timestamp = _timestamp(request.headers, now_ms)
        given = _given_signature(request.headers)
        wanted = [signature(secret, timestamp, request.path, request.body, request.method) for secret in self.secrets]
        if not _is_one_of(given, wanted):
            raise Refused(
                "x-edge-signature does not fit; accepted: sha256= and the hex HMAC-SHA256 of "
                "'{x-edge-timestamp}.{method}.{path}.{body as sent}'"
            )
        return bytes.fromhex(given.removeprefix("sha256="))


def _check_key(given: str | None, accepted: Sequence[str]) -> None:
    if not given:
        raise Refused("x-api-key is missing")
    if not _is_one_of(given, accepted):
        raise Refused("x-api-key is not one of those accepted")


def _timestamp(headers: Mapping[str, str], now_ms: int) -> int:
    given = headers.get("x-edge-timestamp")
    if given is None:
        raise Refused("x-edge-timestamp is missing; accepted: milliseconds since 1970")
    if not TIMESTAMP.fullmatch(given):
        raise Refused("x-edge-timestamp is no number; accepted: milliseconds since 1970")
    apart = (int(given) - now_ms) / 1000
    if abs(apart) > WINDOW_SECONDS:
        where = "ahead of" if apart > 0 else "behind"
        raise Refused(
            f"x-edge-timestamp is {abs(apart):.0f} seconds {where} this clock; accepted: {WINDOW_SECONDS} at most"
        )
    return int(given)


def _given_signature(headers: Mapping[str, str]) -> str:
    given = headers.get("x-edge-signature")
    if not given:
        raise Refused("x-edge-signature is missing")
    return given


def _is_one_of(given: str, accepted: Sequence[str]) -> bool:
    """Looks at all of them, whichever fits."""
    found = False
    for one in accepted:
        found |= hmac.compare_digest(given.encode("utf-8", "surrogateescape"), one.encode())
    return found
