"""How the application and its users stand with OSM: the service block in its table, the rest in shared state.

Redis, where there is one, has copies under the same keys for people who look; nothing reads them. The table of blocks
is asked before every OSM call, so no replica calls once a block is written down, whoever wrote it; a call that was on
its way already cannot be taken back. Answers to devices may be `LATELY_SECONDS` behind. Clearing the block is seen in
the same way: at the next call, without a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

import msgspec

from carrick.errors import StoreError
from carrick.relay.threads import Threads
from carrick.state.kv import MAX_TTL_SECONDS, Kv
from carrick_scoreboard.lately import Lately
from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.osm.classify import Budget, Deprecated
from carrick_scoreboard.osm.limits import Thresholds
from carrick_scoreboard.osm.standing import KnownBudget, ServiceBlock, UserBlock
from carrick_scoreboard.store.blocks import Block, Blocks

log = logging.getLogger("carrick.osm")

T = TypeVar("T")

SERVICE_KEY = "osm_service_blocked"
LATELY_SECONDS = 1.0
COPY_SECONDS = 60.0
"""How often the copy of the service block is brought up to date again: Redis may have lost it."""
UNKNOWN_RESET_SECONDS = 3600
"""OSM's budgets are by the hour; one that does not say when it ends is forgotten after that."""
MAX_HEADER = 500


class Meter(Protocol):
    """Counts."""

    def budget(self, user_id: int, known: KnownBudget) -> None:
        """What OSM said about a user's budget."""
        ...

    def user_block(self, user_id: int, until: datetime) -> None:
        """OSM limits a user until then."""
        ...

    def block_event(self) -> None:
        """OSM has blocked the application."""
        ...


class SharedStanding:
    """The `Standing` of all replicas; see the module for how soon one sees what another was told."""

    def __init__(
        self,
        kv: Kv,
        blocks: Blocks,
        threads: Threads,
        meter: Meter,
        *,
        thresholds: Thresholds | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kv = kv
        self._blocks = blocks
        self._threads = threads
        self._meter = meter
        self._thresholds = thresholds or Thresholds()
        self._now = now
        self._fresh_seconds: dict[int, int] = {}
        self._deprecated: dict[str, Deprecated | None] = {}
        self._copied: tuple[int | None, datetime] | None = None
        self._lately: Lately[None, ServiceBlock | None] = Lately(lambda _: self._by_table(), LATELY_SECONDS)

    async def service_block(self) -> ServiceBlock | None:
        """By the table. Raises StoreError: who cannot know must not call."""
        block = await self._by_table()
        self._lately.forget(None)
        return block

    async def service_block_lately(self) -> ServiceBlock | None:
        """The same from memory: for answers to devices, not before a call."""
        return await self._lately.get(None)

    async def user_block(self, user_id: int) -> UserBlock | None:
        return read_user_block(await self._kv.get(block_key(user_id)), self._now())

    async def budget(self, user_id: int) -> KnownBudget | None:
        return read_budget(await self._kv.get(budget_key(user_id)), self._now())

    async def note_service_block(self, header: str) -> None:
        """Written down before anything else; what OSM said may hold any bytes."""
        said = header.encode("ascii", "backslashreplace").decode()[:MAX_HEADER]
        is_news = await self._threads.call(self._blocks.note, said)
        if is_news:
            self._meter.block_event()
            remedy = "find out why with OSM, then `carrick osm unblock --reason …`"
            log.critical("osm.block_stands", extra={"header": said, "remedy": remedy})
        await self.service_block()

    async def note_user_block(self, user_id: int, seconds: int) -> None:
        block = UserBlock(blocked_at=whole_second(self._now()), retry_after=seconds)
        self._meter.user_block(user_id, ends_at(block))
        log.critical("osm.user_blocked", extra={"user_id": user_id, "seconds": seconds})
        await self._put(block_key(user_id), block, seconds + 1)

    async def note_budget(self, user_id: int, budget: Budget) -> None:
        """What OSM does not say stays as it is known."""
        if budget.remaining is None and budget.limit is None:
            return
        now = whole_second(self._now())
        seconds = budget.reset_seconds if budget.reset_seconds is not None else UNKNOWN_RESET_SECONDS
        known = KnownBudget(
            limit=budget.limit,
            remaining=budget.remaining,
            reset_at=now + timedelta(seconds=seconds),
            last_updated=now,
        )
        self._meter.budget(user_id, known)
        self._tell(user_id, known)
        await self._put(budget_key(user_id), known, min(seconds + 1, MAX_TTL_SECONDS))

    async def note_deprecated(self, endpoint: str, deprecated: Deprecated | None) -> None:
        """Written down when it is news to this process. No call fails because it could not be."""
        if endpoint in self._deprecated and self._deprecated[endpoint] == deprecated:
            return
        try:
            if deprecated is None:
                await self._threads.call(self._blocks.forget_ending, endpoint)
            else:
                await self._threads.call(self._blocks.note_ending, endpoint, deprecated.said, deprecated.ends_at)
        except StoreError as error:
            log.warning("osm.deprecation_not_noted", extra={"endpoint": endpoint, "error": str(error)})
            return
        self._deprecated[endpoint] = deprecated
        if deprecated is not None:
            ends_at = None if deprecated.ends_at is None else deprecated.ends_at.isoformat()
            log.warning("osm.deprecated", extra={"endpoint": endpoint, "said": deprecated.said, "ends_at": ends_at})

    def _tell(self, user_id: int, known: KnownBudget) -> None:
        remaining = known.remaining
        if remaining is None:
            return
        seconds, reason = self._thresholds.freshness(remaining)
        if seconds != self._fresh_seconds.get(user_id, self._thresholds.fresh_seconds(None)):
            log.info(
                "osm.cache_age_changed",
                extra={"user_id": user_id, "remaining": remaining, "seconds": seconds, "reason": reason},
            )
        self._fresh_seconds[user_id] = seconds
        if remaining >= self._thresholds.warning:
            return
        if remaining < self._thresholds.critical:
            log.error("osm.budget_low", extra={"user_id": user_id, "remaining": remaining, "limit": known.limit})
        else:
            log.warning("osm.budget_low", extra={"user_id": user_id, "remaining": remaining, "limit": known.limit})

    async def _by_table(self) -> ServiceBlock | None:
        block = await self._threads.call(self._blocks.standing)
        self._copy(block)
        return None if block is None else _shown(block)

    async def _put(self, key: str, value: UserBlock | KnownBudget, ttl: float) -> None:
        raw = msgspec.json.encode(value)
        await self._kv.set(key, raw, ttl=ttl)
        self._kv.copy(key, raw, ttl=ttl)

    def _copy(self, block: Block | None) -> None:
        """Keep the copy in step with the table."""
        now = self._now()
        identity = None if block is None else block.id
        soon = timedelta(seconds=COPY_SECONDS)
        if self._copied is not None and self._copied[0] == identity and now - self._copied[1] < soon:
            return
        self._copied = (identity, now)
        self._kv.copy(SERVICE_KEY, None if block is None else msgspec.json.encode(_shown(block)))


def block_key(user_id: int) -> str:
    """Where a user's block is."""
    return f"osm_blocked:{user_id}"


def budget_key(user_id: int) -> str:
    """Where a user's budget is."""
    return f"osm_ratelimit:{user_id}"


def read_user_block(raw: bytes | None, now: datetime) -> UserBlock | None:
    """A user's block, while it lasts."""
    block = read_value(raw, UserBlock)
    return block if block is not None and now < ends_at(block) else None


def ends_at(block: UserBlock) -> datetime:
    """When a user's block is over."""
    return block.blocked_at + timedelta(seconds=block.retry_after)


def read_budget(raw: bytes | None, now: datetime) -> KnownBudget | None:
    """A user's budget, unless it has been renewed since."""
    known = read_value(raw, KnownBudget)
    return known if known is not None and (known.reset_at is None or now < known.reset_at) else None


def read_value(raw: bytes | None, kind: type[T]) -> T | None:
    """A value of shared state; one that another release wrote in another form is as if it were not there."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        log.warning("state.unreadable", extra={"kind": kind.__name__, "error": str(error)})
        return None


def _shown(block: Block) -> ServiceBlock:
    return ServiceBlock(blocked_at=whole_second(block.blocked_at), blocked_header_value=block.header)
