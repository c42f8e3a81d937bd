"""Whatever happens between the tap and the server, points count once and nothing is lost."""

from __future__ import annotations

import pytest

from tests.browser.conftest import let_in, signed_in
from tests.browser.driver import Device, Page
from tests.browser.evening import Evening
from tests.osm import HAZEL, ROBIN, SCOUTS
from tests.scenario.processes import until

SAFE = "Your points are safe on this device"


@pytest.fixture(autouse=True)
def requests_fail_here(phone: Device) -> None:
    phone.failures_expected = True


def send_five(page: Page) -> None:
    page.button("Eagles +5").click()
    page.button("Send points").click()


def network_returns(page: Page) -> None:
    """What the browser says when it thinks that there is a network again."""
    page.evaluate("dispatchEvent(new Event('online'))")


def nothing_waits(page: Page) -> None:
    page.css(".pill.waiting").wait_gone()


WEEK_AND_A_DAY = 8 * 86_400
ONCE = [("Eagles", 105)]


def test_points_given_without_a_network_arrive_when_it_is_back(leader: Page, phone: Device, evening: Evening) -> None:
    phone.offline(True)
    evening.cut()
    send_five(leader)
    leader.sees(SAFE)
    leader.sees("+5 on the way")
    leader.css(".pill.waiting").containing("1 waiting").wait()
    evening.join()
    phone.offline(False)
    nothing_waits(leader)
    assert evening.writes() == ONCE


def test_an_answer_that_is_lost_does_not_count_the_points_twice(leader: Page, evening: Evening) -> None:
    evening.hold("slow", endpoint="points")
    send_five(leader)
    evening.reached("slow")
    evening.cut()
    leader.sees(SAFE)
    evening.release()
    until(lambda: evening.score("Eagles") == 105, "OSM takes the points")
    leader.reload()
    leader.css(".pill.waiting").containing("1 waiting").wait()
    evening.join()
    network_returns(leader)
    nothing_waits(leader)
    assert evening.writes() == ONCE


def test_a_server_killed_between_request_and_answer_counts_the_points_once(phone: Device, evening: Evening) -> None:
    with evening.process() as server:
        server.wait_ready()
        leader = signed_in(phone)
        evening.hold("slow", endpoint="points", point="after_apply")
        send_five(leader)
        evening.reached("slow")
        server.kill()
        leader.sees(SAFE)
        evening.release()
        server.start()
        server.wait_ready()
        leader.reload()
        evening.later(300)
        nothing_waits(leader)
        assert evening.score("Eagles") == 105
        assert evening.history() == [("Eagles", 5)]


def test_two_tabs_that_send_at_once_send_once(leader: Page, phone: Device, evening: Evening) -> None:
    other = phone.page("/admin/")
    other.role("heading", "Eagles").wait()
    leader.button("Eagles +5").click()
    other.sees("Eagles +5")
    soon = leader.evaluate("Date.now() + 200")
    submit = f"setTimeout(() => document.querySelector('.submit-bar')?.requestSubmit(), {soon} - Date.now())"
    at_once(submit, leader, other)
    until(lambda: evening.score("Eagles") == 105, "the points arrive")
    nothing_waits(leader)
    nothing_waits(other)
    assert evening.writes() == ONCE


def test_two_tabs_send_what_waits_one_at_a_time(leader: Page, phone: Device, evening: Evening) -> None:
    evening.cut()
    send_five(leader)
    leader.sees(SAFE)
    other = phone.page("/admin/#/waiting")
    leader.link("Waiting").click()
    other.button("Send now").wait()
    leader.button("Send now").wait()
    evening.join()
    at_once(
        "[...document.querySelectorAll('button')].find(one => one.innerText === 'Send now')?.click()", leader, other
    )
    nothing_waits(leader)
    nothing_waits(other)
    assert evening.writes() == ONCE
    assert evening.history() == [("Eagles", 5)]


def at_once(script: str, *pages: Page) -> None:
    """Run it in all of them together."""
    for number in [page.bridge.send(page.handle, "evaluate", script) for page in pages]:
        pages[0].bridge.receive(number)


def test_a_reload_while_the_points_are_sent_counts_them_once(leader: Page, evening: Evening) -> None:
    evening.hold("slow", endpoint="points")
    send_five(leader)
    evening.reached("slow")
    leader.reload()
    leader.css(".pill.waiting").containing("1 waiting").wait()
    evening.release()
    nothing_waits(leader)
    assert evening.writes() == ONCE


def test_the_service_worker_sends_after_the_page_was_closed(leader: Page, phone: Device, evening: Evening) -> None:
    phone.offline(True)
    evening.cut()
    send_five(leader)
    leader.sees(SAFE)
    send_five(leader)
    leader.css(".pill.waiting").containing("2 waiting").wait()
    leader.close()
    evening.join()
    phone.offline(False)
    phone.sync("/admin/", "client-outbox")
    until(lambda: evening.score("Eagles") == 110, "the points arrive")
    assert evening.history() == [("Eagles", 5), ("Eagles", 5)]
    assert evening.writes()[-1] == ("Eagles", 110)


def test_an_expired_session_keeps_the_points_until_the_leader_is_back(leader: Page, evening: Evening) -> None:
    evening.later(WEEK_AND_A_DAY)
    send_five(leader)
    leader.sees("You are signed out. Your points are safe on this device")
    leader.link("Sign in").click()
    let_in(leader)
    until(lambda: evening.score("Eagles") == 105, "the points arrive")
    nothing_waits(leader)


def test_a_session_that_expires_in_mid_send_keeps_the_points(leader: Page, phone: Device, evening: Evening) -> None:
    phone.answer_with("POST", "/scores", 401, {"error": "not_signed_in", "message": "sign in first"})
    send_five(leader)
    leader.css(".pill.waiting").containing("1 waiting").wait()
    network_returns(leader)
    nothing_waits(leader)
    assert evening.writes() == ONCE


def loses_the_section(evening: Evening, level: str | None = None) -> None:
    """Robin may no longer write there, or may again; the scoreboard hears of it at the next sign-in."""
    evening.control("rights", user_id=ROBIN, section_id=SCOUTS, level=level)
    evening.on_another_phone()


def test_points_that_are_refused_stay_until_they_are_dismissed(leader: Page, evening: Evening) -> None:
    loses_the_section(evening)
    send_five(leader)
    leader.sees("Some points were refused.")
    leader.reload()
    leader.link("Waiting").click()
    leader.sees("Refused: 40104 is not one of your sections")
    leader.button("Discard Eagles +5").click()
    leader.button("Discard").click()
    leader.sees("Nothing is waiting.")
    assert evening.writes() == []


def test_refused_points_can_be_tried_again(leader: Page, evening: Evening) -> None:
    loses_the_section(evening)
    send_five(leader)
    leader.link("Waiting").click()
    leader.button("Try again: Eagles +5").wait()
    loses_the_section(evening, level="write")
    leader.button("Try again: Eagles +5").click()
    leader.sees("Points sent.")
    assert evening.writes() == ONCE


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(leader: Page, phone: Device, evening: Evening) -> None:
    slow_down = {"error": "rate_limited", "message": "Slow down."}
    phone.answer_with("POST", "/scores", 429, slow_down, {"Retry-After": "600"})
    send_five(leader)
    leader.sees("The server is busy.")
    leader.link("Waiting").click()
    leader.sees("It is sent again after")
    for _ in range(2):  # the button waits until the first attempt is over
        leader.button("Send now").click()
    network_returns(leader)
    leader.sees("The server is busy. Your points are safe on this device")
    leader.sees("It is sent again after")
    assert evening.writes() == []


def test_a_page_that_is_not_the_servers_does_not_count_as_an_answer(
    leader: Page, phone: Device, evening: Evening
) -> None:
    phone.answer_with("POST", "/scores", 200, {"hotspot": "please log in"})
    send_five(leader)
    leader.sees(SAFE)
    network_returns(leader)
    nothing_waits(leader)
    assert evening.writes() == ONCE


def test_points_of_one_leader_are_not_sent_in_the_name_of_another(leader: Page, evening: Evening) -> None:
    evening.cut()
    send_five(leader)
    leader.sees(SAFE)
    evening.later(WEEK_AND_A_DAY)
    evening.join()
    leader.link("Sign in").click()
    let_in(leader, "Hazel Fernsby")
    leader.link("Waiting").click()
    leader.sees("Entered by Robin Merriweather, who must sign in to send it.")
    for _ in range(2):  # the button waits until the first attempt is over
        leader.button("Send now").click()
    assert evening.writes() == []


def test_the_page_starts_without_a_network(leader: Page, phone: Device, evening: Evening) -> None:
    evening.cut()
    leader.close()
    page = phone.page("/admin/")
    page.role("heading", "Eagles").wait()
    page.sees("No signal")
    send_five(page)
    page.sees(SAFE)
    evening.join()
    network_returns(page)
    nothing_waits(page)
    assert evening.writes() == ONCE


def test_what_another_leader_sent_is_seen_on_return(leader: Page, evening: Evening) -> None:
    evening.give(("Eagles", 5), user_id=HAZEL)
    leader.evaluate("dispatchEvent(new Event('focus'))")
    leader.css(".score").containing("Eagles has 105").wait()


def test_a_device_that_cannot_keep_anything_says_so_and_starts_when_it_can(leader: Page, phone: Device) -> None:
    phone.begin_with("""
        if (location.pathname === "/admin/" && !sessionStorage.getItem("refused")) indexedDB.open = () => {
            sessionStorage.setItem("refused", "once");
            throw new DOMException("no room", "UnknownError");
        };
    """)
    page = phone.page("/admin/")
    page.sees("This device could not do something that this page needs (no room).")
    page.button("Reload").click()
    page.role("heading", "Eagles").wait()
    assert all("no room" in problem for problem in phone.problems())
