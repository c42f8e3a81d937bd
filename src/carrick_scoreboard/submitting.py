"""Takes points from leaders: written down at once, whether OSM is there or not, and answered as soon as it is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from carrick.entry import Gate
from carrick.errors import InvalidInput
from carrick.outbox.outbox import Outbox
from carrick.relay.threads import Threads
from carrick_scoreboard.holding import section_scope
from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.scores import CHANNEL, NewUpdate, Scores, Submission, Update
from carrick_scoreboard.waiting import Why, why

log = logging.getLogger("carrick.scores")

MAX_POINTS = 1_000
MAX_UPDATES = 50
MAX_KEY = 255
WAIT_SECONDS = 8.0
"""How long an interactive submission waits for OSM."""
LOOK_SECONDS = 0.1
UNDECIDED = ("sending", "waiting")
"""While this is all that can be said, it is worth waiting."""

Mode = Literal["interactive", "background"]


class PatrolPoints(msgspec.Struct, frozen=True, rename="camel"):
    """Points for one patrol, as a leader sends them."""

    patrol_id: str
    points: int


class ScoreUpdates(msgspec.Struct, frozen=True):
    """The body of a submission."""

    updates: tuple[PatrolPoints, ...]


class PatrolAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of a patrol's points so far."""

    id: str
    name: str
    success: bool
    score: int | None = None
    previous_score: int | None = None
    new_score: int | None = None
    is_temporary_error: bool | None = None
    retry_after: datetime | None = None
    error_message: str | None = None


class PendingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many updates wait, and why."""

    count: int
    message: str


class SubmissionAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a leader is told about a submission."""

    success: bool
    status: Literal["accepted", "applied"]
    batch_id: str
    entries_created: int
    patrols: tuple[PatrolAnswer, ...]
    pending: PendingAnswer | None = None


class Shown(Protocol):
    """What is known of a section without asking OSM."""

    async def names(self, section_id: int) -> Mapping[str, str]:
        """The names of its patrols, as far as they are known."""
        ...

    async def seen(self, section_id: int) -> Mapping[str, int]:
        """The scores of its patrols, as far as they are known."""
        ...

    async def tell(self, section_id: int) -> None:
        """Everybody who shows the section should ask: points are on their way."""
        ...


class Desk:
    """Where leaders hand in points. No call to OSM is needed to take them. `created` is told how many are new."""

    def __init__(
        self,
        scores: Scores,
        outbox: Outbox,
        threads: Threads,
        shown: Shown,
        *,
        debounce_seconds: float,
        created: Callable[[int], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scores = scores
        self._outbox = outbox
        self._threads = threads
        self._shown = shown
        self._debounce_seconds = debounce_seconds
        self._created = created
        self._sleep = sleep

    async def submit(
        self, user_id: int, section_id: int, key: str, updates: Sequence[PatrolPoints], mode: Mode
    ) -> SubmissionAnswer:
        """Write the points down, and wait a little for OSM where somebody looks at it. Raises InvalidInput, Reused."""
        check_updates(updates)
        names = await self._shown.names(section_id)
        new = [
            NewUpdate(patrol_id=given.patrol_id, points=given.points, patrol_name=names.get(given.patrol_id, ""))
            for given in updates
        ]
        return await self.put(user_id, section_id, key, new, mode)

    async def undo(self, update: Update, user_id: int, key: str) -> SubmissionAnswer:
        """Take applied points back. Raises Reused, AlreadyUndone."""
        back = NewUpdate(
            patrol_id=update.patrol_id, points=-update.points, patrol_name=update.patrol_name, undo_of=update.id
        )
        return await self.put(user_id, update.section_id, key, [back], "interactive")

    async def put(
        self, user_id: int, section_id: int, key: str, new: Sequence[NewUpdate], mode: Mode
    ) -> SubmissionAnswer:
        """The same key again is the same submission, with what has become of it since."""
        check_key(key)
        submission = await self._threads.call(
            self._scores.submit,
            self._outbox,
            user_id,
            key,
            _body_digest(section_id, new),
            section_id,
            new,
            delay=self._debounce_seconds if mode == "background" else None,
        )
        if submission.is_new:
            self._outbox.store.wake(CHANNEL)
            self._created(len(new))
            if await self._threads.call(self._open, section_scope(section_id)):
                self._outbox.store.wake(CHANNEL)
            await self._shown.tell(section_id)
        seconds = WAIT_SECONDS if mode == "interactive" else 0.0
        return await self._answer(submission, seconds)

    async def discard(self, update: Update) -> bool:
        """Points are given up, now, or when it has been looked up whether OSM has them (False)."""
        discarded = await self._threads.call(self._scores.discard, update)
        await self._shown.tell(update.section_id)
        return discarded

    async def reasons(self, updates: Sequence[Update]) -> list[Why]:
        """Why each of these waits."""
        gates, now = await self._threads.call(self._gates)
        return [why(update, gates, now) for update in updates]

    def _open(self, scope: str) -> bool:
        """Whoever gives points now may see a section that OSM did not show to those who did before."""
        is_closed = any(gate.scope == scope for gate in self._outbox.store.gates(CHANNEL))
        if is_closed:
            self._outbox.store.open_gate(CHANNEL, scope, closed_by="destination")
        return is_closed

    def _gates(self) -> tuple[list[Gate], datetime]:
        return self._outbox.store.gates(CHANNEL), self._outbox.store.now()

    async def _answer(self, submission: Submission, seconds: float) -> SubmissionAnswer:
        """Look until everything is applied, or it is known that it takes longer, or the time is up."""
        while True:
            updates = await self._threads.call(self._scores.updates, submission.id)
            waiting = [update for update in updates if update.applied_at is None]
            reasons = dict(zip((update.id for update in waiting), await self.reasons(waiting), strict=True))
            undecided = any(reason.reason in UNDECIDED for reason in reasons.values())
            if seconds <= 0 or not undecided:
                return answer_of(submission, updates, reasons, await self._shown.seen(submission.section_id))
            await self._sleep(LOOK_SECONDS)
            seconds -= LOOK_SECONDS


def check_key(key: str) -> None:
    """Refuse what is no idempotency key."""
    if not key:
        raise InvalidInput("X-Idempotency-Key", "Idempotency key required", f"1 to {MAX_KEY} characters")
    if len(key) > MAX_KEY or not key.isprintable():
        raise InvalidInput("X-Idempotency-Key", "too long or not printable", f"1 to {MAX_KEY} printable characters")


def check_updates(updates: Sequence[PatrolPoints]) -> None:
    """Refuse what cannot be points of patrols, in words that a leader understands."""
    if not 1 <= len(updates) <= MAX_UPDATES:
        raise InvalidInput("updates", f"{len(updates)} of them", f"points for 1 to {MAX_UPDATES} patrols")
    for update in updates:
        if not update.patrol_id.isascii() or not update.patrol_id.isdecimal() or len(update.patrol_id) > 16:
            raise InvalidInput("patrolId", f"{update.patrol_id[:40]!r} is no patrol", "the number of a patrol")
        if update.points == 0 or abs(update.points) > MAX_POINTS:
            accepted = f"whole points from -{MAX_POINTS} to {MAX_POINTS}, not 0"
            raise InvalidInput("points", f"{update.points} for patrol {update.patrol_id}", accepted)


def answer_of(
    submission: Submission, updates: Sequence[Update], reasons: Mapping[int, Why], seen: Mapping[str, int]
) -> SubmissionAnswer:
    """What to tell a leader about a submission."""
    patrols = dict.fromkeys(update.patrol_id for update in updates)
    return SubmissionAnswer(
        success=True,
        status="accepted" if reasons else "applied",
        batch_id=submission.batch_id,
        entries_created=len(updates),
        patrols=tuple(
            _patrol([update for update in updates if update.patrol_id == patrol], reasons, seen.get(patrol))
            for patrol in patrols
        ),
        pending=_pending(list(reasons.values())) if reasons else None,
    )


def _patrol(updates: Sequence[Update], reasons: Mapping[int, Why], seen: int | None) -> PatrolAnswer:
    first, last = updates[0], updates[-1]
    name = next((one.patrol_name for one in updates if one.patrol_name), "")
    waits = [reasons[update.id] for update in updates if update.id in reasons]
    if waits:
        return PatrolAnswer(
            id=first.patrol_id,
            name=name,
            success=False,
            score=seen,
            is_temporary_error=waits[0].is_temporary,
            retry_after=None if waits[0].retry_at is None else whole_second(waits[0].retry_at),
            error_message=waits[0].message,
        )
    return PatrolAnswer(
        id=first.patrol_id,
        name=name,
        success=True,
        score=last.new_score,
        previous_score=first.previous_score,
        new_score=last.new_score,
    )


def _pending(reasons: Sequence[Why]) -> PendingAnswer:
    """The most telling reason first: what needs somebody before what goes away by itself."""
    telling = sorted(reasons, key=lambda reason: (reason.is_temporary, reason.reason in UNDECIDED))[0]
    return PendingAnswer(count=len(reasons), message=telling.message)


def _body_digest(section_id: int, updates: Sequence[NewUpdate]) -> str:
    """What makes a submission the same: not how its JSON was written, nor what patrols are called."""
    content = [(update.patrol_id, update.points, update.undo_of) for update in updates]
    return digest(msgspec.json.encode((section_id, content)).decode())
