"""The patrol scores of a device's section: what is known, else what OSM says, else why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
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
from carrick_scoreboard.patrols.known import Asker, Known, Term
from carrick_scoreboard.patrols.shelf import MOST_AT_ONCE, Shelf
from carrick_scoreboard.standing import SharedStanding, ends_at
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.sections import Colors, SectionSettings
from carrick_scoreboard.together import Together

log = logging.getLogger("carrick.patrols")

log = logging.getLogger("carrick.patrols")

REVOKED_SECONDS = 1.0
"""How long a sign-in that another replica found revoked may still be taken for good."""
LOOK_SECONDS = 0.2
"""What a display is shown may have been seen so long ago. Who tells displays that scores have changed waits as long
first: then every replica has looked since."""
LONGEST_WAIT_FOR_NEWER_SECONDS = 5.0
"""Whoever can be shown older scores waits no longer for OSM; the fetch goes on behind."""
LONGEST_WAIT_SECONDS = 9.0
"""Nor does anybody wait longer than this: clients of others give up after 10 seconds."""
ROUNDS = 4
"""How often a request decides anew: others may fetch, and fail, before it."""
SOON_SECONDS = 30
"""When to come again after all of them brought nothing."""

SAME_TIME = timedelta(minutes=1)
"""How far apart the clocks of a process and its database may be for two notes of one look-up."""

Pending = Callable[[Collection[int]], Awaitable[Mapping[int, Mapping[str, int]]]]
"""The points of some sections that are not delivered yet, by section and patrol id."""


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
    """The answer, as JSON too; whether it had to wait, how old the scores were, and why OSM would not be asked now."""

    scores: Scores
    body: bytes
    waited: bool
    age_seconds: float
    why: Error | None


Question = tuple[int, int]
"""A section and the user whose credential is used. Devices with the same question nearly always get the same answer."""


class Seen(msgspec.Struct, frozen=True):
    """What was seen at one moment, what to do about it, and the answers made of it, by whether they waited."""

    known: Known
    decision: Decision
    pending: Mapping[str, int]
    colors: Colors
    answers: dict[bool, Served]


class Meter(fetching.Meter, Protocol):
    """Counts."""

    def served(self, served: Served) -> None:
        """A device got scores."""
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
        look_seconds: float = LOOK_SECONDS,
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
        self._pending = pending
        self._looks: Together[Question, Seen] = Together(self._look_at, MOST_AT_ONCE)
        self._lately: Lately[Question, Seen] = Lately(self._look_now, look_seconds)
        self._fetching = fetching.Fetching(
            shelf, credentials, client, standing, devices, threads, meter, thresholds=self._thresholds, now=now
        )

    async def scores(self, device: Asker, *, lately: bool = False, anew: bool = False) -> Served:
        """The scores of the section: `lately`, as they were seen a moment ago; `anew`, because a person wants them now.

        Raises Refused, or StoreError.
        """
        since = self._now() if anew else None
        question = (device.section_id, device.osm_user_id)
        seen = await (self._lately.get(question) if lately else self._look_now(question))
        seen = self._seen_by(device, seen, since)
        waited = False
        patience = LONGEST_WAIT_SECONDS if seen.known.scores is None else LONGEST_WAIT_FOR_NEWER_SECONDS
        until = asyncio.get_running_loop().time() + patience
        for _ in range(ROUNDS):
            if not isinstance(seen.decision, Fetch):
                break
            waited = True
            got_turn = await self._fetch(device, since, until)
            self._revoked.forget(device.osm_user_id)
            self._lately.forget(question)
            seen = self._seen_by(device, await self._look_now(question), since)
            if not got_turn:
                break
        decision = seen.decision
        if isinstance(decision, Fetch):
            now = self._now()
            decision = give_up(seen.known, now + timedelta(seconds=SOON_SECONDS), now, since=since)
        if isinstance(decision, Refuse):
            self._meter.refused(decision.error)
            raise Refused(decision.error, decision.until)
        if waited not in seen.answers:
            seen.answers[waited] = self._answer(seen, decision, waited)
            log.info(
                "patrols.cache_miss" if waited else "patrols.cache_hit",
                extra={"user_id": device.osm_user_id, "section_id": device.section_id, "stale": decision.stale},
            )
        served = seen.answers[waited]
        self._meter.served(served)
        return served

    async def close(self) -> None:
        """End what is under way."""
        await self._fetching.close()

    async def _fetch(self, device: Asker, since: datetime | None, until: float) -> bool:
        """Whether something new may be known; what takes longer than until then goes on behind."""
        try:
            async with asyncio.timeout_at(until):
                return await self._fetching.fetch(device, partial(self._decide, since=since))
        except TimeoutError:
            log.warning("patrols.not_waited_for", extra={"section_id": device.section_id, "device_id": device.id})
            return False

    async def _decide(self, device: Asker, since: datetime | None) -> tuple[Known, Decision]:
        seen = self._seen_by(device, await self._look_now((device.section_id, device.osm_user_id)), since)
        return seen.known, seen.decision

    def _seen_by(self, device: Asker, seen: Seen, since: datetime | None) -> Seen:
        """The same, unless this device's row knows of a later term than shared state, or a person asks."""
        term = newer(seen.known.term, device_term(device))
        if term is seen.known.term and since is None:
            return seen
        known = msgspec.structs.replace(seen.known, term=term)
        decision = decide(known, self._now(), since=since, thresholds=self._thresholds)
        return Seen(known, decision, seen.pending, seen.colors, {})

    async def _look_now(self, question: Question) -> Seen:
        """What there is to know; devices that ask alike and at once share it."""
        return (await self._looks.get([question]))[question]

    async def _look_at(self, questions: list[Question]) -> Mapping[Question, Seen]:
        """For many at once: one read of each kind; the rest is remembered, or asked once per user."""
        section_ids = {section for section, _ in questions}
        found, pending, colors = await asyncio.gather(
            self._shelf.look(questions),
            self._pending(section_ids),
            self._threads.call(self._sections.colors_of, section_ids),
        )
        blocked = await self._standing.service_block_lately() is not None
        revoked = {user: await self._revoked.get(user) for user in {user for _, user in questions}}
        now = self._now()
        seen = {}
        for (section, user), one in zip(questions, found, strict=True):
            known = Known(
                revoked=revoked[user],
                service_blocked=blocked,
                blocked_until=None if one.user_block is None else ends_at(one.user_block),
                budget=one.budget,
                term=one.term,
                scores=one.scores,
                failure=one.failure,
            )
            decision = decide(known, now, thresholds=self._thresholds)
            seen[section, user] = Seen(known, decision, pending[section], colors.get(section, {}), {})
        return seen

    def _answer(self, seen: Seen, decision: Serve, waited: bool) -> Served:
        known, pending = seen.known, seen.pending
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
            rate_limit_state=self._state(known),
            stale=decision.stale,
            settings=DeviceSettings(seen.colors),
            service_blocked=True if known.service_blocked else msgspec.UNSET,
        )
        age = max(0.0, (self._now() - decision.scores.cached_at).total_seconds())
        return Served(scores, msgspec.json.encode(scores), waited, age, decision.why)

    def _state(self, known: Known) -> RateLimitState:
        blocked = known.service_blocked or known.blocked_until is not None
        return RateLimitState.BLOCKED if blocked else self._thresholds.state(known.remaining)


def device_term(device: Asker) -> Term | None:
    """The term as the device's row keeps it: there is one even when shared state has lost it."""
    if device.term_id is None or device.term_checked_at is None:
        return None
    return Term(found="term", checked_at=device.term_checked_at, term_id=device.term_id, end_date=device.term_end_date)


def newer(shared: Term | None, kept: Term | None) -> Term | None:
    """What was said last. Both are written at once, by two clocks; shared state knows more, so it wins then."""
    if shared is None or kept is None:
        return shared or kept
    return kept if kept.checked_at - shared.checked_at > SAME_TIME else shared
