"""A browser and a simulated OSM for all tests of a run, a scoreboard for each, and a leader who is signed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.driver import Bridge, Device, Page, open_device
from tests.browser.evening import Evening, Town
from tests.scenario.processes import until

SCOUTS = "Wold Scouts – 1st Ashmere-on-the-Wold"


@pytest.fixture(scope="session")
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.close()


@pytest.fixture(scope="session")
def town() -> Iterator[Town]:
    town = Town()
    yield town
    town.close()


@pytest.fixture
def evening(town: Town, tmp_path: Path) -> Iterator[Evening]:
    evening = Evening(town, tmp_path)
    evening.begin()
    yield evening
    evening.close()


@pytest.fixture
def open_a(bridge: Bridge, evening: Evening) -> Iterator[Callable[..., Device]]:
    """Opens devices. When the test is over, none of their pages may have complained."""
    devices: list[Device] = []

    def open_one(**options: Any) -> Device:
        devices.append(open_device(bridge, evening.url, **options))
        return devices[-1]

    yield open_one
    problems = [problem for device in devices for problem in device.problems()]
    for device in devices:
        device.close()
    assert problems == []


@pytest.fixture
def phone(open_a: Callable[..., Device]) -> Device:
    return open_a()


@pytest.fixture
def leader(phone: Device) -> Page:
    """Robin's phone after signing in, with the service worker in charge."""
    return signed_in(phone)


def signed_in(device: Device, person: str = "Robin Merriweather") -> Page:
    """A tab in which a leader has just signed in, through OSM's own pages."""
    page = device.page("/admin/login")
    let_in(page, person)
    page.role("combobox", "Section").choose(SCOUTS)
    page.role("heading", "Eagles").wait()
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    until(lambda: page.evaluate("navigator.serviceWorker.controller !== null"), "the service worker is in charge")
    return page


def let_in(page: Page, person: str = "Robin Merriweather") -> None:
    """At OSM: say who you are, and allow it."""
    page.css("button.person").containing(person).click()
    page.button("Allow").click()
