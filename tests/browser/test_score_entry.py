"""A leader gives points: signing in, choosing, sending, undoing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.browser.conftest import SCOUTS, let_in, signed_in
from tests.browser.driver import Device, Page
from tests.browser.evening import Evening
from tests.osm import HAZEL, LIONS, ROBIN
from tests.scenario.processes import until

PULL = """
const touch = (kind, ...points) => dispatchEvent(new TouchEvent(kind, { touches: points.map((clientY) =>
  new Touch({ identifier: 1, target: document.body, clientX: 50, clientY })) }));
touch("touchstart", 100);
touch("touchmove", 300);
touch("touchend");
"""
"""A finger that draws the page down by 200 pixels."""
CUBS = "Oakwood Cubs – 1st Ashmere-on-the-Wold"


def give(page: Page, *buttons: str) -> None:
    """Choose points and send them."""
    for button in buttons:
        page.button(button).click()
    page.button("Send points").click()


def test_a_leader_signs_in_and_gives_points(phone: Device, evening: Evening) -> None:
    leader = phone.page("/admin/")
    leader.link("Sign in with Online Scout Manager").click()
    let_in(leader)
    leader.role("combobox", "Section").choose(SCOUTS)
    give(leader, "Eagles +5", "Eagles +3", "Wolves −1")
    leader.sees("Points sent.")
    leader.css(".score").containing("Eagles has 108").wait()
    assert sorted(evening.writes()) == [("Eagles", 108), ("Wolves", 94)]


def test_points_can_be_typed(leader: Page, evening: Evening) -> None:
    leader.label("Points to give to Lions").fill("-12")
    leader.sees("→ 68")
    leader.button("Send points").click()
    leader.sees("Points sent.")
    assert evening.score("Lions") == 68


def test_more_points_than_the_server_takes_cannot_be_chosen(leader: Page) -> None:
    leader.label("Points to give to Lions").fill("5000")
    leader.sees("Lions +1000")


def test_a_double_tap_sends_once(leader: Page, evening: Evening) -> None:
    leader.button("Eagles +5").click()
    leader.button("Send points").wait()
    form = "document.querySelector('.submit-bar')"
    leader.evaluate(f"(() => {{ const bar = {form}; bar.requestSubmit(); bar.requestSubmit(); }})()")
    leader.sees("Points sent.")
    assert evening.writes() == [("Eagles", 105)]


HELD = """
new Promise((held) => navigator.locks.request("client-outbox", () => new Promise((go) => { letGo = go; held(0); })))
"""
"""The page keeps all senders waiting, until `letGo()`."""
QUEUE = "navigator.locks.query().then((all) => all.pending.filter((one) => one.name === 'client-outbox').length)"
"""How many senders wait."""


def test_a_tap_does_not_wait_for_what_others_send_although_the_service_worker_sends_it(
    leader: Page, evening: Evening
) -> None:
    evening.close()
    evening.open(SCORE_DEBOUNCE_SECONDS="15")
    leader.evaluate(HELD)
    leader.evaluate("navigator.serviceWorker.controller.postMessage('send')")
    until(lambda: leader.evaluate(QUEUE) == 1, "the service worker waits to send")
    give(leader, "Eagles +5")
    until(lambda: leader.evaluate(QUEUE) >= 2, "the page waits behind it")
    leader.evaluate("letGo()")
    leader.sees("Points sent.")
    assert evening.writes() == [("Eagles", 105)]


def test_what_is_being_chosen_survives_a_reload(leader: Page) -> None:
    leader.button("Eagles +3").click()
    leader.sees("Eagles +3")
    leader.reload()
    leader.sees("Eagles +3")
    leader.button("Clear").click()
    leader.button("Send points").wait_gone()


def test_an_undo_takes_the_points_back_once(leader: Page, evening: Evening) -> None:
    give(leader, "Eagles +5")
    leader.sees("Points sent.")
    leader.link("History").click()
    leader.button("Undo +5 for Eagles").click()
    leader.button("Undo").click()
    leader.sees("Undone: Eagles +5.")
    leader.css(".line.undone").wait()
    assert leader.button("Undo +5 for Eagles").count() == 0
    assert evening.writes() == [("Eagles", 105), ("Eagles", 100)]


def test_points_of_another_leader_are_in_the_history_and_are_theirs_to_undo(leader: Page, evening: Evening) -> None:
    evening.give(("Eagles", 5), user_id=HAZEL)
    leader.link("History").click()
    leader.css(".line").containing("Hazel Fernsby").wait()
    assert leader.button("Undo +5 for Eagles").count() == 0


def test_the_history_goes_back_page_by_page(leader: Page, evening: Evening) -> None:
    evening.on_another_phone(lambda phone: phone.give([(LIONS, 1)] * 40))
    leader.link("History").click()
    leader.button("Show older").click()
    leader.button("Show older").wait_gone()
    assert leader.css(".line").count() == 40


def test_points_that_osm_has_not_taken_say_when_they_will_be(leader: Page, phone: Device, evening: Evening) -> None:
    evening.fault("rate_limited", endpoint="points", retry_after=600)
    give(leader, "Eagles +5")
    leader.sees("OSM asks us to wait a while.")
    said = leader.css(".notice").text()
    due = datetime.now(UTC) + timedelta(minutes=10)
    minutes = [(due - timedelta(minutes=late)).astimezone(ZoneInfo("Europe/London")) for late in (0, 1)]
    assert re.search(r"at (\d\d:\d\d)", said)[1] in [f"{minute:%H:%M}" for minute in minutes]  # type: ignore[index]
    leader.sees("+5 on the way")
    leader.css(".pill.waiting").containing("1 waiting").click()
    leader.sees("Will be tried again at")
    assert evening.writes() == []


def test_points_that_osm_puts_off_are_followed_until_they_are_there(leader: Page, evening: Evening) -> None:
    evening.hold("slow", endpoint="points")
    give(leader, "Eagles +5")
    evening.reached("slow")
    leader.css(".pill.waiting").containing("1 waiting").wait()
    evening.release()
    leader.css(".pill.waiting").wait_gone()
    leader.css(".score").containing("Eagles has 105").wait()


@pytest.mark.parametrize(("choice", "after"), [("Apply anyway: Eagles +5", 108), ("Discard Eagles +5", 103)])
def test_points_in_doubt_are_applied_or_discarded_by_the_leader(
    leader: Page, evening: Evening, choice: str, after: int
) -> None:
    evening.fault("drop_before_apply", endpoint="points")
    give(leader, "Eagles +5")
    leader.css(".notice.calm").wait()
    evening.changed("Eagles", 103)
    evening.later(120)
    leader.css(".pill.stuck").containing("1 needs you").click()
    leader.sees("OSM has 103 points, where we expected 105 or 100.")
    leader.button(choice).click()
    if choice.startswith("Discard"):
        leader.button("Discard").click()
    leader.sees("Nothing is waiting.")
    assert evening.score("Eagles") == after


def test_points_that_wait_can_be_discarded(leader: Page, evening: Evening) -> None:
    evening.control("revoke", user_id=ROBIN)
    give(leader, "Eagles +5")
    leader.css(".pill.waiting").containing("1 waiting").click()
    leader.button("Discard Eagles +5").click()
    leader.button("Discard").click()
    leader.sees("Nothing is waiting.")


def test_who_must_sign_in_at_osm_again_is_told_and_loses_no_points(leader: Page, evening: Evening) -> None:
    evening.control("revoke", user_id=ROBIN)
    give(leader, "Eagles +5")
    leader.sees("Online Scout Manager wants you to sign in again.")
    give(leader, "Eagles +3")
    leader.css(".pill.waiting").containing("2 waiting").wait()
    leader.link("Sign in").click()
    let_in(leader)
    until(lambda: evening.score("Eagles") == 108, "the points arrive")
    leader.css(".pill.waiting").wait_gone()
    leader.css(".banner").wait_gone()


def test_another_section_can_be_chosen_and_stays_chosen(leader: Page) -> None:
    leader.role("combobox", "Section").choose(CUBS)
    leader.role("heading", "Badger Six").wait()
    leader.reload()
    leader.role("heading", "Badger Six").wait()


def test_a_section_chosen_while_the_page_refreshes_stays_chosen(leader: Page, phone: Device) -> None:
    phone.keep_waiting("GET", "/pending")
    leader.evaluate("dispatchEvent(new Event('focus'))")
    until(lambda: phone.kept_waiting() == 1, "the refresh is under way")
    leader.role("combobox", "Section").choose(CUBS)
    phone.let_go()
    leader.role("heading", "Badger Six").wait()


def test_everything_can_be_done_with_the_keyboard(leader: Page, evening: Evening) -> None:
    def tab_to(name: str) -> None:
        focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
        for _ in range(40):
            leader.press("Tab")
            if leader.evaluate(focused) == name:
                return
        pytest.fail(f"the keyboard does not reach {name}")

    tab_to("Eagles +3")
    leader.press("Enter")
    leader.button("Send points").wait()
    tab_to("Send points")
    leader.press("Enter")
    until(lambda: evening.score("Eagles") == 103, "the points arrive")


def test_a_leader_who_signs_out_leaves_nothing_to_see(leader: Page) -> None:
    leader.link("Set up").click()
    leader.button("Sign out").click()
    leader.css("dialog button.main").click()
    leader.link("Sign in with Online Scout Manager").wait()
    leader.reload()
    leader.link("Sign in with Online Scout Manager").wait()


@pytest.mark.parametrize("late", ["/pending", "/scores"])
def test_what_was_asked_for_before_a_leader_signed_out_is_not_kept_when_it_comes_after(
    leader: Page, phone: Device, late: str
) -> None:
    phone.keep_answer("GET", late)
    leader.evaluate("dispatchEvent(new Event('focus'))")
    until(lambda: phone.kept_waiting() == 1, "the refresh is under way")
    leader.link("Set up").click()
    leader.button("Sign out").click()
    leader.css("dialog button.main").click()
    leader.link("Sign in with Online Scout Manager").wait()
    leader.evaluate("dispatchEvent(new Event('focus'))")  # once more, when this refresh is over
    phone.keep_waiting("GET", "/session")
    phone.let_go()
    until(lambda: phone.kept_waiting() == 1, "it is over")
    phone.let_go()
    kept = """new Promise((done) => (indexedDB.open("carrick-score").onsuccess = (opened) => {
      const asked = opened.target.result.transaction("last-seen").objectStore("last-seen").getAllKeys();
      asked.onsuccess = () => done(asked.result);
    }))"""
    assert leader.evaluate(kept) == []
    leader.reload()
    leader.link("Sign in with Online Scout Manager").wait()


def test_pulling_the_page_down_has_the_scores_read_again(leader: Page, evening: Evening) -> None:
    evening.changed("Eagles", 250)
    leader.evaluate(PULL)
    leader.css(".score").containing("Eagles has 250").wait()


def test_a_stale_csrf_token_is_renewed(leader: Page, phone: Device) -> None:
    phone.failures_expected = True
    leader.link("Set up").click()
    signed_in(phone).close()  # another session in the same browser: the first page's token is not of it
    leader.button("Make a link").click()
    leader.sees("/board/")


def test_a_newer_version_of_the_page_is_offered_and_used_after_a_reload(leader: Page) -> None:
    leader.reload()  # the service worker is in charge from the start now
    leader.role("heading", "Eagles").wait()
    leader.evaluate("navigator.serviceWorker.dispatchEvent(new Event('controllerchange'))")
    leader.sees("A new version of this page is ready.")
    leader.button("Reload").click()
    leader.role("heading", "Eagles").wait()
    leader.css(".notice").wait_gone()
