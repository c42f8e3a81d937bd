"""What all replicas know about sections and users: values in the database, read for many at once, written by who asked
OSM.

| key | value |
|---|---|
| `patrol_scores:{section}` | the last good scores, kept for CACHE_FALLBACK_TTL |
| `patrol_failure:{section}`, `…:{user}` | OSM could not be read; the second when it refused this user alone |
| `patrol_fetch:{section}` | the replica that asks OSM for the section now |
| `osm_term:{section}:{user}` | what the user's profile said about the section |
| `osm_blocked:{user}`, `osm_ratelimit:{user}` | how the user stands with OSM |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from carrick.state.kv import Kv
from carrick_scoreboard.osm.standing import KnownBudget, UserBlock
from carrick_scoreboard.patrols.known import Failure, SectionScores, Term
from carrick_scoreboard.standing import block_key, budget_key, read_budget, read_user_block, read_value

TERM_KEPT_SECONDS = 30 * 86_400
FAILURE_KEPT_SECONDS = 2 * 3600
MOST_AT_ONCE = 100
"""How many sections and users are looked at in one read."""
CHANGES = "scores"
"""Where it is told, by its id, that the scores of a section have changed."""


class Shelved(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one section and one user."""

    scores: SectionScores | None
    failure: Failure | None
    term: Term | None
    user_block: UserBlock | None
    budget: KnownBudget | None


class Shelf:
    """Reads and writes. `told` learns which sections this process has changed."""

    def __init__(
        self,
        kv: Kv,
        *,
        kept_seconds: int,
        now: Callable[[], datetime],
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._kv = kv
        self._told = told
        self._kept_seconds = kept_seconds
        self._now = now

    async def look(self, pairs: Sequence[tuple[int, int]]) -> list[Shelved]:
        """What is known now about these sections and users, at most MOST_AT_ONCE."""
        keys = [keys_of(*pair) for pair in pairs]
        found = await self._kv.get_many(list({key: None for some in keys for key in some}))
        return [self._shelved(some, found) for some in keys]

    async def shown(self, section_ids: Sequence[int]) -> dict[int, object]:
        """The scores of these sections as anybody sees them, to be compared."""
        found: dict[int, object] = {}
        for start in range(0, len(section_ids), MOST_AT_ONCE):
            some = section_ids[start : start + MOST_AT_ONCE]
            for section_id, shelved in zip(some, await self.look([(one, 0) for one in some]), strict=True):
                found[section_id] = shelved.scores and shelved.scores.patrols
        return found

    def _shelved(self, keys: tuple[str, ...], found: Mapping[str, bytes]) -> Shelved:
        scores, failure, own_failure, term, block, budget = (found.get(key) for key in keys)
        now = self._now()
        return Shelved(
            scores=read_value(scores, SectionScores),
            failure=later(read_value(failure, Failure), read_value(own_failure, Failure)),
            term=read_value(term, Term),
            user_block=read_user_block(block, now),
            budget=read_budget(budget, now),
        )

    async def put_scores(self, section_id: int, scores: SectionScores) -> None:
        """These are the section's scores from now on; whoever shows them is told when they have changed."""
        while not await self.replace_scores(section_id, await self.stored_scores(section_id), scores):
            pass

    async def stored_scores(self, section_id: int) -> bytes | None:
        """The scores as they are stored, to be replaced by `replace_scores`."""
        return await self._kv.get(scores_key(section_id))

    async def replace_scores(self, section_id: int, stored: bytes | None, scores: SectionScores) -> bool:
        """The same, if what is stored is still that: points that went to OSM during a read are not in what it read."""
        before = read_value(stored, SectionScores)
        if not await self._write_scores(section_id, stored, scores, before):
            return False
        if before is None or before.patrols != scores.patrols:
            await self.tell(section_id)
        return True

    async def _write_scores(
        self, section_id: int, stored: bytes | None, scores: SectionScores, before: SectionScores | None
    ) -> bool:
        """Whether what is stored was still that. No two versions are alike, not even with the same points."""
        key = scores_key(section_id)
        version = 1 if before is None else before.version + 1
        value = msgspec.json.encode(msgspec.structs.replace(scores, version=version))
        if stored is None:
            return await self._kv.set_if_absent(key, value, ttl=self._kept_seconds)
        return await self._kv.compare_and_set(key, stored, value, ttl=self._kept_seconds)

    async def change_scores(self, section_id: int, points: Mapping[str, int]) -> None:
        """OSM has these points now: the last scores follow, if there are any. Nobody is told yet."""
        while (scores := read_value(raw := await self.stored_scores(section_id), SectionScores)) is not None:
            patrols = tuple(
                msgspec.structs.replace(patrol, points=points.get(patrol.id, patrol.points))
                for patrol in scores.patrols
            )
            changed = msgspec.structs.replace(scores, patrols=patrols)
            if await self._write_scores(section_id, raw, changed, scores):
                break

    async def last_scores(self, section_id: int) -> SectionScores | None:
        """The last good scores, however old they are."""
        return read_value(await self.stored_scores(section_id), SectionScores)

    async def tell(self, section_id: int) -> None:
        """Devices and boards of the section read again: those of this process whether messages arrive or not."""
        try:
            await self._kv.publish(CHANGES, str(section_id))
        finally:
            self._told(section_id)

    async def put_term(self, section_id: int, user_id: int, term: Term) -> None:
        """What a profile said."""
        await self._kv.set(term_key(section_id, user_id), msgspec.json.encode(term), ttl=TERM_KEPT_SECONDS)

    async def put_failure(self, section_id: int, user_id: int | None, failure: Failure) -> None:
        """OSM could not be read; with a user, it refused that one alone."""
        key = failure_key(section_id, user_id)
        await self._kv.set(key, msgspec.json.encode(failure), ttl=FAILURE_KEPT_SECONDS)

    async def forget_failures(self, section_id: int, user_id: int) -> None:
        """OSM answers again."""
        await self._kv.delete(failure_key(section_id))
        await self._kv.delete(failure_key(section_id, user_id))

    async def take_lock(self, section_id: int, holder: bytes, seconds: float) -> bool:
        """Of all replicas one asks OSM for a section. This saves calls and decides nothing."""
        return await self._kv.set_if_absent(lock_key(section_id), holder, ttl=seconds)

    async def is_locked(self, section_id: int) -> bool:
        """Whether a replica asks OSM for the section now."""
        return await self._kv.get(lock_key(section_id)) is not None

    async def drop_lock(self, section_id: int, holder: bytes) -> None:
        """Give the lock back."""
        await self._kv.compare_and_delete(lock_key(section_id), holder)


def later(one: Failure | None, other: Failure | None) -> Failure | None:
    """The failure that lasts longer."""
    if one is None or other is None:
        return one or other
    return one if one.until >= other.until else other


def keys_of(section_id: int, user_id: int) -> tuple[str, ...]:
    """Everything that is kept about a section and a user."""
    return (
        scores_key(section_id),
        failure_key(section_id),
        failure_key(section_id, user_id),
        term_key(section_id, user_id),
        block_key(user_id),
        budget_key(user_id),
    )


def scores_key(section_id: int) -> str:
    return f"patrol_scores:{section_id}"


def failure_key(section_id: int, user_id: int | None = None) -> str:
    return f"patrol_failure:{section_id}" + ("" if user_id is None else f":{user_id}")


def term_key(section_id: int, user_id: int) -> str:
    return f"osm_term:{section_id}:{user_id}"


def lock_key(section_id: int) -> str:
    return f"patrol_fetch:{section_id}"
