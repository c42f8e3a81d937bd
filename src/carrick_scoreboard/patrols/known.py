"""What is known when a device asks for its scores: plain values, as shared state keeps them. Pure."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

import msgspec

from carrick_scoreboard.osm.answers import Patrol
from carrick_scoreboard.osm.standing import KnownBudget
from carrick_scoreboard.store.devices import Device


class SectionScores(msgspec.Struct, frozen=True, kw_only=True):
    """The last good scores of a section. They are kept long after `valid_until`; they are only stale then."""

    patrols: tuple[Patrol, ...]
    cached_at: datetime
    valid_until: datetime
    term_id: int
    version: int = 0
    """Another one after every change, so that who compares and sets sees each of them."""

    def is_fresh(self, now: datetime, since: datetime | None = None) -> bool:
        """Whether they need not be read again; `since`: nor are they older than that."""
        return self.valid_until > now and (since is None or self.cached_at >= since)


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """What a user's profile said about a section. `no_section`: they do not see it; `no_term`: it has none today."""

    found: Literal["term", "no_term", "no_section"]
    checked_at: datetime
    term_id: int | None = None
    end_date: date | None = None
    suspect: bool = False
    """OSM has answered with an error since."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """OSM could not be read, so often in a row; it is not asked again before `until`."""

    error: Literal["upstream_error", "internal_error"]
    until: datetime
    count: int


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the answer to one device depends on."""

    revoked: bool = False
    """The user must sign in again."""
    service_blocked: bool = False
    blocked_until: datetime | None = None
    """OSM limits the user until then."""
    budget: KnownBudget | None = None
    term: Term | None = None
    scores: SectionScores | None = None
    failure: Failure | None = None

    @property
    def remaining(self) -> int | None:
        """What is left of the user's budget; None is unknown."""
        return None if self.budget is None else self.budget.remaining


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who looks at a section with a user's credential, without a display of their own."""

    section_id: int
    osm_user_id: int
    id: int = 0
    code_hash: str | None = None
    term_id: int | None = None
    term_checked_at: datetime | None = None
    term_end_date: date | None = None


Asker = Device | Viewer
"""Who asks for scores."""
