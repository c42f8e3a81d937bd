"""A browser for all tests of a run, a server for each, and a leader who is signed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.driver import Bridge, Device, Page, open_device
from tests.browser.hall import Hall
from tests.browser.standin import StandIn


@pytest.fixture(scope="session")
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.close()


@pytest.fixture
def server() -> Iterator[StandIn]:
    server = StandIn()
    yield server
    server.close()


@pytest.fixture
def hall(server: StandIn) -> Hall:
    return server.hall


@pytest.fixture
def open_a(bridge: Bridge, server: StandIn) -> Iterator[Callable[..., Device]]:
    """Opens devices. When the test is over, none of their pages may have complained."""
    devices: list[Device] = []

    def open_one(**options: Any) -> Device:
        devices.append(open_device(bridge, server.url, **options))
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


def signed_in(device: Device) -> Page:
    """A tab in which a leader has just signed in."""
    page = device.page("/admin/login?return=/admin/")
    page.role("heading", "Eagles").wait()
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    page.call("waitForFunction", "navigator.serviceWorker.controller !== null")
    return page
