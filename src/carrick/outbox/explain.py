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
            return Explanation("delivered", f"Delivered at {at(standing.delivered_at)} after {tries}.")
        case State.DEAD:
            return Explanation("dead", _dead(standing))
        case State.CLAIMED:
            return _claimed(standing)
        case State.PENDING:
            return _waiting(standing)


def _claimed(standing: Standing) -> Explanation:
    ends = standing.lease_expires_at
    who = f"Claimed by {standing.claimed_by} since {at(standing.claimed_at)}"
    if ends is not None and ends <= standing.now:
        return Explanation("lease_over", f"{who}, which let its lease end at {at(ends)}; the next claim takes it.")
    sentence = f"{who}; if that worker does not finish it, it comes back at {at(ends)}."
    return Explanation("claimed", sentence, ends)


def _waiting(standing: Standing) -> Explanation:
    if standing.gate is not None:
        return _held(standing.gate)
    if standing.group_held:
        return Explanation(
            "group_claimed",
            f"Waits while other entries of group {standing.group_key!r} are being delivered; it goes after them.",
        )
    if standing.blocked_by is not None:
        return Explanation(
            "behind_head",
            f"Waits behind entry {standing.blocked_by} of group {standing.group_key!r}; "
            "it goes when that one is delivered or dead.",
        )
    due = standing.group_due_at or standing.next_attempt_at
    later = due if due is not None and due > standing.now else None
    if standing.frozen:
        when = f"it comes back alone and unchanged at {at(later)}" if later else "it is due and comes back alone"
        return Explanation(
            "unsure", f"In doubt: its last delivery may or may not have happened{_error(standing)}; {when}.", later
        )
    if later is not None:
        return _not_due(standing, later)
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
    until = f"until {at(gate.closed_until)}" if gate.closed_until else "until somebody opens it"
    reason = f" ({gate.reason})" if gate.reason else ""
    return Explanation("held", f"Held: the gate of {whose} is closed {until}{reason}.", gate.closed_until)


def _not_due(standing: Standing, due: datetime) -> Explanation:
    if standing.attempt_count:
        error = _error(standing)
        sentence = f"Attempt {standing.attempt_count} failed{error}; it is tried again at {at(due)}."
        return Explanation("backoff", sentence, due)
    if standing.group_due_at is not None and standing.group_due_at == due:
        until = f"is collected until {at(due)}, or waits until then for the next attempt of another of its entries"
        return Explanation("debounced", f"Group {standing.group_key!r} {until}.", due)
    return Explanation("not_due", f"Not due before {at(due)}.", due)


def _dead(standing: Standing) -> str:
    why = f"Dead since {at(standing.failed_at)}: {why_dead(standing)}{_error(standing)}"
    return f"{why}; redrive it to send it round again."


def why_dead(standing: Standing) -> str:
    """Why it was given up, in a few words."""
    reasons = {
        "max_attempts": f"all {_times(standing.attempt_count, 'attempt')} were spent",
        "rejected": "the destination rejected it",
        "crash_loop": f"{_times(standing.crash_count, 'worker')} died while delivering it alone",
        "evicted": "the channel was full and it ranked lowest",
    }
    return reasons.get(standing.dlq_reason or "", f"reason {standing.dlq_reason!r}")


def _error(standing: Standing) -> str:
    """What the last attempt met, in brackets."""
    said = ": ".join(part for part in (standing.last_error_code, standing.last_error_message) if part)
    return f" ({said})" if said else ""


def _times(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def at(moment: datetime | None) -> str:
    """A moment as sentences say it."""
    return "an unknown time" if moment is None else moment.isoformat(timespec="seconds")
