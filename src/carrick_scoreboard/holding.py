"""Holds a leader's points back: while OSM wants that leader to wait, or to sign in again."""

from __future__ import annotations

import logging

from carrick.outbox.store import Store
from carrick.relay.threads import Threads
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.store.scores import CHANNEL

log = logging.getLogger("carrick.scores")

REVOKED = "auth_revoked"
ENDED_BY_SIGN_IN = (REVOKED, "refused", "section_denied")
"""What a gate's reason may begin with, for a sign-in to open it."""


class Holding:
    """The gates of leaders in the channel of scores."""

    def __init__(self, store: Store, stored: StoredCredentials, threads: Threads) -> None:
        self._store = store
        self._stored = stored
        self._threads = threads

    async def hold(self, user_id: int, seconds: float | None, reason: str) -> None:
        """Hold the leader's points for so long, or until they sign in."""
        log.warning("scores.held", extra={"user_id": user_id, "seconds": seconds, "reason": reason})
        await self._threads.call(self._close, user_id, seconds, reason)

    async def revoked(self, user_id: int) -> None:
        """OSM no longer accepts the leader's sign-in."""
        await self.hold(user_id, None, REVOKED)

    async def signed_in(self, user_id: int) -> None:
        """The leader has signed in: what waited for that goes on."""
        await self._threads.call(self._open, {user_id})

    async def reconcile(self) -> int:
        """Open gates of leaders who have signed in since: a process may have died in between. How many."""
        users = {user.osm_user_id for user in await self._threads.call(self._stored.overview) if not user.revoked_at}
        return await self._threads.call(self._open, users)

    def _close(self, user_id: int, seconds: float | None, reason: str) -> None:
        """A sign-in looks for a closed gate after it is written down, so who closes one looks for a sign-in after."""
        self._store.close_gate(CHANNEL, leader_scope(user_id), seconds, reason, closed_by="destination")
        if reason == REVOKED:
            stored = self._stored.get(user_id)
            if stored is not None and stored.revoked_at is None:
                self._open({user_id})

    def _open(self, users: set[int]) -> int:
        sections = {section.id for user in users for section in self._stored.writable(user)}
        scopes = {*map(leader_scope, users), *map(section_scope, sections)}
        gates = [gate for gate in self._store.gates(CHANNEL) if gate.scope in scopes]
        held = [gate for gate in gates if gate.reason.partition(":")[0] in ENDED_BY_SIGN_IN]
        for gate in held:
            self._store.open_gate(CHANNEL, gate.scope, closed_by="destination")
        return len(held)


def leader_scope(user_id: int) -> str:
    """The gate of a leader."""
    return f"principal:{user_id}"


def section_scope(section_id: int) -> str:
    """The gate of a section."""
    return f"tenant:{section_id}"
