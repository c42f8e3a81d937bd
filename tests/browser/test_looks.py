"""Every page, on a phone (light and dark) and on a desktop: axe finds nothing, and a picture is kept for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import let_in, signed_in
from tests.browser.driver import DESKTOP, PHONE, Device, Page
from tests.browser.evening import Evening
from tests.osm import HAZEL, LIONS

SIZES = {"phone": PHONE, "desktop": DESKTOP}
Look = Callable[[Page, str], None]


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
def look(way: str) -> Look:
    """Checks a page and keeps its picture."""

    def check(page: Page, name: str) -> None:
        page.picture(f"{name}-{way}")
        assert page.axe() == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"

    return check


def test_the_pages_of_a_leader(device: Device, evening: Evening, look: Look) -> None:
    evening.connected()
    evening.give(("Wolves", 5), user_id=HAZEL)
    first = device.page("/admin/")
    first.link("Sign in with Online Scout Manager").wait()
    look(first, "sign-in")
    first.close()
    page = signed_in(device)
    send(page, "Lions +3")
    page.sees("Points sent.")
    undo(page)
    look(page, "history")
    waits_for_osm_and_for_the_leader(page, evening)
    look(page, "waiting")
    page.link("Scores").click()
    page.button("Eagles +5").click()
    page.button("Wolves −1").click()
    page.sees("Wolves −1")
    look(page, "scores")
    page.link("Set up").click()
    page.role("combobox", "Eagles").choose("red")
    page.button("Make a link").click()
    page.button("Take away Hall").click()
    look(page, "question")
    page.button("Cancel").click()
    look(page, "set-up")


def send(page: Page, *buttons: str) -> None:
    for button in (*buttons, "Send points"):
        page.button(button).click()


def undo(page: Page) -> None:
    page.link("History").click()
    page.button("Undo +3 for Lions").click()
    page.button("Undo").click()
    page.css(".line").containing("undone").wait()


def waits_for_osm_and_for_the_leader(page: Page, evening: Evening) -> None:
    """Points that need a person, and points that OSM puts off."""
    evening.fault("drop_before_apply", endpoint="points")
    page.link("Scores").click()
    send(page, "Eagles +5")
    page.css(".notice.calm").wait()
    evening.changed("Eagles", 103)
    evening.later(120)
    page.css(".pill.stuck").containing("1 needs you").wait()
    evening.fault("rate_limited", endpoint="patrols", retry_after=1200)
    send(page, "Lions +5")
    page.sees("OSM asks us to wait a while.")
    page.link("Waiting").click()
    page.sees("Will be tried again at")


def test_the_pages_of_a_leader_without_a_network(device: Device, evening: Evening, look: Look) -> None:
    device.failures_expected = True
    page = signed_in(device)
    device.answer_with("POST", "/scores", 422, {"error": "invalid", "message": "This patrol has been closed."})
    send(page, "Lions +3")
    page.sees("Some points were refused.")
    evening.later(8 * 86_400)
    send(page, "Eagles +5")
    page.sees("You are signed out.")
    look(page, "signed-out")
    page.link("Waiting").click()
    page.sees("On this device")
    look(page, "unsent")


def test_the_page_of_a_device_that_cannot_keep_anything(device: Device, evening: Evening, look: Look) -> None:
    signed_in(device).close()
    device.begin_with("""
        if (location.pathname === "/admin/") indexedDB.open = () => {
            throw new DOMException("the disk is full", "UnknownError");
        };
    """)
    page = device.page("/admin/")
    page.sees("This device could not do something that this page needs (the disk is full).")
    look(page, "no-storage")
    assert all("the disk is full" in problem for problem in device.problems())  # told, and so not left over


def test_the_live_board(device: Device, evening: Evening, look: Look) -> None:
    evening.colours({"Eagles": "red", "Lions": "yellow"})
    evening.hold("slow", endpoint="points")
    evening.on_another_phone(lambda phone: phone.give({LIONS: 15}, mode="background"))
    page = device.page(evening.board())
    page.role("img", "some points are still on the way").wait()
    look(page, "board")


def test_the_pages_that_connect_a_display(device: Device, evening: Evening, look: Look) -> None:
    page = device.page("/")
    look(page, "front")
    page.goto("/device")
    look(page, "display-code")
    page.label("Code on the display").fill(evening.display().granted["user_code"])
    page.button("Continue").click()
    page.button("Yes, that is my display").wait()
    look(page, "display-confirm")
    page.button("Yes, that is my display").click()
    let_in(page)
    page.role("heading", "What should it show?").wait()
    look(page, "display-section")
    page.css("label.choice").containing("Wold Scouts").click()
    page.button("Connect the display").click()
    page.role("heading", "The display is connected").wait()
    look(page, "display-done")


def test_the_page_that_asks_before_it_signs_out(device: Device, evening: Evening, look: Look) -> None:
    page = signed_in(device)
    page.goto("/admin/logout")
    look(page, "sign-out")
    page.button("Yes, sign out").click()
    page.role("heading", "You are signed out").wait()
    look(page, "sign-out-done")
