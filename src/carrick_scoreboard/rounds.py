"""One claim of points on their way to OSM: read once per section, then write once per patrol and leader.

Before a write it is noted, under the lease, what is to become what; after it, that it happened. Whoever finds such a
note without its end waits until the old request can no longer arrive, reads, and compares: the score that is there now
tells whether it happened. If it is neither, a person must say.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from typing import NoReturn, Protocol
from uuid import UUID

import msgspec

from carrick.entry import Entry, Outcome
from carrick.errors import StoreError
from carrick.relay.threads import Threads
from carrick.sinks.sink import Delivery, Report, Results, Unavailable
from carrick.steady import steady_seconds
from carrick_scoreboard.adding import Change, Step, Verdict, happened, steps, verdict, writes_of
from carrick_scoreboard.holding import leader_scope, section_scope
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Patrol
from carrick_scoreboard.osm.client import Credential
from carrick_scoreboard.osm_access import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, OsmAccess
from carrick_scoreboard.sealing import Unreadable
from carrick_scoreboard.store.scores import Applied, Doubt, InDoubt, Scores

log = logging.getLogger("carrick.scores")

SETTLE_SECONDS = 45.0
"""After so long an old request can no longer arrive: it leaves within its own time after it was written down, takes as
long again at most, and a dying connection may still hold it back."""
TRIES = 3
"""How often points are tried that OSM refuses by name with a good status. Meanwhile they hold their patrol."""
DISCARDED = Outcome.rejected("the leader has given these points up", code="discarded")
"""Of what comes round again nevertheless: an operator sends all dead entries, say."""


class Board(Protocol):
    """What the displays show."""

    async def seen(self, section_id: int) -> Mapping[str, int]:
        """The scores that were last shown, by patrol."""
        ...

    async def show(self, section_id: int, patrol_id: str, score: int) -> None:
        """OSM has a new score: whoever asks from now on sees it."""
        ...

    async def tell(self, section_id: int) -> None:
        """Everybody who shows the section should ask."""
        ...


class Points(msgspec.Struct, frozen=True):
    """The payload of an entry."""

    patrol_id: str = msgspec.field(name="patrolId")
    points: int


class Stop(Exception):
    """Nothing more can be done in this round; `report` is why, None when only the leaders in it must wait."""

    def __init__(self, report: Unavailable | None) -> None:
        self.report = report


class Round:
    """The waiting points of one section, and what becomes of them."""

    def __init__(
        self,
        delivery: Delivery,
        osm: OsmAccess,
        scores: Scores,
        threads: Threads,
        board: Board,
        *,
        merge_leaders: bool,
        settle_seconds: float,
    ) -> None:
        self._delivery = delivery
        self._osm = osm
        self._scores = scores
        self._call = threads.call
        self._board = board
        self._merge_leaders = merge_leaders
        self._settle_seconds = settle_seconds
        self._section = int(delivery.entries[0].tenant_id)
        self._section_scope = section_scope(self._section)
        self._waiting = changes_by_patrol(delivery.entries)
        self._tries = {entry.id: entry.attempt_count + 1 for entry in delivery.entries}
        self._outcomes: dict[UUID, Outcome] = {}
        self._out: set[int] = set()
        self._denied: errors.SectionDenied | None = None
        self._is_shown_anew = False

    @property
    def _last_moment(self) -> float:
        """When a write may leave at the latest: it must be over before the lease is."""
        return self._delivery.deadline - self._osm.client.timeout_seconds

    def _check_time(self) -> None:
        """Too late for a write: what is left is claimed again, with time of its own."""
        if steady_seconds() > self._last_moment:
            raise Stop(None)

    async def run(self) -> Report:
        """All of it. Raises LeaseLost: what was in doubt then still is."""
        stopped: Unavailable | None = None
        try:
            await self._leave_out_over()
            doubts = await self._old_doubts() if self._waiting else []
            if self._waiting:
                patrols = await self._read()
                about = {
                    patrol_id: [one for one in doubts if one.patrol_id == patrol_id] for patrol_id in self._waiting
                }
                for patrol_id in sorted(about, key=lambda patrol_id: bool(about[patrol_id])):
                    await self._bring(patrol_id, patrols.get(patrol_id), about[patrol_id])
                self._osm.worked()
        except Stop as stop:
            stopped = stop.report
        except StoreError as error:  # what was in doubt still is; an outage costs no attempts
            log.warning("scores.cut_off", extra={"section": self._section, "error": str(error)})
            left = [one for changes in self._waiting.values() for one in changes]
            self._end(_ids(left), Outcome.released(after=FIRST_PAUSE_SECONDS, code="store_failed", message=str(error)))
        finally:
            await self._tell()
        return Results(outcomes=self._outcomes, unavailable=stopped)

    async def _leave_out_over(self) -> None:
        """What OSM has taken is delivered, even if nobody came to write that down; what was given up is not applied."""
        over = await self._call(self._scores.over, [entry.id for entry in self._delivery.entries])
        for entry_id, applied in over.items():
            self._end([entry_id], Outcome.delivered() if applied else DISCARDED)

    async def _old_doubts(self) -> list[Doubt]:
        """Doubts about patrols in hand, whosever they are; old enough that the next read settles them.

        A patrol about which there is a younger one waits until then.
        """
        doubts = await self._call(self._scores.doubts, self._section)
        for doubt in doubts:
            left = self._settle_seconds - doubt.age
            if doubt.found is None and left > 0 and doubt.patrol_id in self._waiting:
                told = {"section": self._section, "patrol": doubt.patrol_id, "seconds": round(left, 1)}
                log.info("scores.waiting_for_old_request", extra=told)
                self._end(_ids(self._waiting[doubt.patrol_id]), Outcome.released(after=left))
        return [doubt for doubt in doubts if doubt.patrol_id in self._waiting]

    async def _read(self) -> dict[str, Patrol]:
        """The section as OSM has it now, read for the first of the leaders who can; else for another who has it.

        A no to the reading says nothing about points: only when it is told to all, the section waits, and nobody else.
        """
        async for user_id in self._readers():
            credential = await self._credential(user_id)
            if credential is None:
                continue
            try:
                term_id = await self._osm.term_of(self._section, credential)
                patrols = await self._osm.client.patrols(credential, self._section, term_id, purpose="write")
            except errors.SectionDenied as error:
                self._denied = error
                continue
            except errors.OsmError as error:
                await self._excuse(user_id, credential, error)
                continue
            self._osm.worked(self._section_scope)
            return {patrol.id: patrol for patrol in patrols}
        raise Stop(self._osm.section_denied(self._section_scope, self._denied) if self._denied else None)

    async def _readers(self) -> AsyncIterator[int]:
        """Whose points these are; where OSM does not show them the section, whoever else may write to it."""
        own = dict.fromkeys(change.user_id for changes in self._waiting.values() for change in changes)
        for user_id in own:
            yield user_id
        if self._denied is not None:
            for user_id in await self._osm.signed.leaders_of(self._section):
                if user_id not in own:
                    yield user_id

    async def _credential(self, user_id: int) -> Credential | None:
        """The leader's credential; None when they must wait or sign in first."""
        if user_id in self._out:
            return None
        try:
            return await self._osm.signed.usable(user_id)
        except errors.Unavailable as error:  # it is about these tokens: those of others may be good
            await self._hold(user_id, self._osm.hold_seconds(leader_scope(user_id)), f"osm_unavailable: {error}")
        except errors.OsmError as error:
            await self._excuse(user_id, None, error)
        except Unreadable as error:
            await self._hold(user_id, LONGEST_PAUSE_SECONDS, f"misconfigured: {error}")
        return None

    async def _bring(self, patrol_id: str, patrol: Patrol | None, doubts: list[Doubt]) -> None:
        """Bring the points of one patrol, whose score was just read."""
        if patrol is None:
            for doubt in doubts:
                if doubt.given_up:  # nobody will ever know
                    await self._did_not_happen([doubt.entry_id], doubt.write_id)
            gone = Outcome.rejected("OSM has no such patrol in this section", code="patrol_not_found")
            self._end(_ids(self._waiting.get(patrol_id, ())), gone)
            return
        await self._note_conflict(patrol)
        for write in writes_of(doubts):
            await self._settle(patrol, write, patrol.points)
        await self._write_all(patrol, patrol.points)

    async def _write_all(self, patrol: Patrol, score: int) -> int:
        """Write what waits for a patrol that has this score; the score that is there then."""
        for step in steps(self._waiting.get(patrol.id, ()), merge=self._merge_leaders):
            self._check_time()
            credential = await self._credential(step.user_id)
            if credential is not None:
                score = await self._write(patrol, step, score, credential)
        return score

    async def _note_conflict(self, patrol: Patrol) -> None:
        """Somebody else has changed the points: that is respected, and told."""
        seen = (await self._board.seen(self._section)).get(patrol.id)
        if seen is not None and seen != patrol.points:
            log.warning(
                "scores.conflict",
                extra={"section": self._section, "patrol": patrol.id, "shown": seen, "found": patrol.points},
            )
            await self._show(patrol, patrol.points)

    async def _settle(self, patrol: Patrol, write: list[Doubt], score: int) -> Verdict:
        """What became of an earlier write to this patrol, by the score that is there now."""
        entry_ids = [doubt.entry_id for doubt in write]
        if write[0].found is not None:
            self._end(entry_ids, needs_review(write[0], write[0].found))
            return Verdict.UNCLEAR
        said = verdict(write[0], score)
        self._log_verdict(patrol, write[0], score, said)
        match said:
            case Verdict.HAPPENED:
                await self._arrived(patrol, happened(write), write[0].write_id)
            case Verdict.DID_NOT:
                await self._did_not_happen(entry_ids, write[0].write_id)
            case Verdict.UNCLEAR:
                unclear = dict.fromkeys(entry_ids, score)
                await self._call(self._scores.settle, unclear=unclear, write_id=write[0].write_id)
                self._end(entry_ids, needs_review(write[0], score))
        return said

    async def _did_not_happen(self, entry_ids: Iterable[UUID], write_id: str) -> None:
        """They may be written again, but for those that their leader has given up."""
        self._end(await self._call(self._scores.settle, not_applied=entry_ids, write_id=write_id), DISCARDED)

    def _log_verdict(self, patrol: Patrol, doubt: Doubt, score: int, said: Verdict) -> None:
        numbers = {"base": doubt.base, "target": doubt.target, "found": score}
        log.warning(
            "scores.settled", extra={"section": self._section, "patrol": patrol.id, **numbers, "verdict": said.value}
        )

    async def _write(self, patrol: Patrol, step: Step, base: int, credential: Credential) -> int:
        """One write; the score that is there then. What goes wrong ends the step, or the round."""
        write_id = None
        if step.points:
            leaves_by = min(self._last_moment, steady_seconds() + self._osm.client.timeout_seconds)
            write_id = await self._noted(patrol, step, base)
            try:
                await self._set_points(patrol, base + step.points, credential, leaves_by)
            except errors.OsmError as error:
                return await self._not_written(patrol, step, base, write_id, credential, error)
        try:
            await self._arrived(patrol, step.applied(base), write_id)
        except InDoubt as error:
            raise Stop(None) from error
        return base + step.points

    async def _arrived(self, patrol: Patrol, applied: Sequence[Applied], write_id: str | None) -> None:
        """OSM has taken them: that is written down first, then shown. Raises InDoubt."""
        await self._call(self._scores.settle, applied, write_id=write_id, patrol_name=patrol.name)
        before, after = applied[0].before, applied[-1].after
        log.info(
            "scores.applied",
            extra={
                "section": self._section,
                "patrol": patrol.id,
                "entries": len(applied),
                "before": before,
                "after": after,
            },
        )
        self._end([one.entry_id for one in applied], Outcome.delivered())
        await self._show(patrol, after)

    async def _noted(self, patrol: Patrol, step: Step, base: int) -> str:
        """What is to become what, under the lease; the id of the write. Raises LeaseLost, or Stop where somebody has
        decided about these points meanwhile: what is left is claimed again."""
        target = base + step.points
        # merged, a leader who must sign in would keep those of the others apart as well; the doubt is enough
        kept_apart = () if self._merge_leaders else step.entry_ids
        await self._delivery.note({"patrol": patrol.id, "base": base, "target": target}, kept_apart)
        try:
            return await self._call(self._scores.doubt, self._section, patrol.id, step.entry_ids, base, target)
        except InDoubt as error:
            raise Stop(None) from error

    async def _set_points(self, patrol: Patrol, target: int, credential: Credential, leaves_by: float) -> None:
        await self._osm.client.set_points(credential, self._section, patrol.id, target, not_after=leaves_by)
        self._osm.worked(leader_scope(credential.user_id))

    async def _not_written(
        self, patrol: Patrol, step: Step, base: int, write_id: str, credential: Credential, error: errors.OsmError
    ) -> int:
        """A write that did not work, or of which nobody knows; the score that is there then."""
        if isinstance(error, errors.Denied) and error.in_doubt:
            return await self._read_back(patrol, step, credential, error)
        if error.in_doubt:  # the old request may still arrive: whoever reads the section after that settles the doubt
            self._give_up(error)
        await self._did_not_happen(step.entry_ids, write_id)
        self._check_time()  # that it did not leave in time is no fault of OSM's
        if isinstance(error, errors.Denied):
            return await self._refused(patrol, step, base, error, tries=1)
        await self._excuse(step.user_id, credential, error)
        return base

    async def _refused(self, patrol: Patrol, step: Step, base: int, error: errors.Denied, *, tries: float) -> int:
        """OSM says no to these points, and does not have them; what it says of several leaders' is asked of each."""
        if step.is_shared:
            self._merge_leaders = False
            return await self._write_all(patrol, base)
        for entry_id in step.entry_ids:
            is_over = self._tries[entry_id] >= tries
            self._end([entry_id], (Outcome.rejected if is_over else Outcome.retry)(message=str(error), code="refused"))
        return base

    async def _read_back(self, patrol: Patrol, step: Step, credential: Credential, error: errors.Denied) -> int:
        """OSM itself has answered, so the request is over: what is there now tells what it did."""
        now_there = (await self._read()).get(patrol.id, patrol)
        doubts = await self._call(self._scores.doubts, self._section)
        write = [doubt for doubt in doubts if doubt.entry_id in step.entry_ids]
        if await self._settle(patrol, write, now_there.points) is Verdict.DID_NOT:
            if error.weight == "again":
                tries = TRIES if error.code == "stated" else math.inf  # a 500 may pass: the channel's own limit counts
                return await self._refused(patrol, step, now_there.points, error, tries=tries)
            await self._excuse(step.user_id, credential, error)
        return now_there.points

    async def _excuse(self, user_id: int, credential: Credential | None, error: errors.OsmError) -> None:
        """What concerns one leader holds that leader; anything else ends the round."""
        match error:
            case errors.RateLimited() | errors.OutOfBudget():
                await self._hold(user_id, self._osm.seconds_until(error.until), "rate_limited")
            case errors.AuthRevoked():
                if credential is None or await self._osm.signed.refused(credential):
                    await self._hold(user_id, None, "auth_revoked")
                self._out.add(user_id)  # with newer tokens they are claimed again at once
            case errors.Denied():
                await self._hold(user_id, self._osm.hold_seconds(leader_scope(user_id)), f"refused: {error}")
            case _:
                self._give_up(error)

    async def _hold(self, user_id: int, seconds: float | None, reason: str) -> None:
        """Theirs go back, with the reason, unless another leader's read tells what became of them."""
        self._out.add(user_id)
        theirs = [change for changes in self._waiting.values() for change in changes if change.user_id == user_id]
        held = Outcome.released(code=reason.partition(":")[0], message=reason)
        self._outcomes |= dict.fromkeys(_ids(theirs), held)
        await self._osm.shut(user_id, seconds, reason)

    def _give_up(self, error: errors.OsmError) -> NoReturn:
        """OSM itself is in the way: end the round, and leave it alone for a while."""
        raise Stop(self._osm.unavailable(error))

    def _end(self, entry_ids: Iterable[UUID], outcome: Outcome) -> None:
        """These entries have their outcome, and wait no longer."""
        ended = set(entry_ids)
        for patrol_id, changes in list(self._waiting.items()):
            self._outcomes |= {change.entry_id: outcome for change in changes if change.entry_id in ended}
            self._waiting[patrol_id] = [change for change in changes if change.entry_id not in ended]
        self._waiting = {patrol_id: changes for patrol_id, changes in self._waiting.items() if changes}

    async def _show(self, patrol: Patrol, score: int) -> None:
        """At once, not at the end of the round: points that have arrived are no longer on their way to it."""
        self._is_shown_anew = True
        await self._follow(self._board.show(self._section, patrol.id, score))

    async def _tell(self) -> None:
        if self._is_shown_anew:
            await self._follow(self._board.tell(self._section))

    async def _follow(self, told: Awaitable[None]) -> None:
        """Displays follow. That nobody could be told is no reason to do anything again."""
        try:
            await told
        except StoreError as error:
            log.warning("scores.not_told", extra={"section": self._section, "error": str(error)})


def changes_by_patrol(entries: Iterable[Entry]) -> dict[str, list[Change]]:
    """The changes of each patrol, in the order in which they came."""
    waiting: dict[str, list[Change]] = {}
    for entry in sorted(entries, key=lambda entry: entry.seq):
        given = msgspec.json.decode(entry.payload, type=Points)
        waiting.setdefault(given.patrol_id, []).append(Change(entry.id, int(entry.principal or 0), given.points))
    return waiting


def needs_review(doubt: Doubt, found: int) -> Outcome:
    """A person must say what is right; both numbers are told."""
    message = f"OSM should have {doubt.target} points now, or still {doubt.base}, but it has {found}"
    return Outcome.rejected(message, code="needs_review")


def _ids(changes: Iterable[Change]) -> list[UUID]:
    return [change.entry_id for change in changes]
