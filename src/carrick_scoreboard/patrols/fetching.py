"""Asks OSM for sections, one at a time in this process; for each section one replica asks. Writes down what came.

One at a time, because OSM makes a block permanent when calls go on: what is on its way when the block comes cannot be
taken back.

Whatever comes of it is written where everybody reads it: scores, a failure with the time of the next try, what the
profile said, a revoked sign-in. So whoever waited decides again by what is known, and need not be told.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta
from typing import Protocol

import msgspec

from carrick.relay.threads import Threads
from carrick_scoreboard.credentials import Credentials
from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Profile
from carrick_scoreboard.osm.client import TIMEOUT_SECONDS, Credential, OsmClient
from carrick_scoreboard.osm.limits import Purpose, Thresholds
from carrick_scoreboard.osm.standing import Standing
from carrick_scoreboard.patrols.decision import Decision, Fetch, today
from carrick_scoreboard.patrols.known import Asker, Failure, Known, SectionScores, Term
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.sealing import Unreadable
from carrick_scoreboard.store.devices import Devices

log = logging.getLogger("carrick.patrols")

FIRST_PAUSE_SECONDS = 60
LONGEST_PAUSE_SECONDS = 15 * 60
ENDS_SOON_DAYS = 7
"""A term that ends within so many days is told about when it is looked up."""
LOCK_SECONDS = 4 * TIMEOUT_SECONDS
"""A fetch is at most a refresh, a profile and a read of patrols; one that died keeps others from it so long."""
WAIT_SECONDS = 10.0
"""How long a section waits for its turn, or for another replica's answer, before it does with what it has."""
LOOK_SECONDS = 0.1


class Meter(Protocol):
    """Counts."""

    def fetched(self, result: str) -> None:
        """OSM was asked for a section; `ok`, or what went wrong."""
        ...

    def term(self, section_id: int, end_date: date | None) -> None:
        """A section's term was looked up; None: it has none."""
        ...


Decide = Callable[[Asker], Awaitable[tuple[Known, Decision]]]
"""What is known about a device now, and what to do."""


class Fetching:
    """The fetches of this process."""

    def __init__(
        self,
        shelf: Shelf,
        credentials: Credentials,
        client: OsmClient,
        standing: Standing,
        devices: Devices,
        threads: Threads,
        meter: Meter,
        *,
        thresholds: Thresholds,
        now: Callable[[], datetime],
    ) -> None:
        self._shelf = shelf
        self._credentials = credentials
        self._client = client
        self._standing = standing
        self._devices = devices
        self._threads = threads
        self._meter = meter
        self._thresholds = thresholds
        self._now = now
        self._turn = asyncio.Lock()
        self._under_way: dict[int, asyncio.Task[bool]] = {}

    async def fetch(self, device: Asker, decide: Decide) -> bool:
        """Ask OSM for the device's section, or wait for who does. Who goes away leaves it to the others.

        False when it took too long to get a turn: then nothing new is known.
        """
        section_id = device.section_id
        task = self._under_way.get(section_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._fetch_alone(device, decide))
            self._under_way[section_id] = task
            task.add_done_callback(lambda done: self._through(section_id, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End what is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch_alone(self, device: Asker, decide: Decide) -> bool:
        """Among all replicas."""
        holder = secrets.token_bytes(8)
        if not await self._shelf.take_lock(device.section_id, holder, LOCK_SECONDS):
            return await self._wait_for_another(device.section_id)
        try:
            return await self._fetch_in_turn(device, decide)
        finally:
            await self._shelf.drop_lock(device.section_id, holder)

    async def _fetch_in_turn(self, device: Asker, decide: Decide) -> bool:
        """Among all sections. Whose turn it is looks again: others may have brought what is wanted, or a block."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turn.acquire()
        except TimeoutError:
            log.warning("patrols.no_turn", extra={"section_id": device.section_id})
            return False
        try:
            known, decision = await decide(device)
            if isinstance(decision, Fetch):
                await self._ask(device, known, decision)
            return True
        finally:
            self._turn.release()

    async def _wait_for_another(self, section_id: int) -> bool:
        for _ in range(round(WAIT_SECONDS / LOOK_SECONDS)):
            await asyncio.sleep(LOOK_SECONDS)
            if not await self._shelf.is_locked(section_id):
                return True
        return False

    async def _ask(self, device: Asker, known: Known, wanted: Fetch) -> None:
        """Ask, and write down what came of it."""
        credential: Credential | None = None
        try:
            credential = await self._credentials.usable(device.osm_user_id)
            await self._read(device, known, wanted, credential)
        except errors.AuthRevoked:
            self._meter.fetched("auth_revoked")
            if credential is not None:
                await self._credentials.refused(credential)
        except errors.RateLimited as error:
            self._meter.fetched("rate_limited")
            if credential is None:  # at the token endpoint OSM does not know the user; we do
                seconds = max(1, round((error.until - self._now()).total_seconds()))
                await self._standing.note_user_block(device.osm_user_id, seconds)
        except errors.OutOfBudget:
            self._meter.fetched("out_of_budget")
        except errors.ServiceBlocked:
            self._meter.fetched("service_blocked")
        except (errors.OsmError, Unreadable) as error:
            self._meter.fetched(_named(error))
            await self._note_failure(device, known, error)
        else:
            self._meter.fetched("ok")

    async def _read(self, device: Asker, known: Known, wanted: Fetch, credential: Credential) -> None:
        """The term if it is due, then the patrols if they are, or if the term is another one now."""
        section_id, before = device.section_id, known.term
        term = await self._look_up(device, credential, wanted.purpose) if wanted.term or before is None else before
        if term.term_id is None:
            return
        if wanted.scores or (before is not None and before.term_id != term.term_id):
            stored = await self._shelf.stored_scores(section_id)
            asked_at = self._now()
            patrols = await self._client.patrols(credential, section_id, term.term_id, purpose=wanted.purpose)
            budget = await self._standing.budget(credential.user_id)
            fresh = self._thresholds.fresh_seconds(None if budget is None else budget.remaining)
            until = whole_second(self._now()) + timedelta(seconds=fresh)
            scores = SectionScores(patrols=patrols, cached_at=asked_at, valid_until=until, term_id=term.term_id)
            if not await self._shelf.replace_scores(section_id, stored, scores):
                log.info("patrols.read_again", extra={"section_id": section_id})
                return
            log.info(
                "patrols.fetched",
                extra={
                    "user_id": credential.user_id,
                    "section_id": section_id,
                    "term_id": term.term_id,
                    "patrols": len(patrols),
                    "seconds": fresh,
                    "rate_limit_remaining": None if budget is None else budget.remaining,
                },
            )
        if known.failure is not None:
            await self._shelf.forget_failures(section_id, device.osm_user_id)

    async def _look_up(self, device: Asker, credential: Credential, purpose: Purpose) -> Term:
        """The section in the user's profile today; kept for all replicas, and with the user's devices."""
        asked_at = self._now()
        profile = await self._client.profile(credential.access_token, credential.user_id, purpose=purpose)
        term = term_of(profile, device.section_id, asked_at)
        self._meter.term(device.section_id, term.end_date)
        self._warn_of_end(device, term)
        await self._shelf.put_term(device.section_id, device.osm_user_id, term)
        await self._threads.call(
            self._devices.set_term, device.osm_user_id, device.section_id, term.term_id, term.end_date
        )
        return term

    def _warn_of_end(self, device: Asker, term: Term) -> None:
        days = None if term.end_date is None else (term.end_date - today(self._now())).days
        if days is not None and days < ENDS_SOON_DAYS:
            log.warning(
                "patrols.term_ends_soon",
                extra={
                    "user_id": device.osm_user_id,
                    "section_id": device.section_id,
                    "term_id": term.term_id,
                    "end_date": str(term.end_date),
                    "days": days,
                },
            )

    async def _note_failure(self, device: Asker, known: Known, error: Exception) -> None:
        """The next try comes later each time. What OSM answered may be about the term, so that is suspect now."""
        count = 1 if known.failure is None else known.failure.count + 1
        until = whole_second(self._now() + timedelta(seconds=pause_seconds(count)))
        [found] = await self._shelf.look([(device.section_id, device.osm_user_id)])
        term = found.term or known.term
        is_nonsense = isinstance(error, errors.BadData | Unreadable)
        is_personal = isinstance(error, Unreadable | errors.Denied)
        log.error(
            "patrols.fetch_failed",
            extra={
                "user_id": device.osm_user_id,
                "section_id": device.section_id,
                "term_id": None if term is None else term.term_id,
                "device_id": device.id,
                "device_code_hash": device.code_hash,
                "error": str(error),
                "http_status": error.http_status if isinstance(error, errors.OsmError) else None,
                "rate_limit_remaining": None if found.budget is None else found.budget.remaining,
                "again_at": until.isoformat(),
            },
        )
        failure = Failure(error="internal_error" if is_nonsense else "upstream_error", until=until, count=count)
        await self._shelf.put_failure(device.section_id, device.osm_user_id if is_personal else None, failure)
        if isinstance(error, errors.Unavailable | errors.Denied | errors.BadData):
            await self._suspect_term(device, known)

    async def _suspect_term(self, device: Asker, known: Known) -> None:
        """It may have been looked up only just now."""
        [found] = await self._shelf.look([(device.section_id, device.osm_user_id)])
        term = found.term or known.term
        if term is not None:
            suspect = msgspec.structs.replace(term, suspect=True)
            await self._shelf.put_term(device.section_id, device.osm_user_id, suspect)

    def _through(self, section_id: int, task: asyncio.Task[bool]) -> None:
        del self._under_way[section_id]
        if not task.cancelled():
            task.exception()  # whoever waited has it


def term_of(profile: Profile, section_id: int, now: datetime) -> Term:
    """What the profile says about the section today. Pure."""
    section = profile.section(section_id)
    if section is None:
        return Term(found="no_section", checked_at=now)
    running = section.term_on(today(now))
    if running is None:
        return Term(found="no_term", checked_at=now)
    return Term(found="term", checked_at=now, term_id=running.id, end_date=running.ends)


def pause_seconds(failures: int) -> int:
    """How long OSM is left alone after so many failures in a row. Pure."""
    return int(min(FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 10), LONGEST_PAUSE_SECONDS))


def _named(error: Exception) -> str:
    """The failure as a metric names it."""
    match error:
        case errors.TimedOut():
            return "timeout"
        case errors.BadData():
            return "bad_data"
        case errors.Misconfigured():
            return "misconfigured"
        case errors.Denied():
            return "denied"
        case Unreadable():
            return "unreadable"
        case _:
            return "upstream_error"
