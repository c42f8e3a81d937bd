"""Sessions of leaders. The secret in the cookie is kept as a digest; a session that is used lasts on."""

from __future__ import annotations

from datetime import datetime

import msgspec

from carrick_scoreboard.store.tables import Tables, first_of

SESSION_SECONDS = 7 * 86_400
SLIDE_SECONDS = 3_600
"""A session that is used lasts on; that is written down once an hour at most."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A leader who is signed in. `revoked_at`: since then OSM does not accept their sign-in any more."""

    osm_user_id: int
    osm_user_name: str
    selected_section_id: int | None
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    now_at: datetime


class Sessions:
    """The sessions of all leaders, on all their phones."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, session_digest: str, osm_user_id: int) -> None:
        """A leader has signed in."""
        with self._tables.writing() as ask:
            ask("session_add", session_digest=session_digest, osm_user_id=osm_user_id, seconds=SESSION_SECONDS)

    def get(self, session_digest: str) -> Session | None:
        """The session, while it lasts; it lasts on from now."""
        with self._tables.reading() as ask:
            session = first_of(ask("session_get", session_digest=session_digest), Session)
        if session is not None and _is_older(session):
            with self._tables.writing() as ask:
                ask("session_slide", session_digest=session_digest, seconds=SESSION_SECONDS)
        return session

    def select(self, session_digest: str, section_id: int) -> None:
        """The section that the leader works with."""
        with self._tables.writing() as ask:
            ask("session_select", session_digest=session_digest, section_id=section_id)

    def end(self, session_digest: str) -> bool:
        """Sign out here; other phones stay. False where there was no session."""
        with self._tables.writing() as ask:
            return bool(ask("session_end", session_digest=session_digest))

    def tidy(self) -> int:
        """Forget sessions that are over; how many."""
        with self._tables.writing() as ask:
            return len(ask("session_prune"))


def _is_older(session: Session) -> bool:
    left = (session.expires_at - session.now_at).total_seconds()
    return left < SESSION_SECONDS - SLIDE_SECONDS
