"""What is lit on the matrix."""

from __future__ import annotations

import pytest
from PIL import Image

from carrick_device.displays.drawing import GREY, HEIGHT, RED, WIDTH, pages_of, picture_of, score_text
from carrick_device.displays.qr import modules_of
from carrick_device.screen import COLOURS, WHITE, Board, Colour, Line, Notice, Screen, SignIn

LINK = "https://scores.example.org/d/BCDFGHJK"
SIGN_IN = SignIn("BCDF-GHJK", "https://scores.example.org/device", LINK)


def pictures(screen: Screen) -> list[Image.Image]:
    return [picture_of(draw) for draw in pages_of(screen)]


def board(*totals: int, name: str = "Owls", pending: bool = False, stale: bool = False) -> Board:
    return Board(tuple(Line(name, total, COLOURS["green"], pending) for total in totals), stale)


def places(image: Image.Image, colour: Colour) -> set[tuple[int, int]]:
    return {(x, y) for x in range(WIDTH) for y in range(HEIGHT) if image.getpixel((x, y)) == colour}


@pytest.mark.parametrize(("patrols", "pages"), [(0, 1), (1, 1), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (10, 4)])
def test_more_than_four_patrols_are_on_several_pages(patrols: int, pages: int) -> None:
    drawn = pictures(board(*range(patrols)))
    assert len(drawn) == pages
    assert all(image.size == (WIDTH, HEIGHT) for image in drawn)


def test_the_page_is_shown_by_the_bright_one_of_as_many_dots() -> None:
    bright = []
    for image in pictures(board(*range(10))):
        row = [image.getpixel((x, HEIGHT - 1)) for x in range(WIDTH)]
        dots = [colour for colour in row if colour != (0, 0, 0)]
        assert len(dots) == 4
        bright.append(dots.index(WHITE))
    assert bright == [0, 1, 2, 3]


def test_two_hundred_patrols_can_be_drawn() -> None:
    assert len(pictures(board(*range(200), stale=True))) == 67


def test_a_name_is_in_the_colour_of_its_patrol_and_the_score_in_white() -> None:
    (image,) = pictures(board(7))
    assert places(image, COLOURS["green"])
    assert max(x for x, _ in places(image, COLOURS["green"])) < min(x for x, _ in places(image, WHITE))


def test_pending_is_a_red_dot_beside_its_score_and_moves_nothing() -> None:
    (plain,), (pending,) = pictures(board(5, 7)), pictures(board(5, 7, pending=True))
    assert len(places(pending, RED)) == 2 * 4
    assert min(x for x, _ in places(pending, RED)) > max(x for x, _ in places(pending, WHITE))
    assert places(plain, WHITE) == places(pending, WHITE)
    assert not places(plain, RED)


def test_stale_is_a_grey_dot_in_the_corner_on_every_page() -> None:
    corner = {(62, 30), (63, 30), (62, 31), (63, 31)}
    assert all(places(image, GREY) == corner for image in pictures(board(*range(6), stale=True, pending=True)))
    assert not places(pictures(board(1))[0], GREY)


@pytest.mark.parametrize("total", [-999_999, 999_999, 10**9, -(10**9)])
def test_the_longest_scores_leave_room_for_some_of_the_name(total: int) -> None:
    (image,) = pictures(board(total, name="Woodpeckers of the Forest"))
    name, score = places(image, COLOURS["green"]), places(image, WHITE)
    assert max(x for x, _ in name) + 2 < min(x for x, _ in score)
    assert len({x for x, _ in name}) > 12


def test_more_than_six_digits_are_told_in_millions() -> None:
    assert [score_text(total) for total in (999_999, 1_000_000, -12_345_678)] == ["999999", "1M", "-12M"]


def test_signing_in_shows_the_link_as_a_code_of_dark_on_lit_lamps_then_the_address() -> None:
    scan, typed = pictures(SIGN_IN)
    modules = modules_of(LINK)
    assert len(modules) == 29
    for y, row in enumerate(modules, start=1):
        for x, dark in enumerate(row, start=1):
            assert scan.getpixel((x, y)) == ((0, 0, 0) if dark else WHITE)
    assert {scan.getpixel((x, 0)) for x in range(31)} == {scan.getpixel((0, y)) for y in range(31)} == {WHITE}
    assert places(typed, (255, 210, 0))


def test_a_link_too_long_for_the_lamps_leaves_the_address_and_the_code() -> None:
    uri = "https://scoreboard.first-little-hampton.example.org/device"
    drawn = pictures(SignIn("BCDF-GHJK", uri, f"{uri}?user_code=BCDF-GHJK", "Signed out."))
    assert len(drawn) >= 3
    assert not any(places(image, WHITE) for image in drawn)


def test_a_notice_has_its_title_and_then_its_text() -> None:
    title, text = pictures(Notice("Between terms", "The scores come back when the next term begins."))
    assert places(title, (255, 210, 0))
    assert places(text, (190, 190, 190))
