"""Whatever happens between the tap and the server, points count once and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import signed_in
from tests.browser.driver import Device, Page
from tests.browser.hall import HAZEL, Hall
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


def test_points_given_without_a_network_arrive_when_it_is_back(leader: Page, phone: Device, hall: Hall) -> None:
    phone.offline(True)
    hall.away = True
    send_five(leader)
    leader.sees(SAFE)
    leader.sees("+5 on the way")
    leader.css(".pill.waiting").containing("1 waiting").wait()
    hall.away = False
    phone.offline(False)
    until(lambda: hall.score("Eagles") == 105, "the points arrive")
    nothing_waits(leader)
    assert set(hall.modes()) == {"background"}
    assert hall.score("Eagles") == 105


def test_an_answer_that_is_lost_does_not_count_the_points_twice(leader: Page, hall: Hall) -> None:
    hall.drop_answers = True
    send_five(leader)
    leader.sees(SAFE)
    assert hall.score("Eagles") == 105
    hall.away = True
    leader.reload()
    leader.css(".pill.waiting").containing("1 waiting").wait()
    hall.away = hall.drop_answers = False
    network_returns(leader)
    nothing_waits(leader)
    assert len(set(hall.keys())) == 1
    assert len(hall.keys()) >= 2
    assert hall.score("Eagles") == 105


def test_two_tabs_that_send_at_once_count_once(leader: Page, phone: Device, hall: Hall) -> None:
    other = phone.page("/admin/")
    leader.button("Eagles +5").click()
    other.sees("Eagles +5")
    soon = leader.evaluate("Date.now() + 200")
    submit = f"setTimeout(() => document.querySelector('.submit-bar')?.requestSubmit(), {soon} - Date.now())"
    both = [page.bridge.send(page.handle, "evaluate", submit) for page in (leader, other)]
    for number in both:
        leader.bridge.receive(number)
    until(lambda: hall.score("Eagles") == 105, "the points arrive")
    nothing_waits(leader)
    nothing_waits(other)
    assert hall.score("Eagles") == 105


def test_two_tabs_send_what_waits_one_at_a_time(leader: Page, phone: Device, hall: Hall) -> None:
    hall.away = True
    send_five(leader)
    leader.sees(SAFE)
    other = phone.page("/admin/#/waiting")
    leader.link("Waiting").click()
    other.button("Send now").wait()
    leader.button("Send now").wait()
    hall.away = False
    click = "[...document.querySelectorAll('button')].find(one => one.innerText === 'Send now')?.click()"
    both = [page.bridge.send(page.handle, "evaluate", click) for page in (leader, other)]
    for number in both:
        leader.bridge.receive(number)
    nothing_waits(leader)
    nothing_waits(other)
    assert len(hall.keys()) == 1
    assert hall.score("Eagles") == 105


def test_a_reload_while_the_points_are_sent_counts_them_once(leader: Page, hall: Hall) -> None:
    hold = hall.hold("POST", "/scores")
    send_five(leader)
    until(lambda: len(hall.submissions()) == 1, "the request is under way")
    leader.reload()
    leader.css(".pill.waiting").containing("1 waiting").wait()
    hold.set()
    nothing_waits(leader)
    assert len(set(hall.keys())) == 1
    assert hall.score("Eagles") == 105


def test_the_service_worker_sends_after_the_page_was_closed(leader: Page, phone: Device, hall: Hall) -> None:
    hall.away = True
    send_five(leader)
    leader.sees(SAFE)
    leader.close()
    hall.away = False
    phone.sync("/admin/", "client-outbox")
    until(lambda: hall.score("Eagles") == 105, "the points arrive")
    assert hall.modes() == ["background"]


def test_an_expired_session_keeps_the_points_until_the_leader_is_back(leader: Page, hall: Hall) -> None:
    hall.expire()
    send_five(leader)
    leader.sees("You are signed out. Your points are safe on this device")
    leader.link("Sign in").click()
    until(lambda: hall.score("Eagles") == 105, "the points arrive")
    nothing_waits(leader)


def test_a_session_that_expires_in_mid_send_keeps_the_points(leader: Page, hall: Hall) -> None:
    hall.refuse(401, "unauthorized", "Please sign in.")
    send_five(leader)
    leader.sees("1 waiting")
    network_returns(leader)
    until(lambda: hall.score("Eagles") == 105, "the points arrive")
    assert len(set(hall.keys())) == 1


def test_points_that_are_refused_stay_until_they_are_dismissed(leader: Page, hall: Hall) -> None:
    hall.refuse(422, "invalid", "The patrol has been closed.")
    send_five(leader)
    leader.sees("Some points were refused.")
    leader.reload()
    leader.link("Waiting").click()
    leader.sees("Refused: The patrol has been closed.")
    leader.button("Discard Eagles +5").click()
    leader.button("Discard").click()
    leader.sees("Nothing is waiting.")
    assert hall.score("Eagles") == 100


def test_refused_points_can_be_tried_again_with_the_same_key(leader: Page, hall: Hall) -> None:
    hall.refuse(403, "forbidden", "You may not write to this section.")
    send_five(leader)
    leader.link("Waiting").click()
    leader.button("Try again: Eagles +5").click()
    leader.sees("Points sent.")
    assert hall.keys() == [hall.keys()[0]] * 2
    assert hall.score("Eagles") == 105


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(leader: Page, hall: Hall) -> None:
    hall.refuse(429, "rate_limited", "Slow down.", retry_after=600)
    send_five(leader)
    leader.sees("The server is busy.")
    leader.link("Waiting").click()
    leader.sees("It is sent again after")
    for _ in range(2):  # the button waits until the first attempt is over
        leader.button("Send now").click()
    network_returns(leader)
    leader.sees("The server is busy. Your points are safe on this device")
    leader.sees("It is sent again after")
    assert len(hall.submissions()) == 1


def test_a_page_that_is_not_the_servers_does_not_count_as_an_answer(leader: Page, hall: Hall) -> None:
    hall.refusals.append((200, {"hotspot": "please log in"}, {}))
    send_five(leader)
    leader.sees(SAFE)
    network_returns(leader)
    nothing_waits(leader)
    assert hall.score("Eagles") == 105


def test_points_of_one_leader_are_not_sent_in_the_name_of_another(leader: Page, hall: Hall) -> None:
    hall.away = True
    send_five(leader)
    leader.sees(SAFE)
    hall.away = False
    hall.user = HAZEL
    leader.link("Waiting").click()
    leader.reload()
    leader.sees("Entered by Robin Ash, who must sign in to send it.")
    for _ in range(2):  # the button waits until the first attempt is over
        leader.button("Send now").click()
    assert hall.submissions() == []


def test_the_page_starts_without_a_network(leader: Page, phone: Device, hall: Hall) -> None:
    hall.away = True
    leader.close()
    page = phone.page("/admin/")
    page.role("heading", "Eagles").wait()
    page.sees("No signal")
    send_five(page)
    page.sees(SAFE)
    hall.away = False
    network_returns(page)
    until(lambda: hall.score("Eagles") == 105, "the points arrive")


def test_what_another_leader_sent_is_seen_on_return(leader: Page, open_a: Callable[..., Device], hall: Hall) -> None:
    send_five(signed_in(open_a()))
    until(lambda: hall.score("Eagles") == 105, "the points arrive")
    leader.evaluate("dispatchEvent(new Event('focus'))")
    leader.css(".score").containing("Eagles has 105").wait()
