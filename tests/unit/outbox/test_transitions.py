"""The one table of outcomes."""

from __future__ import annotations

import pytest

from carrick.entry import OutcomeKind, State
from carrick.outbox.transitions import TRANSITIONS, after_attempt


def test_every_outcome_has_its_transition() -> None:
    assert set(TRANSITIONS) == set(OutcomeKind)


@pytest.mark.parametrize(
    ("kind", "spent", "state"),
    [
        (OutcomeKind.DELIVERED, 10, State.DELIVERED),
        (OutcomeKind.DUPLICATE, 1, State.DELIVERED),
        (OutcomeKind.RETRY, 9, State.PENDING),
        (OutcomeKind.RETRY, 10, State.DEAD),
        (OutcomeKind.UNSURE, 9, State.PENDING),
        (OutcomeKind.UNSURE, 10, State.DEAD),
        (OutcomeKind.REJECTED, 1, State.DEAD),
        (OutcomeKind.RELEASED, 10, State.PENDING),
    ],
)
def test_the_state_after_an_attempt(kind: OutcomeKind, spent: int, state: State) -> None:
    assert after_attempt(kind, spent, max_attempts=10) is state


def test_only_released_spends_nothing() -> None:
    assert [kind for kind, transition in TRANSITIONS.items() if not transition.spends_attempt] == [OutcomeKind.RELEASED]
