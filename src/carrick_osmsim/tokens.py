"""OSM's tokens: codes that are good once, access tokens for an hour, refresh tokens that rotate."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence

from carrick_osmsim.clock import Clock
from carrick_osmsim.reply import Reply, as_json
from carrick_osmsim.world import App, Code, Grant, World

ACCESS_SECONDS = 3600
CODE_SECONDS = 600
KEPT_GRANTS = 1000


class Tokens:
    """Issues, checks and ends the tokens of a world. They are made from its serial numbers: same world, same tokens."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def issue_code(
        self,
        app: App,
        redirect_uri: str,
        user_id: int,
        scopes: Sequence[str],
        challenge: str | None = None,
        method: str = "plain",
    ) -> Code:
        """A code for an application that the user has agreed to."""
        code = Code(
            code=f"def502{self._fresh('code')}",
            client_id=app.client_id,
            redirect_uri=redirect_uri,
            user_id=user_id,
            scopes=list(scopes),
            expires_at=self._clock.now() + CODE_SECONDS,
            challenge=challenge,
            challenge_method=method,
        )
        self._world.codes[code.code] = code
        return code

    def issue(self, user_id: int, client_id: str, scopes: Sequence[str]) -> Grant:
        """A new pair of tokens."""
        grant = Grant(
            access_token=f"osm-a-{self._fresh('access')}",
            refresh_token=f"osm-r-{self._fresh('refresh')}",
            user_id=user_id,
            client_id=client_id,
            scopes=list(scopes),
            expires_at=self._clock.now() + ACCESS_SECONDS,
        )
        self._world.grants.append(grant)
        del self._world.grants[:-KEPT_GRANTS]
        return grant

    def grant_of(self, access_token: str) -> Grant | None:
        """The pair of a token that is good now."""
        grant = next((grant for grant in self._world.grants if grant.access_token == access_token), None)
        return grant if grant and not grant.ended and grant.expires_at > self._clock.now() else None

    def live(self, user_id: int) -> list[Grant]:
        """The pairs of a user that are not ended; their access tokens may have expired."""
        return [grant for grant in self._world.grants if grant.user_id == user_id and not grant.ended]

    def revoke(self, user_id: int) -> int:
        """End everything the user has agreed to; how many pairs that were."""
        live = self.live(user_id)
        for grant in live:
            grant.ended = True
        return len(live)

    def expire(self, user_id: int) -> int:
        """Let the user's access tokens run out now; their refresh tokens stay good."""
        live = self.live(user_id)
        for grant in live:
            grant.expires_at = self._clock.now()
        return len(live)

    def rotate(self, user_id: int) -> list[Grant]:
        """Refresh every pair of the user, as another copy of the application would; the new ones."""
        return [self._refreshed(grant) for grant in self.live(user_id)]

    def user_of(self, form: Mapping[str, str]) -> int | None:
        """Whose code or refresh token stands in a form, good or not."""
        code = self._world.codes.get(form.get("code", ""))
        if code is not None:
            return code.user_id
        given = form.get("refresh_token", "")
        return next((grant.user_id for grant in self._world.grants if grant.refresh_token == given), None)

    def answer(self, form: Mapping[str, str]) -> Reply:
        """The token endpoint: a pair for a code or for a refresh token, once each."""
        grants: dict[str, Callable[[App, Mapping[str, str]], Reply]] = {
            "authorization_code": self._by_code,
            "refresh_token": self._by_refresh_token,
        }
        kind = form.get("grant_type")
        if kind not in grants:
            return _refused(400, "unsupported_grant_type", "The authorization grant type is not supported.")
        app = self._world.apps.get(form.get("client_id", ""))
        if app is None or not hmac.compare_digest(app.client_secret.encode(), form.get("client_secret", "").encode()):
            return _refused(401, "invalid_client", "Client authentication failed")
        return grants[kind](app, form)

    def _by_code(self, app: App, form: Mapping[str, str]) -> Reply:
        code = self._world.codes.get(form.get("code", ""))
        problem = "is unknown" if code is None else self._problem(code, app, form)
        if code is None or problem:
            return _refused(400, "invalid_grant", f"The authorization code {problem}.")
        code.used = True
        return _granted(self.issue(code.user_id, app.client_id, code.scopes), "signed in")

    def _problem(self, code: Code, app: App, form: Mapping[str, str]) -> str | None:
        if code.client_id != app.client_id:
            return "belongs to another application"
        if code.used:
            return "has been used"
        if code.expires_at <= self._clock.now():
            return "has expired"
        if code.redirect_uri != form.get("redirect_uri"):
            return "was issued for another redirect_uri"
        if code.challenge is not None and not _verified(code, form.get("code_verifier", "")):
            return "does not go with this code_verifier"
        return None

    def _by_refresh_token(self, app: App, form: Mapping[str, str]) -> Reply:
        given = form.get("refresh_token", "")
        grant = next((grant for grant in self._world.grants if grant.refresh_token == given), None)
        if grant is None or grant.ended or grant.client_id != app.client_id:
            return self._refuse_refresh()
        return _granted(self._refreshed(grant), "refreshed")

    def _refreshed(self, grant: Grant) -> Grant:
        grant.ended = True
        return self.issue(grant.user_id, grant.client_id, grant.scopes)

    def _refuse_refresh(self) -> Reply:
        """As 401 or as 400: OSM has been seen to do both."""
        way = self._world.refresh_refusal
        if way == "alternate":
            way = "invalid_request" if self._world.refusals % 2 == 0 else "invalid_grant"
        self._world.refusals += 1
        status = 401 if way == "invalid_request" else 400
        return _refused(status, way, "The refresh token is invalid.", hint="Token has been revoked")

    def _fresh(self, kind: str) -> str:
        return hashlib.sha256(f"{kind} {self._world.next_serial()}".encode()).hexdigest()


def _verified(code: Code, verifier: str) -> bool:
    given = verifier
    if code.challenge_method == "S256":
        given = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(given.encode(), (code.challenge or "").encode())


def _granted(grant: Grant, effect: str) -> Reply:
    answer = {
        "token_type": "Bearer",
        "expires_in": ACCESS_SECONDS,
        "access_token": grant.access_token,
        "refresh_token": grant.refresh_token,
    }
    return as_json(answer, effect=effect)


def _refused(status: int, error: str, said: str, hint: str | None = None) -> Reply:
    answer = {"error": error, "error_description": said, "message": said}
    return as_json(answer | ({"hint": hint} if hint else {}), status, effect=f"refused: {error}: {said}")
