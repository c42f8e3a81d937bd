"""The story of one entry, made of the facts about where it stands. Pure.

The database keeps the last attempt of an entry, not every one: earlier ones are told as a number.
"""

from __future__ import annotations

from carrick.console.answers import Moment
from carrick.entry import Standing, State


def story_of(standing: Standing) -> list[Moment]:
    """What happened to the entry, in order, and what comes next."""
    past = [
        Moment(at=standing.created_at, kind="put", text=f"Put into {standing.channel}"),
        *_attempts(standing),
        *_claimed(standing),
        *_ended(standing),
    ]
    return [*past, *_next(standing)]


def _attempts(standing: Standing) -> list[Moment]:
    """The failures. An attempt that delivered it is told as its end."""
    failed = standing.attempt_count - (standing.state is State.DELIVERED)
    told = []
    if failed > 1:
        earlier = failed - 1
        told.append(Moment(at=None, kind="attempt", text=f"{earlier} earlier attempt{'s' * (earlier > 1)} failed"))
    if failed > 0:
        at = None if standing.state is State.DELIVERED else standing.last_attempt_at
        told.append(Moment(at=at, kind="attempt", text=f"Attempt {failed} failed{_error(standing)}"))
    if standing.crash_count:
        count = standing.crash_count
        told.append(Moment(at=None, kind="attempt", text=f"{count} worker{'s' * (count > 1)} died while delivering it"))
    return told


def _claimed(standing: Standing) -> list[Moment]:
    if standing.state is not State.CLAIMED:
        return []
    return [Moment(at=standing.claimed_at, kind="claimed", text=f"Claimed by {standing.claimed_by}")]


def _ended(standing: Standing) -> list[Moment]:
    if standing.state is State.DELIVERED:
        return [Moment(at=standing.delivered_at, kind="delivered", text="Delivered")]
    if standing.state is State.DEAD:
        return [Moment(at=standing.failed_at, kind="dead", text=f"Dead: {standing.dlq_reason}")]
    return []


def _next(standing: Standing) -> list[Moment]:
    """What changes by itself, and when."""
    if standing.state is State.CLAIMED:
        return [Moment(at=standing.lease_expires_at, kind="next", text="Comes back if its worker does not finish it")]
    if standing.state is not State.PENDING:
        return []
    if standing.gate is not None:
        until = standing.gate.closed_until
        text = "The gate that holds it opens" if until else "Waits until somebody opens the gate that holds it"
        return [Moment(at=until, kind="next", text=text)]
    due = standing.group_due_at or standing.next_attempt_at
    return [Moment(at=due, kind="next", text="Due")]


def _error(standing: Standing) -> str:
    said = ": ".join(part for part in (standing.last_error_code, standing.last_error_message) if part)
    return f" ({said})" if said else ""
