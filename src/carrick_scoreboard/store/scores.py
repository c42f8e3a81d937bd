"""Points that leaders gave: submissions, their updates, and writes to OSM that are in doubt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from carrick.errors import CarrickError
from carrick.outbox.outbox import Outbox
from carrick_scoreboard.store.tables import Ask, Tables, first_of, value_of

CHANNEL = "osm-scores"
EVENT = "score.update"
OVER = "these points are not waiting any more"


class Reused(CarrickError):
    """The key came with another body before. Use a new key for new points."""


class AlreadyUndone(CarrickError):
    """These points were taken back already."""


class InDoubt(CarrickError):
    """Another write of these points is in doubt, or they are over: somebody else has decided about them."""


class NewUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Points for one patrol, checked."""

    patrol_id: str
    points: int
    patrol_name: str = ""
    undo_of: int | None = None


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What a leader sent at once. `is_new`: it was written down just now."""

    id: int
    osm_user_id: int
    key: str
    body_digest: str
    section_id: int
    batch_id: str
    created_at: datetime
    is_new: bool = False


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """One update, and what became of it. `state` is its entry's, None when retention has removed that.

    `base`, `target`, `found`: a write that is in doubt, from what to what, and what was found instead of either.
    `given_up`: they are discarded when OSM turns out not to have them.
    """

    id: int
    entry_id: UUID
    submission_id: int | None
    osm_user_id: int
    section_id: int
    patrol_id: str
    patrol_name: str
    points: int
    undo_of: int | None
    created_at: datetime
    applied_at: datetime | None
    previous_score: int | None
    new_score: int | None
    discarded_at: datetime | None
    state: str | None = None
    attempt_count: int | None = None
    next_attempt_at: datetime | None = None
    last_error_code: str | None = None
    last_error_message: str | None = None
    write_id: str | None = None
    base: int | None = None
    target: int | None = None
    found: int | None = None
    given_up: bool | None = None
    user_name: str | None = None
    undone_by: int | None = None

    @property
    def is_open(self) -> bool:
        """Nobody knows whether OSM has these points; who reads next will."""
        return self.write_id is not None and self.found is None


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one entry in a write that was about to be tried `age` seconds ago: did it happen?

    `found`: what a person must look at, because it is neither `base` nor `target`.
    """

    entry_id: UUID
    write_id: str
    patrol_id: str
    points: int
    base: int
    target: int
    found: int | None
    age: float
    given_up: bool = False


class Applied(msgspec.Struct, frozen=True):
    """An entry that OSM has taken, and the score before and after it."""

    entry_id: UUID
    before: int
    after: int


class Scores:
    """The book of points. What is written here about OSM is written after OSM has taken it, once per entry."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def submit(
        self,
        outbox: Outbox,
        osm_user_id: int,
        key: str,
        body_digest: str,
        section_id: int,
        updates: Sequence[NewUpdate],
        *,
        delay: float | None,
    ) -> Submission:
        """The submission, with an entry per update, all in one transaction. The same again is the one there is.

        Raises Reused when the key came with another body, AlreadyUndone.
        """
        with self._tables.writing() as ask:
            given = {"osm_user_id": osm_user_id, "key": key, "section_id": section_id, "body_digest": body_digest}
            added = first_of(ask("submission_add", batch_id=str(uuid4()), **given), Submission)
            if added is None:
                return _same(ask, osm_user_id, key, body_digest)
            puts = outbox.put_many(ask.connection, [_entry(added, update, delay) for update in updates])
            for put, update in zip(puts, updates, strict=True):
                _add(ask, added, str(put.id), update)
            return msgspec.structs.replace(added, is_new=True)

    def submission(self, osm_user_id: int, key: str) -> Submission | None:
        """What that user has sent with that key."""
        with self._tables.reading() as ask:
            return first_of(ask("submission_get", osm_user_id=osm_user_id, key=key), Submission)

    def updates(self, submission_id: int) -> list[Update]:
        """The updates of a submission in their order."""
        with self._tables.reading() as ask:
            return _updates(ask("updates_of", submission_id=submission_id))

    def update(self, update_id: int) -> Update | None:
        """One update."""
        with self._tables.reading() as ask:
            return first_of(ask("update_get", id=update_id), Update)

    def unfinished(self, osm_user_id: int, limit: int = 500) -> list[Update]:
        """What a user has sent and OSM has not taken yet, the oldest first."""
        with self._tables.reading() as ask:
            return _updates(ask("updates_unfinished", osm_user_id=osm_user_id, limit=limit))

    def waiting(self, osm_user_id: int) -> int:
        """How many updates of a user are on their way."""
        with self._tables.reading() as ask:
            return int(ask("updates_waiting", osm_user_id=osm_user_id)[0]["waiting"])

    def pending(self, section_ids: Collection[int]) -> dict[int, dict[str, int]]:
        """The points on their way, of all leaders, by section and patrol."""
        found: dict[int, dict[str, int]] = {section_id: {} for section_id in section_ids}
        with self._tables.reading() as ask:
            opened = [row["section_id"] for row in ask("updates_open", section_ids=list(section_ids))]
            for row in ask("updates_pending", section_ids=opened) if opened else ():
                found[row["section_id"]][row["patrol_id"]] = row["points"]
        return found

    def history(self, section_id: int, limit: int, before: int | None = None) -> list[Update]:
        """What was applied in a section, the newest first."""
        with self._tables.reading() as ask:
            return _updates(
                ask("updates_history", section_id=section_id, limit=limit, before=2**62 if before is None else before)
            )

    def backdate(self, seconds: Mapping[int, int]) -> None:
        """Applied points look that much older, by their number: for a demo that begins in the middle of an evening."""
        with self._tables.writing() as ask:
            for update_id, older in seconds.items():
                ask("updates_backdate", id=update_id, seconds=older)

    def retry(self, update: Update) -> None:
        """Dead points go round again. Whoever saw what was `found` says "apply anyway"; an open doubt is read first."""
        with self._tables.writing() as ask:
            _seen(ask, update)
            ask("doubt_give_up", entry_id=str(update.entry_id), given_up=False)
            ask.redrive(CHANNEL, update.entry_id)

    def discard(self, update: Update) -> bool:
        """Points are given up, dead ones and those that wait: the next claim leaves them out. False while nobody knows
        whether OSM has them: they go round to be looked up, and are discarded when it has not. What retention has
        removed goes round no more; should anybody ever find that OSM has it, that is written down nevertheless.
        Raises InDoubt when they are over.
        """
        with self._tables.writing() as ask:
            if not ask("update_hold", entry_id=str(update.entry_id)):
                raise InDoubt(OVER)
            _seen(ask, update)
            if ask("doubt_give_up", entry_id=str(update.entry_id), given_up=True) and update.state is not None:
                ask.redrive(CHANNEL, update.entry_id)
                return False
            ask("update_discard", entry_id=str(update.entry_id))
            ask.discard(CHANNEL, update.entry_id)
            return True

    def over(self, entry_ids: Iterable[UUID]) -> dict[UUID, bool]:
        """Which of these entries are over: applied (True), or discarded."""
        with self._tables.reading() as ask:
            found = ask("updates_over", entry_ids=list(map(str, entry_ids)))
            return {UUID(row["entry_id"]): bool(row["applied"]) for row in found}

    def doubts(self, section_id: int) -> list[Doubt]:
        """The writes to a section that are in doubt."""
        found = self._doubts(section_id)
        if any(doubt.age < 0 for doubt in found):
            with self._tables.writing() as ask:
                ask("doubts_turn_back", section_id=section_id)
            found = self._doubts(section_id)
        return found

    def _doubts(self, section_id: int) -> list[Doubt]:
        with self._tables.reading() as ask:
            return [value_of(row, Doubt) for row in ask("doubts_of", section_id=section_id)]

    def doubt(self, section_id: int, patrol_id: str, entry_ids: Iterable[UUID], base: int, target: int) -> str:
        """A write is about to be tried: until it is known what became of it, it is in doubt; its id.

        Raises InDoubt where another write has been noted, or the points are over: who holds them no longer must not
        hide it.
        """
        write_id = str(uuid4())
        write = {"write_id": write_id, "section_id": section_id, "patrol_id": patrol_id, "base": base, "target": target}
        with self._tables.writing() as ask:
            for entry_id in entry_ids:
                if not ask("doubt_add", entry_id=str(entry_id), **write):
                    raise InDoubt("another write of these points is in doubt, or they are over")
        return write_id

    def settle(
        self,
        applied: Iterable[Applied] = (),
        *,
        write_id: str | None,
        patrol_name: str = "",
        not_applied: Iterable[UUID] = (),
        unclear: Mapping[UUID, int] | None = None,
    ) -> set[UUID]:
        """What became of a write: taken (once per entry), not taken, or neither, with what was found. All at once.

        It is said of that write only: a later one of the same entries stays in doubt. Points that came to nothing have
        none (None). The answer is what was not taken and the leader has given up: it is discarded now. Raises InDoubt
        when there was no write and one of the entries is over.
        """
        discarded = set()
        with self._tables.writing() as ask:
            for one in applied:
                if write_id is None and not ask("update_hold", entry_id=str(one.entry_id)):
                    raise InDoubt(OVER)
                scores = {"previous_score": one.before, "new_score": one.after, "patrol_name": patrol_name}
                ask("update_apply", entry_id=str(one.entry_id), **scores)
                ask("doubt_end", entry_id=str(one.entry_id), write_id=write_id)
            for entry_id in not_applied:
                ask("update_hold", entry_id=str(entry_id))
                ended = ask("doubt_end", entry_id=str(entry_id), write_id=write_id)
                if any(row["given_up"] for row in ended):
                    ask("update_discard", entry_id=str(entry_id))
                    discarded.add(entry_id)
            for entry_id, found in (unclear or {}).items():
                ask("doubt_found", entry_id=str(entry_id), found=found, write_id=write_id)
        return discarded

    def tidy(self, *, days: int) -> int:
        """Give up what retention has removed, and forget points that are over after so many days; how many.

        A submission is remembered with its key as long as its points are.
        """
        with self._tables.writing() as ask:
            ask("updates_forget")
            forgotten = len(ask("updates_prune", days=days))
            ask("submission_prune", days=days)
            return forgotten


def _seen(ask: Ask, update: Update) -> None:
    """A person has seen what was found after a write, and decides."""
    if update.found is not None:
        ask("doubt_seen", entry_id=str(update.entry_id), write_id=update.write_id, found=update.found)


def _same(ask: Ask, osm_user_id: int, key: str, body_digest: str) -> Submission:
    known = value_of(ask("submission_get", osm_user_id=osm_user_id, key=key)[0], Submission)
    if known.body_digest != body_digest:
        raise Reused("this idempotency key was used for other points before; use a new one")
    return known


def _entry(submission: Submission, update: NewUpdate, delay: float | None) -> dict[str, Any]:
    return {
        "channel": CHANNEL,
        "event_type": EVENT,
        "payload": {"patrolId": update.patrol_id, "points": update.points},
        "tenant_id": str(submission.section_id),
        "group": f"{submission.section_id}:{update.patrol_id}",
        "principal": str(submission.osm_user_id),
        **({} if delay is None else {"delay": delay, "max_wait": 2 * delay}),
    }


def _add(ask: Ask, submission: Submission, entry_id: str, update: NewUpdate) -> None:
    added = ask(
        "update_add",
        entry_id=entry_id,
        submission_id=submission.id,
        osm_user_id=submission.osm_user_id,
        section_id=submission.section_id,
        patrol_id=update.patrol_id,
        patrol_name=update.patrol_name,
        points=update.points,
        undo_of=update.undo_of,
    )
    if not added:
        raise AlreadyUndone("these points were taken back already")


def _updates(rows: Iterable[Mapping[str, Any]]) -> list[Update]:
    return [value_of(row, Update) for row in rows]
