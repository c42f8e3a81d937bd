"""The letters of the matrix."""

from __future__ import annotations

import string

import pytest

from carrick_device.displays.font import GLYPHS, HEIGHT, cut, points_of, spelled, width_of, wrapped


@pytest.mark.parametrize("sign", GLYPHS)
def test_a_letter_has_seven_rows_of_one_width_no_more_than_five(sign: str) -> None:
    rows = GLYPHS[sign].split(" ")
    assert len(rows) == HEIGHT
    assert len({len(row) for row in rows}) == 1
    assert len(rows[0]) <= 5
    assert set("".join(rows)) <= {"#", "."}


def test_all_capitals_and_digits_are_there_and_differ_but_for_o_and_zero() -> None:
    needed = string.ascii_uppercase + string.digits
    assert set(needed) <= set(GLYPHS)
    assert len({GLYPHS[sign] for sign in needed}) == len(needed) - 1


def test_names_are_spelled_without_accents_and_curly_signs() -> None:
    assert spelled("Llŷn Otters\u2019 \u2013 Straße") == "LLYN OTTERS' - STRASSE"


def test_a_letter_that_is_not_there_is_a_box() -> None:
    assert width_of("狐") == 4
    assert len(points_of("狐")) == 18


def test_a_score_of_six_digits_with_its_sign_leaves_room_for_a_name() -> None:
    assert width_of("-999999") <= 34


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [("OWLS", 20, "OWLS"), ("OWLS", 19, "OWL."), ("RED FOXES", 20, "RED."), ("OWLS", 3, ""), ("", 10, "")],
)
def test_a_name_is_cut_to_its_room_with_a_stop(name: str, width: int, shown: str) -> None:
    assert cut(name, width) == shown
    assert width_of(cut(name, width)) <= width


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("BETWEEN TERMS", ["BETWEEN", "TERMS"]),
        ("CANNOT REACH SCORES.EXAMPLE.ORG.", ["CANNOT REACH", "SCORES.", "EXAMPLE.ORG."]),
        ("A" * 30, ["A" * 13, "A" * 13, "A" * 4]),
        ("", []),
    ],
)
def test_text_is_broken_between_words_then_after_signs_then_anywhere(text: str, lines: list[str]) -> None:
    assert wrapped(text, 64) == lines
