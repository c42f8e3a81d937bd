"""Signing people in at OSM: there with a state and a challenge, back with a code, once and in the same browser."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from typing import Literal, Protocol
from urllib.parse import urlencode

import msgspec
from multidict import MultiMapping

from carrick.state.kv import Kv
from carrick_scoreboard.credentials import WRITE
from carrick_scoreboard.notes import Notes
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Profile
from carrick_scoreboard.osm.client import Application, OsmClient, Tokens
from carrick_scoreboard.sealing import KeyRing, digest
from carrick_scoreboard.web_security import is_secret, new_secret

log = logging.getLogger("carrick.scoreboard.sign_in")

READ = "section:member:read"
STATE_SECONDS = 600
"""How long a person may take at OSM."""
MAX_PARAMETER = 2_000

Why = Literal["denied", "unknown", "not_accepted", "failed", "trouble"]


class Purpose(msgspec.Struct, frozen=True, kw_only=True):
    """What people sign in for: the path OSM sends them back to, what is asked for, and where they may go then.

    `places` are all the targets there are, by name; no address ever comes from a request.
    """

    name: str
    callback: str
    scopes: tuple[str, ...]
    places: Mapping[str, str]


DEVICE = Purpose(
    name="device", callback="/oauth/callback", scopes=(READ,), places={"section": "/device/select-section"}
)
ADMIN = Purpose(name="admin", callback="/admin/callback", scopes=(READ, WRITE), places={"scores": "/admin/"})


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """Who has signed in, where they go now, and what they had begun with."""

    profile: Profile
    path: str
    matter: str


class NotSignedIn(Exception):
    """The person is back without a sign-in; `matter` is what they had begun with, where that is known.

    `denied`: they said no. `unknown`: the state is missing, wrong, used, too old or another browser's.
    `not_accepted`: OSM did not take its own code back. `failed`: OSM said that something went wrong.
    `trouble`: a call to OSM did not work; that error is beside it.
    """

    def __init__(self, why: Why, matter: str = "", trouble: errors.OsmError | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.matter = matter
        self.trouble = trouble


class CredentialKeeper(Protocol):
    """Keeps what a sign-in gave."""

    async def sign_in(self, tokens: Tokens, profile: Profile) -> None:
        """The tokens are the user's from now on."""
        ...


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in under way."""

    purpose: str
    holder_digest: str
    verifier: str
    place: str
    matter: str


class SignIn:
    """Sign-ins of all purposes. A state is good once, for a while, for one purpose and for one browser."""

    def __init__(
        self,
        application: Application,
        exposed_domain: str,
        client: OsmClient,
        credentials: CredentialKeeper,
        kv: Kv,
        keys: KeyRing,
    ) -> None:
        self._application = application
        self._exposed_domain = exposed_domain
        self._client = client
        self._credentials = credentials
        self._begun = Notes(kv, keys, "sign_in", _Begun, seconds=STATE_SECONDS)

    async def begin(self, purpose: Purpose, holder: str, place: str, matter: str = "") -> str:
        """The address at OSM to send the browser to; `holder` is the secret in its cookie.

        Raises KeyError for a place that the purpose does not know.
        """
        state, verifier = new_secret(), secrets.token_urlsafe(48)
        _ = purpose.places[place]
        begun = _Begun(
            purpose=purpose.name, holder_digest=digest(holder), verifier=verifier, place=place, matter=matter
        )
        await self._begun.keep(state, begun)
        query = {
            "response_type": "code",
            "client_id": self._application.client_id,
            "redirect_uri": self._callback(purpose),
            "scope": " ".join(purpose.scopes),
            "state": state,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        return f"{self._application.domain}/oauth/authorize?{urlencode(query)}"

    async def finish(self, purpose: Purpose, holder: str | None, query: MultiMapping[str]) -> SignedIn:
        """The person is back from OSM with this query. Raises NotSignedIn."""
        begun = await self._own(purpose, holder, _once(query, "state"))
        error, code = _once(query, "error"), _once(query, "code")
        if error == "access_denied":
            raise NotSignedIn("denied", begun.matter)
        if error is not None or code is None:
            log.warning("sign_in.failed", extra={"purpose": purpose.name, "said": repr(error)[:100]})
            raise NotSignedIn("failed", begun.matter)
        profile = await self._exchanged(purpose, begun, code)
        log.info("sign_in.finish", extra={"purpose": purpose.name, "user_id": profile.user_id})
        return SignedIn(profile=profile, path=purpose.places[begun.place], matter=begun.matter)

    async def _own(self, purpose: Purpose, holder: str | None, state: str | None) -> _Begun:
        """What this browser had begun. Another browser's state is left to its owner."""
        begun = await self._begun.read(state) if state is not None and is_secret(state) else None
        if state is None or begun is None or holder is None or begun.purpose != purpose.name:
            raise NotSignedIn("unknown")
        if not hmac.compare_digest(begun.holder_digest, digest(holder)):
            raise NotSignedIn("unknown")
        taken = await self._begun.take(state)
        if taken is None or taken.place not in purpose.places:
            raise NotSignedIn("unknown")
        return taken

    async def _exchanged(self, purpose: Purpose, begun: _Begun, code: str) -> Profile:
        try:
            tokens = await self._client.exchange(code, self._callback(purpose), begun.verifier)
            profile = await self._client.profile(tokens.access_token)
        except errors.AuthRevoked:
            raise NotSignedIn("not_accepted", begun.matter) from None
        except errors.OsmError as error:
            raise NotSignedIn("trouble", begun.matter, error) from error
        await self._credentials.sign_in(tokens, profile)
        return profile

    def _callback(self, purpose: Purpose) -> str:
        return self._exposed_domain + purpose.callback


def _challenge(verifier: str) -> str:
    """S256 of RFC 7636."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()


def _once(query: MultiMapping[str], name: str) -> str | None:
    """A parameter that is there once, is not empty and not too long."""
    values = query.getall(name, [])
    return values[0] if len(values) == 1 and 0 < len(values[0]) <= MAX_PARAMETER else None
