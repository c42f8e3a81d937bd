"""The live board shows the scores, hears of changes, and keeps the last ones when the server is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.driver import DESKTOP, Device, Page
from tests.browser.evening import PATROLS, Evening
from tests.osm import LIONS, SCOUTS
from tests.scenario.processes import until


@pytest.fixture
def screen(open_a: Callable[..., Device]) -> Device:
    return open_a(viewport=DESKTOP, hasTouch=False)


@pytest.fixture
def link(evening: Evening) -> str:
    return evening.board()


@pytest.fixture
def board(screen: Device, link: str) -> Page:
    page = screen.page(link)
    page.role("heading", "Eagles").wait()
    return page


def bar(page: Page, name: str) -> str:
    """Colour and length of a patrol's bar."""
    return str(
        page.evaluate(
            "[...document.querySelectorAll('.patrol')].filter(one => one.innerText.includes('" + name + "'))"
            ".map(one => one.querySelector('.bar')).map(one => one.className + ' ' + one.style.transform)[0]"
        )
    )


def test_the_board_shows_bars_in_the_colours_of_the_patrols(board: Page, evening: Evening) -> None:
    evening.colours({"Eagles": "red", "Lions": "yellow"})
    board.css(".bar.fill-red").wait()
    assert bar(board, "Eagles") == "bar fill-red scaleX(1)"
    assert bar(board, "Lions") == "bar fill-yellow scaleX(0.8)"
    board.sees("Updated just now")
    board.role("heading", "Wold Scouts").wait()


def test_points_on_the_way_count_and_have_a_red_dot(board: Page, evening: Evening) -> None:
    evening.hold("slow", endpoint="points")
    evening.on_another_phone(lambda phone: phone.give({LIONS: 12}, mode="background"))
    board.css(".figure").containing("92").wait()
    board.role("img", "some points are still on the way").wait()
    evening.release()
    board.role("img", "some points are still on the way").wait_gone()
    board.css(".figure").containing("92").wait()


def test_points_given_on_a_phone_are_on_the_board_at_once(board: Page, leader: Page) -> None:
    leader.button("Eagles +5").click()
    leader.button("Send points").click()
    board.css(".figure").containing("105").wait()  # without news it would ask in five minutes


def test_the_last_scores_stay_when_the_server_is_away(board: Page, screen: Device, evening: Evening) -> None:
    screen.failures_expected = True
    evening.cut()
    board.sees("No connection. Trying again")
    board.css(".figure").containing("100").wait()
    evening.join()
    board.css(".away").wait_gone()


def test_what_was_missed_while_the_server_was_away_is_read(board: Page, screen: Device, evening: Evening) -> None:
    screen.failures_expected = True
    evening.hold("slow", endpoint="points")
    evening.on_another_phone(lambda phone: phone.give({LIONS: 12}, mode="background"))
    board.role("img", "some points are still on the way").wait()
    evening.cut()
    board.sees("No connection. Trying again")
    evening.release()
    until(lambda: evening.score("Lions") == 92, "OSM takes the points")
    evening.join()
    board.role("img", "some points are still on the way").wait_gone()


def test_scores_that_osm_could_not_renew_say_so(board: Page, link: str, screen: Device) -> None:
    told = board.evaluate(f"fetch('{link.replace('/board/', '/api/board/')}').then(answer => answer.json())")
    screen.answer_with("GET", link.replace("/board/", "/api/board/"), 200, {**told, "stale": True})
    board.evaluate("dispatchEvent(new Event('online'))")  # it asks again now, and not in five minutes
    board.sees("Online Scout Manager cannot be reached. Scores from")
    board.css(".figure").containing("100").wait()


def test_a_link_that_was_stopped_shows_no_scores_any_more(
    board: Page, link: str, screen: Device, evening: Evening
) -> None:
    screen.failures_expected = True
    path = f"/api/admin/sections/{SCOUTS}/boards/{link.rpartition('/')[2]}"
    evening.on_another_phone(lambda phone: phone.ask("DELETE", path))
    board.sees("This link no longer works.")
    assert board.css(".patrol").count() == 0


def test_a_dozen_patrols_fit_a_screen_that_nobody_scrolls(open_a: Callable[..., Device], link: str) -> None:
    patrols = [
        {"id": str(number), "name": f"Patrol {number}", "score": number, "pendingDelta": 0, "hasPending": False}
        for number in range(4 * len(PATROLS))
    ]
    moment = "2026-03-02T18:30:00Z"
    screen = open_a(viewport={"width": 1920, "height": 1080})
    told = {"patrols": patrols, "cached_at": moment, "cache_expires_at": moment, "stale": False}
    screen.answer_with("GET", link.replace("/board/", "/api/board/"), 200, told)
    page = screen.page(link)
    page.role("heading", "Patrol 11").wait()
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
