"""What a leader sets up once: colours, displays, links to the live board."""

from __future__ import annotations

import pytest

from tests.browser.driver import Page
from tests.browser.hall import Hall


@pytest.fixture
def set_up(leader: Page, hall: Hall) -> Page:
    hall.displays.append({"id": 7, "name": "Hall display", "sectionId": 40104})
    leader.link("Set up").click()
    leader.role("heading", "Displays").wait()
    return leader


def test_a_patrol_gets_a_colour(set_up: Page, hall: Hall) -> None:
    set_up.role("combobox", "Wolves").choose("blue")
    set_up.sees("Colours saved.")
    assert hall.colours == {"72699": "red", "72700": "yellow", "132322": "blue"}
    set_up.link("Scores").click()
    set_up.css(".card.edge-blue").containing("Wolves").wait()


def test_a_display_is_renamed(set_up: Page, hall: Hall) -> None:
    set_up.label("Name").fill("Stage")
    set_up.button("Save the name of Hall display").click()
    set_up.sees("Name saved.")
    assert hall.displays[0]["name"] == "Stage"


def test_a_display_moves_to_another_section(set_up: Page, hall: Hall) -> None:
    set_up.role("combobox", "Section that Hall display shows").choose("Explorers – 1st Carrick")
    set_up.sees("Section changed.")
    assert hall.displays[0]["sectionId"] == "40105"


def test_a_display_is_taken_away_after_a_question(set_up: Page, hall: Hall) -> None:
    set_up.button("Take away Hall display").click()
    set_up.button("Cancel").click()
    assert len(hall.displays) == 1
    set_up.button("Take away Hall display").click()
    set_up.button("Take away").click()
    set_up.sees("Hall display was taken away.")
    assert hall.displays == []


def test_a_link_to_the_live_board_is_made_and_stopped(set_up: Page, hall: Hall) -> None:
    set_up.button("Make a link").click()
    set_up.sees("/board/board-1")
    set_up.reload()
    set_up.sees("/board/board-1")
    set_up.button("Stop").click()
    set_up.button("Stop the link").click()
    set_up.button("Stop").wait_gone()
    assert hall.boards == []
