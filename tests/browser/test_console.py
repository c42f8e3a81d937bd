"""The console in a real browser, against a real forwarder and a real scoreboard."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrick import wiring
from carrick.console import broadcast
from carrick.entry import Line, NewEntry, State
from carrick.outbox.store import Store
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.wiring import opened_tables
from tests.browser.driver import DESKTOP, PHONE, Bridge, Device, Page, open_device
from tests.browser.running import Edge, Running, forwarder, running
from tests.scenario.processes import until
from tests.service import Service, service

TOKEN: dict[str, Any] = {"INTERNAL_ADMIN_ENABLED": "true", "ADMIN_TOKEN": "secret"}
WAYS: dict[str, dict[str, Any]] = {
    "phone-dark": {"viewport": PHONE, "colorScheme": "dark"},
    "desktop-light": {"viewport": DESKTOP, "colorScheme": "light", "hasTouch": False},
}


@pytest.fixture(autouse=True)
def lively(monkeypatch: pytest.MonkeyPatch) -> None:
    """News come ten times as often as elsewhere: these tests wait for them."""
    monkeypatch.setattr(broadcast, "EVERY_SECONDS", 0.2)
    monkeypatch.setattr(broadcast, "REST_PER_LOOK", 1)


@pytest.fixture
def edge(sqlite_path: Path) -> Iterator[Edge]:
    with running(forwarder(sqlite_path)) as found:
        yield found.opened


@pytest.fixture
def store(sqlite_path: Path, edge: Edge) -> Iterator[Store]:
    """The forwarder's database, as another process sees it."""
    with closing(wiring.open_store(f"sqlite:///{sqlite_path}")) as opened:
        yield opened


@pytest.fixture
def hall_url(sqlite_path: Path) -> str:
    return f"sqlite:///{sqlite_path}"


@pytest.fixture
def hall(hall_url: str) -> Iterator[Running[Service]]:
    with running(service(hall_url, **TOKEN)) as found:
        yield found


@pytest.fixture
def browse(bridge: Bridge) -> Iterator[Callable[..., Device]]:
    """Opens a browser at an address. When the test is over, none of its pages may have complained."""
    devices: list[Device] = []

    def open_one(url: str, **options: Any) -> Device:
        devices.append(open_device(bridge, url, **options))
        return devices[-1]

    yield open_one
    problems = [problem for device in devices for problem in device.problems()]
    for device in devices:
        device.close()
    assert problems == []


def sign_in(device: Device, place: str = "") -> Page:
    page = device.page(f"/console/{place}")
    page.label("Your name").fill("Robin")
    page.label("Admin token").fill("secret")
    page.press("Enter")
    page.sees("Live ·")
    return page


def put(store: Store, count: int, *, bad: bool = False, tenant: str = "mill", **fields: Any) -> None:
    payload = b'{"centimetres": 41, "bad": true}' if bad else b'{"centimetres": 41}'
    store.put_many(
        [
            NewEntry(channel="cloud", event_type="water.level", payload=payload, tenant_id=tenant, **fields)
            for _ in range(count)
        ]
    )


def dead(store: Store) -> tuple[Line, ...]:
    return store.entries("cloud", state=State.DEAD).lines


def bury(store: Store, page: Page, count: int = 1) -> tuple[Line, ...]:
    """Entries that the cloud refuses: dead when the page says so."""
    put(store, count, bad=True)
    page.css(".totals .bad").containing(f"Dead{count}").wait()
    return dead(store)


def test_a_dead_entry_is_seen_counted_and_sent_round_again(
    edge: Edge, store: Store, browse: Callable[..., Device], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "carrick.console")
    page = sign_in(browse(edge.url))
    (line,) = bury(store, page)
    page.link("1 dead").click()
    page.link(f"water.level …{str(line.id)[-6:]}").click()
    page.sees("the destination rejected it")
    page.sees("Attempt 1 met http_422")
    page.sees('"centimetres": 41')
    edge.strict = False
    page.button("Redrive…").click()
    page.sees("Redrive 1 dead entry?")
    assert store.standing(line.id).state is State.DEAD
    page.label("Spread over seconds").fill("0")
    page.button("Redrive").click()
    page.sees("1 entry of cloud will be tried again.")
    page.link("Overview").click()
    page.css(".totals > :not(.bad)").containing("Dead0").wait()
    assert [record.__dict__["actor"] for record in caplog.records] == ["Robin"]


def test_some_dead_entries_are_chosen_and_discarded_after_a_question(
    edge: Edge, store: Store, browse: Callable[..., Device]
) -> None:
    page = sign_in(browse(edge.url))
    first, *others = bury(store, page, 3)
    page.link("Entries").click()
    page.label(f"Choose water.level {str(first.id)[-6:]}").click()
    page.button("Discard 1…").click()
    page.sees("This cannot be taken back.")
    page.press("Escape")
    assert len(dead(store)) == 3
    page.button("Discard 1…").click()
    page.button("Discard").click()
    page.sees("1 entry of cloud removed.")
    assert [line.id for line in dead(store)] == [line.id for line in others]


def test_all_dead_entries_are_discarded_after_a_look_and_their_channels_name(
    edge: Edge, store: Store, browse: Callable[..., Device], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "carrick.console")
    page = sign_in(browse(edge.url))
    bury(store, page, 3)
    page.link("Entries").click()
    page.link("rejected 3").click()
    page.button("Discard all…").click()
    page.sees("Discard 3 dead entries for good?")
    page.css("dialog .causes").containing("3 rejected · http_422").wait()
    page.label("Type cloud to say that you mean all of them").fill("clout")
    page.button("Discard").click()
    page.sees("nothing was discarded")
    put(store, 1, bad=True)
    until(lambda: len(dead(store)) == 4, "one more is dead")
    page.label("Type cloud to say that you mean all of them").fill("cloud")
    page.button("Discard").click()
    page.sees("3 entries of cloud removed.")
    assert len(dead(store)) == 1  # the one that nobody was asked about
    assert [record.__dict__["detail"] for record in caplog.records] == [{"count": 3, "reason": "rejected"}]


def test_the_box_finds_a_key_a_group_a_tenant_and_an_id_in_every_state(
    edge: Edge, store: Store, browse: Callable[..., Device]
) -> None:
    page = sign_in(browse(edge.url))
    put(store, 1, tenant="barn", key="order-7", group_key="gauge-1")
    put(store, 1, tenant="barn", delay_seconds=600, group_key="gauge-1")
    (line,) = bury(store, page)
    found = {"order-7": ["Delivered"], "gauge-1": ["Waiting", "Delivered"], "mill": ["Dead"], str(line.id): ["Dead"]}
    for text, states in found.items():
        page.label("Find an entry by its id, key, group or tenant").fill(text)
        page.press("Enter")
        page.role("heading", f"“{text}”").wait()
        page.sees(f"{len(states)} entr")
        assert page.evaluate("[...document.querySelectorAll('.entry .tag')].map((tag) => tag.textContent)") == states
    page.link(f"water.level …{str(line.id)[-6:]}").click()
    page.sees("the destination rejected it")
    page.goto("/console/#/search?text=nobody")
    page.sees("No entry has that id, key, group or tenant.")


def test_a_gate_shows_its_countdown_and_is_opened(edge: Edge, store: Store, browse: Callable[..., Device]) -> None:
    store.close_gate("cloud", "tenant:mill", 900, "the mill is being moved")
    put(store, 2)
    page = sign_in(browse(edge.url))
    page.sees("the mill is being moved")
    page.sees("opens in 14 min")
    page.sees("2 held")
    page.button("Open the gate of tenant mill in cloud").click()
    page.button("Open gate").click()
    page.sees("The gate of tenant mill in cloud is open.")
    page.sees("None: nothing is held back.")
    page.css(".totals > div").containing("Waiting0").wait()


def test_a_gate_is_closed_with_a_reason(edge: Edge, store: Store, browse: Callable[..., Device]) -> None:
    page = sign_in(browse(edge.url))
    page.button("Close a gate…").click()
    page.button("Close gate").click()
    page.css("dialog input:invalid").wait()
    page.label("Reason").fill("the cloud is being mended")
    page.button("Close gate").click()
    page.sees("The gate of the whole channel in cloud is closed.")
    assert [(gate.scope, gate.closed_until, gate.reason) for gate in store.gates("cloud")] == [
        ("*", None, "the cloud is being mended")
    ]


def test_a_wrong_token_is_told_and_the_right_one_stays_over_a_reload(edge: Edge, browse: Callable[..., Device]) -> None:
    device = browse(edge.url)
    device.failures_expected = True
    page = device.page("/console/")
    page.label("Your name").fill("Robin")
    page.label("Admin token").fill("guess")
    page.button("Sign in").click()
    page.sees("This is not the admin token.")
    page.label("Admin token").fill("secret")
    page.button("Sign in").click()
    page.sees("Live · gateway-1")
    page.reload()
    page.sees("Live · gateway-1")
    assert page.evaluate("document.cookie") == ""
    page.button("Sign out").click()
    page.label("Admin token").wait()
    page.reload()
    page.label("Admin token").wait()


def test_a_service_that_stops_is_told(sqlite_path: Path, browse: Callable[..., Device]) -> None:
    with running(forwarder(sqlite_path)) as found:
        device = browse(found.opened.url)
        device.failures_expected = True
        page = sign_in(device)
    page.sees("No connection. Trying again…")


def test_an_osm_block_is_cleared_with_a_reason_that_stays_in_the_audit(
    hall: Running[Service], hall_url: str, browse: Callable[..., Device]
) -> None:
    with opened_tables(hall_url) as tables:
        Blocks(tables).note("too many calls; contact us")
        page = sign_in(browse(hall.opened.url), "#/osm")
        page.sees("OSM has blocked the application")
        page.sees("too many calls; contact us")
        page.button("Clear block…").click()
        page.button("Clear block").click()
        page.css("dialog input:invalid").wait()
        assert Blocks(tables).standing() is not None
        page.label("Reason").fill("The poller is stopped.")
        page.button("Clear block").click()
        page.sees("not blocked")
        assert Blocks(tables).standing() is None
        act = Audit(tables).latest("osm")[0]
        assert (act.actor, act.action, act.detail["reason"]) == (
            "console:Robin",
            "osm.unblock",
            "The poller is stopped.",
        )


def test_a_display_is_shut_out(hall: Running[Service], hall_url: str, browse: Callable[..., Device]) -> None:
    hall.ask(hall.opened.device_token())
    page = sign_in(browse(hall.opened.url), "#/devices")
    page.button("Shut out… Hall").click()
    page.button("Shut out").click()
    page.sees("Hall is shut out.")
    page.css(".tag").containing("shut out").wait()
    with opened_tables(hall_url) as tables:
        assert [act.actor for act in Audit(tables).latest() if act.action == "device.revoke"] == ["console:Robin"]


def look(page: Page, name: str, way: str) -> None:
    page.picture(f"console-{name}-{way}")
    assert page.axe() == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"


@pytest.mark.parametrize("way", WAYS)
def test_the_pages_of_a_forwarder(edge: Edge, store: Store, browse: Callable[..., Device], way: str) -> None:
    device = browse(edge.url, **WAYS[way])
    first = device.page("/console/")
    first.label("Admin token").wait()
    look(first, "sign-in", way)
    first.close()
    store.close_gate("cloud", "tenant:barn", 900, "http_429: the cloud asked for a pause")
    put(store, 40, tenant="barn")
    put(store, 25, tenant="yard", delay_seconds=600)
    page = sign_in(device)
    bury(store, page, 2)
    page.sees("40 held")
    look(page, "overview", way)
    page.link("Entries").click()
    page.css(".entry").containing("rejected").call("first")
    page.sees("http_422")
    look(page, "entries", way)
    page.button("Redrive all…").click()
    page.sees("Redrive 2 dead entries?")
    look(page, "redrive", way)
    page.press("Escape")
    page.button("Discard all…").click()
    page.sees("Discard 2 dead entries for good?")
    look(page, "discard", way)
    page.press("Escape")
    page.goto("/console/#/search?text=barn")
    page.sees("40 entries")
    look(page, "search", way)
    page.goto(f"/console/#/entry/{dead(store)[0].id}")
    page.sees('"centimetres": 41')
    look(page, "entry", way)


def test_the_pages_of_a_scoreboard(hall: Running[Service], hall_url: str, browse: Callable[..., Device]) -> None:
    way = "phone-dark"
    hall.ask(hall.opened.device_token())
    with opened_tables(hall_url) as tables:
        Blocks(tables).note("too many calls; contact us")
    page = sign_in(browse(hall.opened.url, **WAYS[way]), "#/osm")
    page.sees("OSM has blocked the application")
    look(page, "osm", way)
    page.link("Displays").click()
    page.button("Shut out… Hall").wait()
    look(page, "devices", way)
