"""A leader gives points: signing in, choosing, sending, undoing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.browser.driver import Device, Page
from tests.browser.hall import Hall
from tests.scenario.processes import until

PULL = """
const touch = (kind, ...points) => dispatchEvent(new TouchEvent(kind, { touches: points.map((clientY) =>
  new Touch({ identifier: 1, target: document.body, clientX: 50, clientY })) }));
touch("touchstart", 100);
touch("touchmove", 300);
touch("touchend");
"""
"""A finger that draws the page down by 200 pixels."""


def give(page: Page, *buttons: str) -> None:
    """Choose points and send them."""
    for button in buttons:
        page.button(button).click()
    page.button("Send points").click()


def test_a_leader_signs_in_and_gives_points(phone: Device, hall: Hall) -> None:
    leader = phone.page("/admin/")
    leader.link("Sign in with Online Scout Manager").click()
    give(leader, "Eagles +5", "Eagles +3", "Wolves −1")
    leader.sees("Points sent.")
    assert (hall.score("Eagles"), hall.score("Lions"), hall.score("Wolves")) == (108, 80, 94)
    assert hall.modes() == ["interactive"]
    assert hall.submissions()[0].body == {
        "updates": [{"patrolId": "132322", "points": -1}, {"patrolId": "72699", "points": 8}]
    }
    leader.css(".score").containing("Eagles has 108").wait()


def test_points_can_be_typed(leader: Page, hall: Hall) -> None:
    leader.label("Points to give to Lions").fill("-12")
    leader.sees("→ 68")
    leader.button("Send points").click()
    leader.sees("Points sent.")
    assert hall.score("Lions") == 68


def test_more_points_than_the_server_takes_cannot_be_chosen(leader: Page) -> None:
    leader.label("Points to give to Lions").fill("5000")
    leader.sees("Lions +1000")


def test_a_double_tap_sends_once(leader: Page, hall: Hall) -> None:
    leader.button("Eagles +5").click()
    leader.button("Send points").wait()
    form = "document.querySelector('.submit-bar')"
    leader.evaluate(f"(() => {{ const bar = {form}; bar.requestSubmit(); bar.requestSubmit(); }})()")
    leader.sees("Points sent.")
    assert len(set(hall.keys())) == 1
    assert hall.score("Eagles") == 105


def test_what_is_being_chosen_survives_a_reload(leader: Page) -> None:
    leader.button("Eagles +3").click()
    leader.sees("Eagles +3")
    leader.reload()
    leader.sees("Eagles +3")
    leader.button("Clear").click()
    leader.button("Send points").wait_gone()


def test_an_undo_takes_the_points_back_once(leader: Page, hall: Hall) -> None:
    give(leader, "Eagles +5")
    leader.sees("Points sent.")
    leader.link("History").click()
    leader.button("Undo +5 for Eagles").click()
    leader.button("Undo").click()
    leader.sees("Undone: Eagles +5.")
    assert hall.score("Eagles") == 100
    leader.css(".line.undone").wait()
    assert leader.button("Undo +5 for Eagles").count() == 0


def test_the_history_goes_back_page_by_page(leader: Page, hall: Hall) -> None:
    for _ in range(40):
        hall.apply("72700", 1)
    leader.link("History").click()
    leader.button("Show older").click()
    leader.button("Show older").wait_gone()
    assert leader.css(".line").count() == 40


def test_points_that_osm_has_not_taken_say_when_they_will_be(leader: Page, hall: Hall) -> None:
    hall.limited_until = datetime.now(UTC).replace(hour=20, minute=15) + timedelta(days=1)
    give(leader, "Eagles +5")
    leader.sees("The points are applied at 20:15.")
    leader.sees("+5 on the way")
    leader.css(".pill.waiting").containing("1 waiting").click()
    leader.sees("Will be tried again at")
    hall.apply_pending()
    leader.css(".pill.waiting").wait_gone()
    leader.link("Scores").click()
    leader.css(".score").containing("Eagles has 105").wait()


def test_points_in_doubt_are_applied_or_discarded_by_the_leader(leader: Page, hall: Hall) -> None:
    for patrol, points in (("72699", 5), ("72700", 2)):
        hall.wait(patrol, points, "needs_review", state="dead", expected=105, found=103)
    leader.link("Waiting").click()
    leader.sees("Eagles should have had 105 points, but Online Scout Manager shows 103.")
    leader.button("Apply anyway: Eagles +5").click()
    leader.button("Apply anyway: Eagles +5").wait_gone()
    leader.button("Discard Lions +2").click()
    leader.button("Discard").click()
    leader.sees("Nothing is waiting.")
    assert (hall.score("Eagles"), hall.score("Lions")) == (105, 80)


def test_another_section_can_be_chosen_and_stays_chosen(leader: Page, hall: Hall) -> None:
    leader.role("combobox", "Section").choose("Explorers – 1st Carrick")
    leader.sees("No patrols in this section yet.")
    until(lambda: any("/40105/scores" in call.path for call in hall.calls), "the section is asked for")
    leader.reload()
    leader.sees("No patrols in this section yet.")


def test_a_section_chosen_while_the_page_refreshes_stays_chosen(leader: Page, hall: Hall) -> None:
    before = len(hall.calls)
    hold = hall.hold("GET", "/pending")
    leader.evaluate("dispatchEvent(new Event('focus'))")
    until(lambda: any(call.path.endswith("/pending") for call in hall.calls[before:]), "the refresh is under way")
    leader.role("combobox", "Section").choose("Explorers – 1st Carrick")
    hold.set()
    until(lambda: any("/40105/scores" in call.path for call in hall.calls), "the section is asked for")
    leader.sees("No patrols in this section yet.")


def test_everything_can_be_done_with_the_keyboard(leader: Page, hall: Hall) -> None:
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
    until(lambda: hall.score("Eagles") == 103, "the points arrive")


def test_a_leader_who_signs_out_leaves_nothing_to_see(leader: Page, hall: Hall) -> None:
    leader.link("Set up").click()
    leader.button("Sign out").click()
    leader.css("dialog button.main").click()
    leader.link("Sign in with Online Scout Manager").wait()
    assert hall.sessions == {}
    leader.reload()
    leader.link("Sign in with Online Scout Manager").wait()


def test_pulling_the_page_down_has_the_scores_read_again(leader: Page, hall: Hall) -> None:
    hall.scores["72699"] = 250
    leader.evaluate(PULL)
    leader.css(".score").containing("Eagles has 250").wait()
    assert any(call.path.endswith("/40104/refresh") for call in hall.calls)


def test_a_stale_csrf_token_is_renewed_and_the_points_count_once(leader: Page, hall: Hall, phone: Device) -> None:
    phone.failures_expected = True
    for session in hall.sessions:
        hall.sessions[session] = "csrf-renewed"
    leader.link("Set up").click()
    leader.button("Make a link").click()
    leader.sees("/board/board-1")
    assert hall.boards == ["board-1"]
