"""How the application and each user stand with OSM: blocks and budgets, shared by all replicas."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from carrick_scoreboard.osm.classify import Budget, Deprecated


class ServiceBlock(msgspec.Struct, frozen=True, kw_only=True):
    """OSM has blocked the application. Only a person ends it."""

    blocked_at: datetime
    blocked_header_value: str
    reason: str = "osm_blocked_header"
    impact: str = "all_users"
    requires_manual_resolution: bool = True


class UserBlock(msgspec.Struct, frozen=True, kw_only=True):
    """OSM limits one user for a while."""

    blocked_at: datetime
    retry_after: int
    reason: str = "rate_limit_exceeded"


class KnownBudget(msgspec.Struct, frozen=True, kw_only=True):
    """A user's budget as OSM last told it."""

    limit: int | None
    remaining: int | None
    reset_at: datetime | None
    last_updated: datetime


class Standing(Protocol):
    """Remembers. What is asked before every call is cheap; what OSM said is never lost: a block survives a restart."""

    async def service_block(self) -> ServiceBlock | None:
        """The block of the whole application, while it stands."""
        ...

    async def user_block(self, user_id: int) -> UserBlock | None:
        """The block of that user, until it ends by itself."""
        ...

    async def budget(self, user_id: int) -> KnownBudget | None:
        """The user's budget; None when it is unknown or has been renewed since."""
        ...

    async def note_service_block(self, header: str) -> None:
        """OSM has blocked the application."""
        ...

    async def note_user_block(self, user_id: int, seconds: int) -> None:
        """OSM limits the user for so long."""
        ...

    async def note_budget(self, user_id: int, budget: Budget) -> None:
        """What OSM said about the user's budget."""
        ...

    async def note_deprecated(self, endpoint: str, deprecated: Deprecated | None) -> None:
        """OSM will no longer answer that call; None: it answers, and says nothing of the kind."""
        ...
