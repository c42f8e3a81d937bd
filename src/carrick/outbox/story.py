"""What happened to an entry so far, as far as the database knows. Pure: facts in, events out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from carrick.entry import Attempt, Standing, State
from carrick.outbox.explain import at, why_dead


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened, or that will. `at` is None where the time is not known. `event` is a fixed word."""

    at: datetime | None
    event: str
    detail: str


def story_of(standing: Standing) -> list[Happening]:
    """The entry's story in order: put, deliveries that did not go through, claim, end; then what comes next."""
    return [
        *_put(standing),
        *_earlier(standing),
        *map(_attempt, standing.attempts),
        *_last_attempt(standing),
        *_claim(standing),
        *_end(standing),
        *_next(standing),
    ]


def _put(standing: Standing) -> Iterator[Happening]:
    whose = {"tenant": standing.tenant_id, "group": standing.group_key, "principal": standing.principal}
    named = "".join(f", {what} {name!r}" for what, name in whose.items() if name)
    detail = f"Put into channel {standing.channel!r} as {standing.event_type!r}{named}."
    yield Happening(at=standing.created_at, event="put", detail=detail)


def _earlier(standing: Standing) -> Iterator[Happening]:
    """Attempts that are not kept one by one: only the last twenty are."""
    known = min((attempt.number for attempt in standing.attempts if attempt.outcome != "lapsed"), default=None)
    failed = standing.attempt_count - (standing.state in (State.DELIVERED, State.DEAD))
    earlier = failed if known is None else known - 1
    if earlier > 0:
        yield Happening(at=None, event="attempts", detail=f"Earlier attempts: {earlier}.")


def _attempt(attempt: Attempt) -> Happening:
    """A delivery that did not go through."""
    match attempt.outcome:
        case "lapsed":
            detail = "Its worker let the lease run out: it died, or was cut off."
            return Happening(at=attempt.at, event="lapsed", detail=detail)
        case "dead":
            detail = f"Given up after {attempt.number} attempts{_met(attempt.code, attempt.message)}; redriven later."
            return Happening(at=attempt.at, event="given_up", detail=detail)
        case _:
            detail = f"Attempt {attempt.number}{_met(attempt.code, attempt.message) or ' failed'}."
            return Happening(at=attempt.at, event="attempt", detail=detail)


def _last_attempt(standing: Standing) -> Iterator[Happening]:
    """The attempt that ended a dead entry; and the doubt about the last one of an entry that waits."""
    last = standing.attempts[-1] if standing.attempts else None
    is_told = last is not None and (last.outcome, last.number) == ("failed", standing.attempt_count)
    if standing.state is State.DEAD and standing.attempt_count and not is_told:
        met = _met(standing.last_error_code, standing.last_error_message) or " failed"
        detail = f"Attempt {standing.attempt_count}{met}."
        yield Happening(at=standing.last_attempt_at, event="attempt", detail=detail)
    if standing.frozen:
        detail = "Nobody knows whether that delivery happened; it stays as it is until that is known."
        yield Happening(at=standing.last_attempt_at, event="in_doubt", detail=detail)


def _met(code: str | None, message: str | None) -> str:
    """What an attempt met, where it is known."""
    said = ": ".join(part for part in (code, message) if part)
    return f" met {said}" if said else ""


def _claim(standing: Standing) -> Iterator[Happening]:
    if standing.state is State.CLAIMED:
        detail = f"Claimed by {standing.claimed_by} until {at(standing.lease_expires_at)}."
        yield Happening(at=standing.claimed_at, event="claimed", detail=detail)


def _end(standing: Standing) -> Iterator[Happening]:
    if standing.state is State.DELIVERED:
        detail = f"Delivered by attempt {standing.attempt_count}."
        yield Happening(at=standing.delivered_at, event="delivered", detail=detail)
    if standing.state is State.DEAD:
        yield Happening(at=standing.failed_at, event="dead", detail=f"Given up: {why_dead(standing)}.")


def _next(standing: Standing) -> Iterator[Happening]:
    """What lies ahead."""
    due, ends = standing.group_due_at or standing.next_attempt_at, standing.lease_expires_at
    match standing.state:
        case State.CLAIMED if ends is not None and ends > standing.now:
            yield Happening(at=ends, event="returns", detail="Comes back if its worker has not finished it by then.")
        case State.PENDING if standing.gate is not None:
            opens = standing.gate.closed_until
            detail = "The gate that holds it opens." if opens else "Somebody must open the gate that holds it."
            yield Happening(at=opens, event="held", detail=detail)
        case State.PENDING if due is not None and due > standing.now:
            yield Happening(at=due, event="due", detail="Will be due.")
        case _:
            return
