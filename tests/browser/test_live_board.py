"""The live board shows the scores, hears of changes, and keeps the last ones when the server is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.driver import DESKTOP, Device, Page
from tests.browser.hall import Hall
from tests.browser.standin import StandIn
from tests.scenario.processes import until


@pytest.fixture
def screen(open_a: Callable[..., Device]) -> Device:
    return open_a(viewport=DESKTOP, hasTouch=False)


@pytest.fixture
def board(screen: Device, hall: Hall, server: StandIn) -> Page:
    hall.boards.append("hall-tv")
    page = screen.page("/board/hall-tv")
    page.role("heading", "Eagles").wait()
    until(lambda: server.watchers() == 1, "the board listens")
    return page


def bar(page: Page, name: str) -> str:
    """Colour and length of a patrol's bar."""
    return str(
        page.evaluate(
            "[...document.querySelectorAll('.patrol')].filter(one => one.innerText.includes('" + name + "'))"
            ".map(one => one.querySelector('.bar')).map(one => one.className + ' ' + one.style.transform)[0]"
        )
    )


def test_the_board_shows_bars_in_the_colours_of_the_patrols(board: Page) -> None:
    assert bar(board, "Eagles") == "bar fill-red scaleX(1)"
    assert bar(board, "Lions") == "bar fill-yellow scaleX(0.8)"
    board.sees("Updated just now")


def test_points_on_the_way_count_and_have_a_red_dot(board: Page, hall: Hall, server: StandIn) -> None:
    hall.wait("72700", 12)
    server.tell_boards()
    board.css(".figure").containing("92").wait()
    board.role("img", "some points are still on the way").wait()


def test_the_board_hears_of_a_change_at_once(board: Page, hall: Hall, server: StandIn) -> None:
    hall.apply("72699", 20)
    server.tell_boards()
    board.css(".figure").containing("120").wait()


def test_the_board_does_not_ask_before_the_scores_expire(board: Page, hall: Hall) -> None:
    board.call("waitForTimeout", 1500)
    assert len([call for call in hall.calls if call.path == "/api/board/hall-tv"]) == 1


def test_the_last_scores_stay_when_the_server_is_away(board: Page, screen: Device, hall: Hall, server: StandIn) -> None:
    screen.failures_expected = True
    hall.away = True
    server.tell_boards()
    board.sees("No connection. Trying again")
    board.css(".figure").containing("100").wait()
    hall.away = False
    server.tell_boards()
    board.css(".away").wait_gone()


def test_a_lost_connection_is_made_again_and_what_was_missed_is_read(board: Page, hall: Hall, server: StandIn) -> None:
    server.hang_up_on_boards()
    hall.apply("72699", 7)
    board.css(".figure").containing("107").wait()


def test_scores_that_osm_could_not_renew_say_so(board: Page, hall: Hall, server: StandIn) -> None:
    hall.stale = True
    server.tell_boards()
    board.sees("Online Scout Manager cannot be reached. Scores from just now.")


def test_a_link_that_was_stopped_shows_no_scores_any_more(
    board: Page, screen: Device, hall: Hall, server: StandIn
) -> None:
    screen.failures_expected = True
    hall.boards.clear()
    server.tell_boards()
    board.sees("This link no longer works.")
    assert board.css(".patrol").count() == 0


def test_a_dozen_patrols_fit_a_screen_that_nobody_scrolls(open_a: Callable[..., Device], hall: Hall) -> None:
    hall.names = {str(number): f"Patrol {number}" for number in range(12)}
    hall.scores = {str(number): number * 10 for number in range(12)}
    hall.boards.append("hall-tv")
    page = open_a(viewport={"width": 1920, "height": 1080}).page("/board/hall-tv")
    page.role("heading", "Patrol 11").wait()
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
