"""Codes that people type."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrick_scoreboard.user_codes import ALPHABET, new_user_code, read_user_code, shown

CODES = st.text(ALPHABET, min_size=8, max_size=8)


def test_a_code_is_eight_of_twenty_letters_and_every_letter_comes() -> None:
    choice = random.Random(7).choice
    made = "".join(new_user_code(choice) for _ in range(201))
    assert len(ALPHABET) == 20
    assert len(made) == 8 * 201
    assert set(made) == set(ALPHABET)


@given(CODES, st.lists(st.integers(0, 8), max_size=6), st.sampled_from([" ", "-", "\u2013", "\u2011", "\u00a0", "_"]))
def test_case_spaces_and_dashes_do_not_matter(code: str, places: list[int], gap: str) -> None:
    typed = code.lower()
    for place in places:
        typed = typed[:place] + gap + typed[place:]
    assert read_user_code(typed) == code
    assert read_user_code(shown(code)) == code


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "BCDF",
        "BCDFGHJKL",
        "BCDFGHJA",
        "BCDFGHJ0",
        "BCDF/GHJK",
        "BCDFGHJ\x00",
        "ßCDFGHJK",
        "BCDFGHJ\u017f",
        "B" * 10_000,
    ],
)
def test_anything_else_is_no_code(typed: str) -> None:
    assert read_user_code(typed) is None


@given(st.text())
def test_whatever_is_typed_is_a_code_or_nothing(typed: str) -> None:
    found = read_user_code(typed)
    assert found is None or (len(found) == 8 and set(found) <= set(ALPHABET))
