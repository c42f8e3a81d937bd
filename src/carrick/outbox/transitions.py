"""(outcome) -> what happens to a claimed entry: the only such table.

The databases hold the same rows in `carrick.transition` (SQLite: `carrick_transition`); a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple

from carrick.entry import OutcomeKind, State


class Transition(NamedTuple):
    """`next_state` of a claimed entry; whether an attempt is spent; whether its batch and intent are frozen.

    An entry that spends its last attempt becomes dead instead of pending.
    """

    next_state: State
    spends_attempt: bool
    freezes: bool = False


TRANSITIONS: dict[OutcomeKind, Transition] = {
    OutcomeKind.DELIVERED: Transition(State.DELIVERED, spends_attempt=True),
    OutcomeKind.DUPLICATE: Transition(State.DELIVERED, spends_attempt=True),
    OutcomeKind.RETRY: Transition(State.PENDING, spends_attempt=True),
    OutcomeKind.UNSURE: Transition(State.PENDING, spends_attempt=True, freezes=True),
    OutcomeKind.REJECTED: Transition(State.DEAD, spends_attempt=True),
    OutcomeKind.RELEASED: Transition(State.PENDING, spends_attempt=False),
}

CRASHES_UNTIL_DEAD = 5
"""A lease that expires this often on one entry alone makes it dead with reason `crash_loop`."""


def after_attempt(kind: OutcomeKind, attempts_spent: int, max_attempts: int) -> State:
    """The state after an outcome, `attempts_spent` counting this one."""
    transition = TRANSITIONS[kind]
    if transition.next_state is State.PENDING and transition.spends_attempt and attempts_spent >= max_attempts:
        return State.DEAD
    return transition.next_state
