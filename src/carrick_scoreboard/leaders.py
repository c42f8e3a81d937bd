"""Who is signed in: sessions in cookies, marks against forged requests, and the sections where a leader may write."""

from __future__ import annotations

import msgspec
from aiohttp import web

from carrick.relay.threads import Threads
from carrick.web.problems import Problem
from carrick_scoreboard.sealing import KeyRing, digest
from carrick_scoreboard.store.credentials import StoredCredentials, WritableSection
from carrick_scoreboard.store.sessions import SESSION_SECONDS, Session, Sessions
from carrick_scoreboard.web_security import Cookies, new_secret

COOKIE = "osm_admin_session"
MARK = "X-CSRF-Token"
PLACE = "admin"


class Leader(msgspec.Struct, frozen=True, kw_only=True):
    """A leader at work. `csrf` is what their requests must bring along when they change something."""

    session: Session
    session_digest: str
    csrf: str

    @property
    def user_id(self) -> int:
        return self.session.osm_user_id

    def __repr__(self) -> str:
        return f"Leader({self.user_id})"


class Leaders:
    """The leaders who are signed in here."""

    def __init__(
        self,
        sessions: Sessions,
        stored: StoredCredentials,
        threads: Threads,
        keys: KeyRing,
        cookies: Cookies,
        origin: str,
    ) -> None:
        self._sessions = sessions
        self._stored = stored
        self._threads = threads
        self._keys = keys
        self._cookies = cookies
        self._origin = origin

    async def sign_in(self, user_id: int, response: web.Response) -> None:
        """A new session in a new cookie, whatever the browser had before."""
        secret = new_secret()
        await self._threads.call(self._sessions.add, digest(secret), user_id)
        self._cookies.put(response, COOKIE, secret, seconds=SESSION_SECONDS)

    async def sign_out(self, leader: Leader, response: web.StreamResponse) -> None:
        """This session ends; others of the same leader do not."""
        await self._threads.call(self._sessions.end, leader.session_digest)
        response.del_cookie(self._cookies.name(COOKIE), path="/")

    async def find(self, request: web.Request) -> Leader | None:
        """Who has sent the request, if they are signed in. The cookie lasts on with the session."""
        secret = self._cookies.get(request, COOKIE)
        if secret is None:
            return None
        session_digest = digest(secret)
        session = await self._threads.call(self._sessions.get, session_digest)
        if session is None:
            return None
        return Leader(session=session, session_digest=session_digest, csrf=self._keys.mark(secret, PLACE))

    def renew(self, request: web.Request, response: web.Response) -> None:
        """The cookie lasts as long as its session, from now."""
        secret = self._cookies.get(request, COOKIE)
        if secret is not None:
            self._cookies.put(response, COOKIE, secret, seconds=SESSION_SECONDS)

    async def require(self, request: web.Request) -> Leader:
        """The leader. Raises Problem when nobody is signed in, or when a change may have been forged."""
        leader = await self.find(request)
        if leader is None:
            raise Problem(401, "not_signed_in", "sign in first")
        if request.method not in ("GET", "HEAD"):
            self._check_mark(request)
        return leader

    def _check_mark(self, request: web.Request) -> None:
        """Only our own page knows the mark of its session."""
        mark = request.headers.get(MARK)
        if mark is None:
            raise Problem(403, "csrf_required", f"the header {MARK} is missing; GET /api/admin/session tells it")
        secret = self._cookies.get(request, COOKIE) or ""
        if request.headers.get("Origin", self._origin) != self._origin or not self._keys.is_marked(mark, secret, PLACE):
            raise Problem(
                403, "csrf_invalid", f"the header {MARK} is not this session's; GET /api/admin/session tells it"
            )

    async def sections(self, leader: Leader) -> list[WritableSection]:
        """Where the leader may write, as their last sign-in said."""
        return await self._threads.call(self._stored.writable, leader.user_id)

    async def section(self, leader: Leader, section_id: int) -> WritableSection:
        """A section of a leader whom OSM accepts. Raises Problem for any other, without asking OSM."""
        if leader.session.revoked_at is not None:
            raise Problem(403, "sign_in_again", "OSM wants you to sign in again")
        return await self.own_section(leader, section_id)

    async def own_section(self, leader: Leader, section_id: int) -> WritableSection:
        """A section of the leader, also of one who must sign in again: their points wait until then. Raises Problem."""
        for section in await self.sections(leader):
            if section.id == section_id:
                return section
        raise Problem(404, "section_not_found", f"{section_id} is not one of your sections")

    async def select(self, leader: Leader, section_id: int) -> None:
        """The leader works with that section."""
        if leader.session.selected_section_id != section_id:
            await self._threads.call(self._sessions.select, leader.session_digest, section_id)
