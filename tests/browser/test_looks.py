"""Every page, on a phone (light and dark) and on a desktop: axe finds nothing, and a picture is kept for people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.browser.conftest import signed_in
from tests.browser.driver import DESKTOP, PHONE, Device, Page
from tests.browser.hall import Hall

SIZES = {"phone": PHONE, "desktop": DESKTOP}


@pytest.fixture(params=["phone-light", "phone-dark", "desktop-light"])
def way(request: pytest.FixtureRequest) -> str:
    """The screen and what its owner prefers."""
    return str(request.param)


@pytest.fixture
def device(open_a: Callable[..., Device], way: str) -> Device:
    size, scheme = way.split("-")
    options: dict[str, Any] = {"viewport": SIZES[size], "colorScheme": scheme, "hasTouch": size == "phone"}
    return open_a(**options)


@pytest.fixture
def look(way: str) -> Callable[[Page, str], None]:
    """Checks a page and keeps its picture."""

    def check(page: Page, name: str) -> None:
        page.picture(f"{name}-{way}")
        assert page.axe() == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"

    return check


def test_the_pages_of_a_leader(device: Device, hall: Hall, look: Callable[[Page, str], None]) -> None:
    busy_evening(hall)
    first = device.page("/admin/")
    first.link("Sign in with Online Scout Manager").wait()
    look(first, "sign-in")
    first.close()
    page = signed_in(device)
    page.button("Eagles +5").click()
    page.button("Wolves −1").click()
    page.sees("Wolves −1")
    look(page, "scores")
    page.link("History").click()
    page.css(".line").containing("undone").wait()
    look(page, "history")
    page.link("Waiting").click()
    page.sees("At the server")
    look(page, "waiting")
    page.link("Set up").click()
    page.button("Make a link").click()
    page.button("Take away Hall display").click()
    look(page, "question")
    page.button("Cancel").click()
    look(page, "set-up")


def test_the_pages_of_a_leader_without_a_network(device: Device, hall: Hall, look: Callable[[Page, str], None]) -> None:
    device.failures_expected = True
    page = signed_in(device)
    hall.refuse(422, "invalid", "This patrol has been closed in Online Scout Manager.")
    page.button("Lions +3").click()
    page.button("Send points").click()
    page.sees("Some points were refused.")
    hall.expire()
    page.button("Eagles +5").click()
    page.button("Send points").click()
    page.sees("You are signed out.")
    look(page, "signed-out")
    page.link("Waiting").click()
    page.sees("On this device")
    look(page, "unsent")


def test_the_live_board(device: Device, hall: Hall, look: Callable[[Page, str], None]) -> None:
    hall.boards.append("hall-tv")
    hall.wait("72700", 15)
    page = device.page("/board/hall-tv")
    page.role("heading", "Eagles").wait()
    look(page, "board")


def busy_evening(hall: Hall) -> None:
    """Something of everything to be seen."""
    hall.displays.append({"id": 7, "name": "Hall display", "sectionId": 40104})
    undone = hall.apply("72700", 3)
    undone["undoneBy"] = hall.apply("72700", -3)["id"]
    hall.apply("132322", 5)
    later = (datetime.now(UTC) + timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
    hall.wait("72700", 15, message="Online Scout Manager asked us to slow down.", retryAt=later)
    hall.wait("72699", 5, state="dead", reason="needs_review", expected=105, found=103)
