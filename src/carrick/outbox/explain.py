"""Why an entry has not been delivered and until when, in one sentence (G10). Pure: facts in, words out."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from carrick.entry import Gate, Standing, State


class Explanation(NamedTuple):
    """`reason` is a fixed word for programs, `sentence` is for people, `until` when it changes by itself (if known)."""

    reason: str
    sentence: str
    until: datetime | None = None


def explain(standing: Standing) -> Explanation:
    """One sentence about where the entry stands."""
    match standing.state:
        case State.DELIVERED:
            tries = _times(standing.attempt_count, "attempt")
            return Explanation("delivered", f"Delivered at {_at(standing.delivered_at)} after {tries}.")
        case State.DEAD:
            return Explanation("dead", _dead(standing))
        case State.CLAIMED:
            sentence = (
                f"Claimed by {standing.claimed_by} since {_at(standing.claimed_at)}; "
                f"if that worker does not finish it, it comes back at {_at(standing.lease_expires_at)}."
            )
            return Explanation("claimed", sentence, standing.lease_expires_at)
        case State.PENDING:
            return _waiting(standing)


def _waiting(standing: Standing) -> Explanation:
    if standing.gate is not None:
        return _held(standing.gate)
    if standing.group_held:
        return Explanation(
            "group_claimed", f"Waits while other entries of group {standing.group_key!r} are being delivered."
        )
    if standing.blocked_by is not None:
        return Explanation(
            "behind_head",
            f"Waits behind entry {standing.blocked_by}, earlier in group {standing.group_key!r}.",
        )
    due = standing.group_due_at or standing.next_attempt_at
    if due is not None and due > standing.now:
        return _not_due(standing, due)
    if standing.frozen:
        return Explanation("unsure", "Its last delivery may or may not have happened; it is due and comes back alone.")
    if standing.rank_ahead:
        ahead = (
            "1000 or more entries" if standing.rank_ahead >= 1000 else _times(standing.rank_ahead, "entry", "entries")
        )
        return Explanation("in_turn", f"Due; {ahead} of its tenant go first, tenants take turns.")
    return Explanation("due", "Due now; the next claim of its channel takes it when its tenant's turn comes.")


def _held(gate: Gate) -> Explanation:
    names = {"*": f"channel {gate.channel!r}"}
    kind, _, name = gate.scope.partition(":")
    whose = names.get(gate.scope, f"{kind} {name!r}")
    until = f"until {_at(gate.closed_until)}" if gate.closed_until else "until somebody opens it"
    reason = f" ({gate.reason})" if gate.reason else ""
    return Explanation("held", f"Held: the gate of {whose} is closed {until}{reason}.", gate.closed_until)


def _not_due(standing: Standing, due: datetime) -> Explanation:
    if standing.attempt_count:
        error = _error(standing)
        sentence = f"Attempt {standing.attempt_count} failed{error}; it is tried again at {_at(due)}."
        return Explanation("backoff", sentence, due)
    if standing.group_due_at is not None and standing.group_due_at == due:
        return Explanation("debounced", f"Group {standing.group_key!r} is collected until {_at(due)}.", due)
    return Explanation("not_due", f"Not due before {_at(due)}.", due)


def _dead(standing: Standing) -> str:
    reasons = {
        "max_attempts": f"all {_times(standing.attempt_count, 'attempt')} were spent",
        "rejected": "the destination rejected it",
        "crash_loop": f"{_times(standing.crash_count, 'worker')} died while delivering it alone",
        "evicted": "the channel was full and it ranked lowest",
    }
    why = reasons.get(standing.dlq_reason or "", f"reason {standing.dlq_reason!r}")
    return f"Dead since {_at(standing.failed_at)}: {why}{_error(standing)}; redrive it to send it round again."


def _error(standing: Standing) -> str:
    said = ": ".join(part for part in (standing.last_error_code, standing.last_error_message) if part)
    return f" ({said})" if said else ""


def _times(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _at(moment: datetime | None) -> str:
    return "an unknown time" if moment is None else moment.isoformat(timespec="seconds")
