"""How the application and its users stand with OSM, for a person to read."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from carrick.relay.threads import Threads
from carrick.state.shared import MAX_SCAN, SharedState
from carrick_scoreboard.osm.standing import KnownBudget, UserBlock
from carrick_scoreboard.standing import block_key, budget_key, ends_at, read_budget, read_user_block
from carrick_scoreboard.store.blocks import Block, Blocks, Ending
from carrick_scoreboard.store.credentials import StoredCredentials, UserOverview
from carrick_scoreboard.store.tables import Tables


class UserLook(msgspec.Struct, frozen=True, kw_only=True):
    """One user. What OSM has not told is None."""

    user_id: int
    name: str
    revoked_at: datetime | None
    last_used_at: datetime | None
    remaining: int | None = None
    limit: int | None = None
    reset_at: datetime | None = None
    blocked_until: datetime | None = None


class OsmLook(msgspec.Struct, frozen=True, kw_only=True):
    """The block that stands, if one does, calls that OSM will end, and all users."""

    block: Block | None
    endings: list[Ending]
    users: list[UserLook]


async def look_at_osm(tables: Tables, state: SharedState, threads: Threads) -> OsmLook:
    """How it stands now. Raises StoreError."""
    blocks = Blocks(tables)
    block, endings = await threads.call(blocks.standing), await threads.call(blocks.endings)
    users = await threads.call(StoredCredentials(tables).overview)
    now = datetime.now(UTC)
    found = {item.key: item.value for item in await state.scan("osm_ratelimit:", limit=MAX_SCAN)}
    found |= {item.key: item.value for item in await state.scan("osm_blocked:", limit=MAX_SCAN)}
    shown = [
        _user(
            user,
            read_budget(found.get(budget_key(user.osm_user_id)), now),
            read_user_block(found.get(block_key(user.osm_user_id)), now),
        )
        for user in users
    ]
    return OsmLook(block=block, endings=endings, users=shown)


def _user(user: UserOverview, budget: KnownBudget | None, block: UserBlock | None) -> UserLook:
    return UserLook(
        user_id=user.osm_user_id,
        name=user.osm_user_name,
        revoked_at=user.revoked_at,
        last_used_at=user.last_used_at,
        remaining=budget.remaining if budget else None,
        limit=budget.limit if budget else None,
        reset_at=budget.reset_at if budget else None,
        blocked_until=ends_at(block) if block else None,
    )
