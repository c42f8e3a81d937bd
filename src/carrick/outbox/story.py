"""What happened to an entry so far, as far as the database knows. Pure: facts in, events out.

The database keeps how many attempts there were and the last of them, not each one; a redrive forgets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from carrick.entry import Standing, State
from carrick.outbox.explain import at, why_dead


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened, or that will. `at` is None where the time is not known. `event` is a fixed word."""

    at: datetime | None
    event: str
    detail: str


def story_of(standing: Standing) -> list[Happening]:
    """The entry's story in order: put, crashes, failed attempts, claim, end; then what comes next by itself."""
    return [
        *_put(standing),
        *_crashes(standing),
        *_attempts(standing),
        *_claim(standing),
        *_end(standing),
        *_next(standing),
    ]


def _put(standing: Standing) -> Iterator[Happening]:
    whose = {"tenant": standing.tenant_id, "group": standing.group_key, "principal": standing.principal}
    named = "".join(f", {what} {name!r}" for what, name in whose.items() if name)
    detail = f"Put into channel {standing.channel!r} as {standing.event_type!r}{named}."
    yield Happening(at=standing.created_at, event="put", detail=detail)


def _crashes(standing: Standing) -> Iterator[Happening]:
    if standing.crash_count:
        detail = f"Workers that died while delivering it alone: {standing.crash_count}."
        yield Happening(at=None, event="crashed", detail=detail)


def _attempts(standing: Standing) -> Iterator[Happening]:
    """Those that failed. The attempt that delivered it is its end; when the one before it was is not kept."""
    delivered = standing.state is State.DELIVERED
    failed = standing.attempt_count - delivered
    if failed > 1:
        yield Happening(at=None, event="attempts", detail=f"Earlier attempts: {failed - 1}.")
    if failed > 0:
        when = None if delivered else standing.last_attempt_at
        yield Happening(at=when, event="attempt", detail=f"Attempt {failed}{_met(standing)}.")
    if standing.frozen:
        detail = "Nobody knows whether that delivery happened; it stays as it is until that is known."
        yield Happening(at=standing.last_attempt_at, event="in_doubt", detail=detail)


def _met(standing: Standing) -> str:
    """What the last attempt met."""
    said = ": ".join(part for part in (standing.last_error_code, standing.last_error_message) if part)
    return f" met {said}" if said else " failed"


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
