"""Every write after a claim: it finds the lease by its token and changes nothing when the lease has moved on (G3)."""

from __future__ import annotations

import math
import random
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec

from carrick.entry import Outcome, OutcomeKind, State
from carrick.errors import InvalidInput
from carrick.outbox.channel import MAX_WAIT_SECONDS, Channel, Mode
from carrick.outbox.sqlite.database import PACKAGE, rows
from carrick.outbox.sqlite.declaring import known_channel
from carrick.outbox.sqlite.expiring import frozen_units, is_noted
from carrick.outbox.sqlite.moment import span
from carrick.outbox.sqlite.picking import as_json
from carrick.outbox.statement import query
from carrick.outbox.transitions import TRANSITIONS, Transition, after_attempt
from carrick.outbox.wording import cleaned

MAX_CODE = 255
MAX_MESSAGE = 2_000
RELEASED = Outcome.released()


class Held(NamedTuple):
    """An entry held under a lease, with what is known about its troubles."""

    seq: int
    id: str
    tenant_id: str
    group_key: str | None
    size: int
    priority: int
    due: int
    troubled: bool
    attempt_count: int
    crash_count: int
    last_error_code: str | None
    last_error_message: str | None
    intent: str | None
    batch_cap: int | None
    frozen_batch: str | None


class Fate(NamedTuple):
    """What an outcome makes of a held entry. `attempts` counts this one, where it was spent."""

    held: Held
    outcome: Outcome
    transition: Transition
    attempts: int
    state: State


def renew(connection: sqlite3.Connection, token: UUID, seconds: int) -> int:
    """Let the lease end `seconds` from now; how many entries are held under it."""
    ((now,),) = rows(connection, "now")
    rows(connection, "renew", token=str(token), expires_at=now + span(seconds))
    return held_count(connection, token)


def note(connection: sqlite3.Connection, token: UUID, intent: str, ids: Sequence[UUID] | None) -> int:
    """Write down what the delivery is about to do, as JSON; how many entries are held under the lease."""
    noted = None if ids is None else as_json(map(str, ids))
    rows(connection, "note", token=str(token), intent=intent, noted=noted)
    return held_count(connection, token)


def held_count(connection: sqlite3.Connection, token: UUID) -> int:
    """How many entries are held under the token."""
    ((count,),) = rows(connection, "held_count", token=str(token))
    return int(count)


def finish(connection: sqlite3.Connection, token: UUID, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, State]:
    """Apply outcomes to entries held under the lease; the new state of those changed."""
    wanted = {str(entry_id): (entry_id, outcome) for entry_id, outcome in outcomes.items()}
    changed: dict[UUID, State] = {}
    frozen_batch = str(uuid4())
    ((now,),) = rows(connection, "now")
    for batch_id, name, _, intent, noted in rows(connection, "leases", token=str(token)):
        channel = known_channel(connection, name)
        fates = [
            _fate(held, wanted[held.id][1], channel)
            for held in map(Held._make, rows(connection, "finish_held", batch_id=batch_id))
            if held.id in wanted
        ]
        _end(connection, channel, [fate for fate in fates if fate.state is not State.PENDING], now)
        waiting = [fate for fate in fates if fate.state is State.PENDING]
        intents = {fate.held.seq: intent for fate in waiting if intent is not None and is_noted(noted, fate.held.id)}
        _return(connection, channel, waiting, now, intents, frozen_batch)
        rows(connection, "finish_lease", batch_id=batch_id)
        if any(fate.outcome.is_failure for fate in fates):
            rows(connection, "finish_fail", channel=name, now=now)
        changed |= {wanted[fate.held.id][0]: fate.state for fate in fates}
    return changed


def finish_all(connection: sqlite3.Connection, token: UUID) -> dict[UUID, State]:
    """All entries still held under the lease are delivered."""
    delivered: list[str] = []
    ((now,),) = rows(connection, "now")
    for batch_id, name, troubled, *_ in rows(connection, "leases", token=str(token)):
        gone = rows(connection, "finish_all_ids", batch_id=batch_id)
        rows(connection, "finish_all", batch_id=batch_id, now=now)
        if troubled:
            rows(connection, "finish_all_heal", batch_id=batch_id)
        rows(connection, "finish_all_drop", batch_id=batch_id)
        rows(connection, "finish_lease", batch_id=batch_id)
        rows(connection, "count_backlog", channel=name, bytes=-sum(size for _, size in gone))
        delivered += [entry_id for entry_id, _ in gone]
    return dict.fromkeys(msgspec.convert(delivered, list[UUID]), State.DELIVERED)


def release(connection: sqlite3.Connection, token: UUID) -> int:
    """Give back everything held under the lease, nothing spent; how many entries that were."""
    held = [
        UUID(row[1])
        for batch_id, *_ in rows(connection, "leases", token=str(token))
        for row in rows(connection, "finish_held", batch_id=batch_id)
    ]
    return len(finish(connection, token, dict.fromkeys(held, RELEASED)))


def check_outcomes(outcomes: Mapping[UUID, Outcome]) -> None:
    """Refuse a time that is no number."""
    for outcome in outcomes.values():
        if outcome.after is not None and math.isnan(outcome.after):
            raise InvalidInput("after", "is no number", "seconds")


def _fate(held: Held, outcome: Outcome, channel: Channel) -> Fate:
    transition = TRANSITIONS[outcome.kind]
    attempts = held.attempt_count + transition.spends_attempt
    return Fate(held, outcome, transition, attempts, after_attempt(outcome.kind, attempts, channel.max_attempts))


def _end(connection: sqlite3.Connection, channel: Channel, fates: Sequence[Fate], now: int) -> None:
    if not fates:
        return
    connection.executemany(query(PACKAGE, "finish_end"), [_ended(fate, channel, now) for fate in fates])
    rows(connection, "finish_drop", seqs=as_json(fate.held.seq for fate in fates))
    healed = [fate.held.seq for fate in fates if fate.held.troubled]
    if healed:
        rows(connection, "finish_heal", seqs=as_json(healed))
    rows(connection, "count_backlog", channel=channel.name, bytes=-sum(fate.held.size for fate in fates))


def _ended(fate: Fate, channel: Channel, now: int) -> dict[str, Any]:
    code, message = _error(fate.outcome)
    dead = "rejected" if fate.outcome.kind is OutcomeKind.REJECTED else "max_attempts"
    return {
        "seq": fate.held.seq,
        "channel": channel.name,
        "state": fate.state.value,
        "ended_at": now,
        "attempt_count": fate.attempts,
        "crash_count": fate.held.crash_count,
        "last_error_code": fate.held.last_error_code if code is None else code,
        "last_error_message": fate.held.last_error_message if message is None else message,
        "dlq_reason": dead if fate.state is State.DEAD else None,
    }


def _return(
    connection: sqlite3.Connection,
    channel: Channel,
    fates: Sequence[Fate],
    now: int,
    intents: Mapping[int, str],
    frozen_batch: str,
) -> None:
    """Entries wait again; those of unknown outcome frozen together, or group by group in a coalescing channel."""
    frozen = {fate.held.seq: frozen_batch for fate in fates if fate.transition.freezes}
    if channel.mode is Mode.COALESCE and frozen:
        units = [(f.held.seq, f.held.tenant_id, f.held.group_key or f.held.id) for f in fates if f.held.seq in frozen]
        frozen = {unit["seq"]: unit["frozen_batch"] for unit in frozen_units(units)}
    spent = [fate for fate in fates if fate.transition.spends_attempt]
    worse = [_trouble(fate, now, intents.get(fate.held.seq), frozen.get(fate.held.seq)) for fate in spent]
    connection.executemany(query(PACKAGE, "finish_worsen"), worse)
    connection.executemany(query(PACKAGE, "finish_return"), [_waiting(fate, channel, now) for fate in fates])


def _trouble(fate: Fate, now: int, intent: str | None, frozen_batch: str | None) -> dict[str, Any]:
    code, message = _error(fate.outcome)
    return {
        "seq": fate.held.seq,
        "attempt_count": fate.attempts,
        "last_attempt_at": now,
        "last_error_code": code,
        "last_error_message": message,
        "intent": (fate.held.intent if intent is None else intent) if fate.transition.freezes else None,
        "frozen_batch": frozen_batch,
    }


def _waiting(fate: Fate, channel: Channel, now: int) -> dict[str, Any]:
    """An entry that was only released keeps its time, and the suspicion of a crash."""
    held, spent = fate.held, fate.transition.spends_attempt
    after = fate.outcome.after or 0
    due = now + backoff(channel, fate.attempts) if spent else held.due
    apart = held.batch_cap is not None or held.frozen_batch is not None
    return {
        "seq": held.seq,
        "due": max(due, now + span(min(after, MAX_WAIT_SECONDS))) if after > 0 else due,
        "troubled": spent or bool(held.troubled),
        "special": fate.transition.freezes or (not spent and apart),
    }


def backoff(channel: Channel, attempts: int) -> int:
    """min(cap, base * 2^(attempts - 1)) with equal jitter, between half and all of it; in microseconds."""
    whole = min(channel.backoff_cap_seconds, channel.backoff_base_seconds * 2 ** min(attempts - 1, 60))
    return span(whole * (0.5 + random.random() / 2))  # noqa: S311  spread, not a secret


def _error(outcome: Outcome) -> tuple[str | None, str | None]:
    code, message = outcome.code, outcome.message
    return (
        None if code is None else cleaned(code, MAX_CODE),
        None if message is None else cleaned(message, MAX_MESSAGE),
    )
