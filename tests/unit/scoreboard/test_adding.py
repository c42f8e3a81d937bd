"""How points become scores: who writes what, and what a read says about a write in doubt."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrick_scoreboard.adding import Change, Verdict, happened, steps, verdict, writes_of
from carrick_scoreboard.store.scores import Doubt

ROBIN, HAZEL = 1, 2


def change(number: int, points: int, user: int = ROBIN) -> Change:
    return Change(UUID(int=number), user, points)


def doubt(number: int, points: int, base: int, target: int, write: str = "w") -> Doubt:
    return Doubt(
        entry_id=UUID(int=number),
        write_id=write,
        patrol_id="1",
        points=points,
        base=base,
        target=target,
        found=None,
        age=60.0,
    )


def test_each_leader_has_one_write_in_the_order_in_which_they_came() -> None:
    made = steps([change(1, 5, HAZEL), change(2, 3, ROBIN), change(3, 1, HAZEL)], merge=False)
    assert [(step.user_id, step.points) for step in made] == [(HAZEL, 6), (ROBIN, 3)]


def test_merged_leaders_have_one_write_with_the_first_ones_credential() -> None:
    (step,) = steps([change(1, 5, HAZEL), change(2, 3, ROBIN)], merge=True)
    assert (step.user_id, step.points) == (HAZEL, 8)


@pytest.mark.parametrize("merge", [True, False])
def test_nothing_needs_no_write(merge: bool) -> None:
    assert steps([], merge=merge) == []


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=20), st.integers(-(10**6), 10**6))
def test_the_scores_of_a_step_run_from_what_was_there_to_what_is(points: list[int], base: int) -> None:
    (step,) = steps([change(number, one) for number, one in enumerate(points)], merge=True)
    applied = step.applied(base)
    assert applied[0].before == base
    assert applied[-1].after == base + step.points
    assert [one.after for one in applied[:-1]] == [one.before for one in applied[1:]]


@pytest.mark.parametrize(
    ("score", "said"), [(15, Verdict.HAPPENED), (10, Verdict.DID_NOT), (12, Verdict.UNCLEAR), (20, Verdict.UNCLEAR)]
)
def test_the_score_that_is_there_tells_whether_a_write_happened(score: int, said: Verdict) -> None:
    assert verdict(doubt(1, 5, 10, 15), score) is said


def test_a_write_that_happened_has_the_scores_of_each_of_its_entries() -> None:
    write = [doubt(1, 5, 10, 13), doubt(2, -2, 10, 13)]
    assert [(one.before, one.after) for one in happened(write)] == [(10, 15), (15, 13)]


def test_doubts_are_settled_write_by_write() -> None:
    doubts = [doubt(1, 5, 10, 15, "a"), doubt(2, 3, 15, 18, "b"), doubt(3, 1, 15, 19, "b")]
    assert [[one.entry_id.int for one in write] for write in writes_of(doubts)] == [[1], [2, 3]]
