"""The patrol scores of a device's section: what is known, else what OSM says, else why not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec

from carrick.relay.threads import Threads
from carrick_scoreboard.credentials import Credentials
from carrick_scoreboard.lately import Lately
from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.osm.client import OsmClient
from carrick_scoreboard.osm.limits import RateLimitState, Thresholds
from carrick_scoreboard.patrols import fetching
from carrick_scoreboard.patrols.decision import Decision, Error, Fetch, Refuse, Serve, decide, give_up
from carrick_scoreboard.patrols.known import Known, Term
from carrick_scoreboard.patrols.shelf import MOST_AT_ONCE, Colors, Shelf, Shelved
from carrick_scoreboard.patrols.together import Together
from carrick_scoreboard.standing import SharedStanding, ends_at
from carrick_scoreboard.store.devices import Device, Devices
from carrick_scoreboard.store.sections import SectionSettings

REVOKED_SECONDS = 1.0
"""How long a sign-in that another replica found revoked may still be taken for good."""
ROUNDS = 4
"""How often a request decides anew: others may fetch, and fail, before it."""
SOON_SECONDS = 30
"""When to come again after all of them brought nothing."""

Pending = Callable[[int], Awaitable[Mapping[str, int]]]
"""The points of a section that are not delivered yet, by patrol id."""


class PatrolScore(msgspec.Struct, frozen=True, kw_only=True):
    """A patrol as devices see it; `pendingDelta` is what is on its way to OSM."""

    id: str
    name: str
    score: int
    pending_delta: int = msgspec.field(name="pendingDelta")
    has_pending: bool = msgspec.field(name="hasPending")


class DeviceSettings(msgspec.Struct, frozen=True):
    """How the section wants to be shown."""

    patrol_colors: Colors = msgspec.field(name="patrolColors")


class WebSocketWish(msgspec.Struct, frozen=True):
    """Whether the device is asked to listen for changes."""

    requested: bool = True


class Scores(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The answer to a device. It comes again after `cache_expires_at`, which is in the future."""

    patrols: tuple[PatrolScore, ...]
    from_cache: bool
    cached_at: datetime
    cache_expires_at: datetime
    rate_limit_state: RateLimitState
    stale: bool
    settings: DeviceSettings
    websocket: WebSocketWish = WebSocketWish()
    service_blocked: bool | msgspec.UnsetType = msgspec.UNSET


class Refused(Exception):
    """There are no scores for this device, for that reason; asking again before `until` changes nothing."""

    def __init__(self, error: Error, until: datetime | None) -> None:
        self.error: Error = error
        self.until = until
        super().__init__(error)


class Served(msgspec.Struct, frozen=True):
    """The answer, and whether it had to wait for OSM."""

    scores: Scores
    waited: bool


class Meter(fetching.Meter, Protocol):
    """Counts."""

    def served(self, *, hit: bool, stale: bool, age_seconds: float, state: RateLimitState) -> None:
        """A device got scores of that age."""
        ...

    def refused(self, error: str) -> None:
        """A device got none."""
        ...


class Patrols:
    """One per process. `now` tells the time that every age is measured by."""

    def __init__(
        self,
        shelf: Shelf,
        standing: SharedStanding,
        credentials: Credentials,
        client: OsmClient,
        devices: Devices,
        sections: SectionSettings,
        threads: Threads,
        meter: Meter,
        *,
        pending: Pending,
        thresholds: Thresholds | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._shelf = shelf
        self._standing = standing
        self._sections = sections
        self._threads = threads
        self._meter = meter
        self._thresholds = thresholds or Thresholds()
        self._now = now
        self._revoked: Lately[int, bool] = Lately(credentials.is_revoked, REVOKED_SECONDS)
        self._pending: Together[int, Mapping[str, int]] = Together(_each(pending), MOST_AT_ONCE)
        self._fetching = fetching.Fetching(
            shelf, credentials, client, standing, devices, threads, meter, thresholds=self._thresholds, now=now
        )

    async def scores(self, device: Device) -> Served:
        """The scores of the device's section. Raises Refused, or StoreError."""
        known, decision = await self._decide(device)
        waited = False
        for _ in range(ROUNDS):
            if not isinstance(decision, Fetch):
                break
            waited = True
            await self._fetching.fetch(device, self._decide)
            self._revoked.forget(device.osm_user_id)
            known, decision = await self._decide(device)
        if isinstance(decision, Fetch):
            now = self._now()
            decision = give_up(known, now + timedelta(seconds=SOON_SECONDS), now)
        if isinstance(decision, Refuse):
            self._meter.refused(decision.error)
            raise Refused(decision.error, decision.until)
        return await self._answer(device, known, decision, waited)

    async def close(self) -> None:
        """End what is under way."""
        await self._fetching.close()

    async def _decide(self, device: Device) -> tuple[Known, Decision]:
        known = await self._known(device)
        return known, decide(known, self._now())

    async def _known(self, device: Device) -> Known:
        revoked = await self._revoked.get(device.osm_user_id)
        service_block = await self._standing.service_block_lately()
        found = await self._shelf.look(device.section_id, device.osm_user_id)
        return Known(
            revoked=revoked,
            service_blocked=service_block is not None,
            blocked_until=None if found.user_block is None else ends_at(found.user_block),
            budget=found.budget,
            term=newest_term(found, device),
            scores=found.scores,
            failure=found.failure,
            colors=found.colors,
        )

    async def _answer(self, device: Device, known: Known, decision: Serve, waited: bool) -> Served:
        section_id = device.section_id
        pending = (await self._pending.get([section_id]))[section_id]
        state = self._state(known)
        scores = Scores(
            patrols=tuple(
                PatrolScore(
                    id=patrol.id,
                    name=patrol.name,
                    score=patrol.points,
                    pending_delta=pending.get(patrol.id, 0),
                    has_pending=patrol.id in pending,
                )
                for patrol in decision.scores.patrols
            ),
            from_cache=not waited or decision.stale,
            cached_at=whole_second(decision.scores.cached_at),
            cache_expires_at=decision.expires_at,
            rate_limit_state=state,
            stale=decision.stale,
            settings=DeviceSettings(await self._colors(section_id, known.colors)),
            service_blocked=True if known.service_blocked else msgspec.UNSET,
        )
        age = max(0.0, (self._now() - decision.scores.cached_at).total_seconds())
        self._meter.served(hit=not waited, stale=decision.stale, age_seconds=age, state=state)
        return Served(scores, waited)

    def _state(self, known: Known) -> RateLimitState:
        blocked = known.service_blocked or known.blocked_until is not None
        return RateLimitState.BLOCKED if blocked else self._thresholds.state(known.remaining)

    async def _colors(self, section_id: int, copied: Colors | None) -> Colors:
        """From shared state, else from the table with a copy for the others."""
        if copied is not None:
            return copied
        colors = await self._threads.call(self._sections.colors, section_id)
        await self._shelf.copy_colors(section_id, colors)
        return colors


def newest_term(found: Shelved, device: Device) -> Term | None:
    """What was last said about the section: shared state may have lost it, the device's row keeps a term."""
    if device.term_id is None or device.term_checked_at is None:
        return found.term
    kept = Term(found="term", checked_at=device.term_checked_at, term_id=device.term_id, end_date=device.term_end_date)
    return kept if found.term is None or found.term.checked_at < kept.checked_at else found.term


def _each(pending: Pending) -> Callable[[list[int]], Awaitable[Mapping[int, Mapping[str, int]]]]:
    """Asks for several sections, one after the other."""

    async def load(section_ids: list[int]) -> Mapping[int, Mapping[str, int]]:
        return {section_id: await pending(section_id) for section_id in section_ids}

    return load
