"""What a leader sets up once: colours, displays, links to the live board."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import let_in
from tests.browser.driver import Device, Page
from tests.browser.evening import Evening
from tests.scenario.processes import until

CUBS = "Oakwood Cubs – 1st Ashmere-on-the-Wold"


@pytest.fixture
def display(evening: Evening) -> str:
    """A display that Robin has let in; its token."""
    return evening.connected()


@pytest.fixture
def set_up(display: str, leader: Page) -> Page:
    leader.link("Set up").click()
    leader.role("heading", "Displays").wait()
    return leader


def test_a_patrol_gets_a_colour(set_up: Page) -> None:
    set_up.role("combobox", "Wolves").choose("blue")
    set_up.sees("Colours saved.")
    set_up.link("Scores").click()
    set_up.css(".card.edge-blue").containing("Wolves").wait()


def test_a_display_is_let_in_with_its_code(phone: Device, evening: Evening) -> None:
    display = evening.display()
    page = phone.page("/device")
    page.label("Code on the display").fill(display.granted["user_code"])
    page.button("Continue").click()
    page.button("Yes, that is my display").click()
    let_in(page)
    page.css("label.choice").containing("Wold Scouts").click()
    page.button("Connect the display").click()
    page.role("heading", "The display is connected").wait()
    status, answer = evening.answered(display)
    assert status == 200, answer
    assert evening.shows(answer["access_token"]) == ["Eagles", "Lions", "Wolves"]


def test_a_display_is_renamed(set_up: Page, evening: Evening) -> None:
    set_up.label("Name").fill("Stage")
    set_up.button("Save the name of Hall").click()
    set_up.sees("Name saved.")
    set_up.reload()
    set_up.button("Take away Stage").wait()


def test_a_display_moves_to_another_section(set_up: Page, display: str, evening: Evening) -> None:
    assert evening.shows(display) == ["Eagles", "Lions", "Wolves"]
    set_up.role("combobox", "Section that Hall shows").choose(CUBS)
    set_up.sees("Section changed.")
    until(lambda: evening.shows(display)[0] == "Badger Six", "the display shows the other section")


def test_a_display_is_taken_away_after_a_question(set_up: Page, display: str, evening: Evening) -> None:
    set_up.button("Take away Hall").click()
    set_up.button("Cancel").click()
    assert evening.shows(display)
    set_up.button("Take away Hall").click()
    set_up.button("Take away").click()
    set_up.sees("Hall was taken away.")
    set_up.sees("No display yet.")
    until(lambda: evening.shows(display) == ["401"], "the display is shut out")


def test_a_link_to_the_live_board_is_made_and_stopped(set_up: Page, open_a: Callable[..., Device]) -> None:
    set_up.button("Make a link").click()
    until(lambda: set_up.evaluate("(document.querySelector('img.code')?.naturalWidth ?? 0) > 0"), "its QR code is seen")
    set_up.sees("/board/")
    set_up.reload()
    link = set_up.css("a.long").text()
    screen = open_a()
    screen.failures_expected = True
    board = screen.page("/board/" + link.rpartition("/")[2])
    board.role("heading", "Eagles").wait()
    set_up.button("Stop").click()
    set_up.button("Stop the link").click()
    set_up.button("Stop").wait_gone()
    board.sees("This link no longer works.")
