"""How points reach OSM: the client, leaders' sign-ins and gates, and how long to leave it alone after a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from carrick.sinks.sink import Unavailable
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.client import Credential, OsmClient

BLOCK_LOOK_SECONDS = 60.0
"""How often it is looked whether OSM's block of the application has been cleared. Costs no call."""
FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 900.0
LONGEST_ASKED_SECONDS = 3600.0
"""OSM is asked again after so long, even where somebody in its place asked for more."""


class Signed(Protocol):
    """The credentials of leaders."""

    async def usable(self, user_id: int) -> Credential:
        """A credential to call OSM with. Raises OsmError."""
        ...

    async def refused(self, credential: Credential) -> bool:
        """OSM no longer accepts it. Whether its user must sign in: False when there are newer tokens."""
        ...

    async def leaders_of(self, section_id: int) -> Sequence[int]:
        """Who is signed in and has that section, as far as is known."""
        ...


Shut = Callable[[int, float | None, str], Awaitable[None]]
"""Holds a leader's entries for so many seconds, or until they sign in, for that reason."""
TermOf = Callable[[int, Credential], Awaitable[int]]
"""The term to read a section in. Raises OsmError."""


class OsmAccess:
    """OSM as all rounds of this process see it."""

    def __init__(
        self, client: OsmClient, signed: Signed, term_of: TermOf, shut: Shut, now: Callable[[], datetime]
    ) -> None:
        self.client = client
        self.signed = signed
        self.term_of = term_of
        self.shut = shut
        self.now = now
        self._failures: Counter[str] = Counter()

    def worked(self, scope: str = "*") -> None:
        """A whole round went through, or a write of that leader, or a read of that section."""
        del self._failures[scope]

    def hold_seconds(self, scope: str) -> float:
        """How long a leader waits, or a section, that OSM has refused: longer every time."""
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** self._failures[scope])
        self._failures[scope] = min(self._failures[scope] + 1, 10)
        return pause

    def section_denied(self, scope: str, error: errors.SectionDenied) -> Unavailable:
        """What the relay is told when OSM shows the section to nobody."""
        return Unavailable(code="section_denied", message=str(error), seconds=self.hold_seconds(scope), scope=scope)

    def seconds_until(self, until: datetime | None) -> float:
        """How long to wait for that moment; a first pause where OSM named none."""
        return FIRST_PAUSE_SECONDS if until is None else max(1.0, (until - self.now()).total_seconds())

    def unavailable(self, error: errors.OsmError) -> Unavailable:
        """What the relay is told of an error that concerns no one leader: for how long the channel waits, and why."""
        message = str(error)
        match error:
            case errors.ServiceBlocked():
                return Unavailable(code="service_blocked", message=message, seconds=BLOCK_LOOK_SECONDS)
            case errors.TimedOut(sent=False):
                return Unavailable(code="osm_unreachable", message=message, connection=True)
            case errors.Misconfigured():
                return Unavailable(code="misconfigured", message=message, seconds=LONGEST_PAUSE_SECONDS)
            case _:
                asked = error.seconds if isinstance(error, errors.Unavailable) else None
                return Unavailable(code="osm_unavailable", message=message, seconds=self._pause_seconds(asked))

    def _pause_seconds(self, asked: int | None) -> float:
        """How long to leave OSM alone after it failed: longer every time, and no shorter than it asked for."""
        return max(self.hold_seconds("*"), min(asked or 0, LONGEST_ASKED_SECONDS))
