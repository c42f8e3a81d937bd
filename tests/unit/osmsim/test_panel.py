"""The control panel: what it shows, and that its forms do what they say."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.osm import EAGLES, HAZEL, ROBIN, SCOUTS, Osm, story

VOID = {"input", "link", "meta"}


class Balance(HTMLParser):
    """Fails on a tag that is closed but was not opened; `open` is what was not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def shown(osm: Osm, page: str = "") -> str:
    answer = await osm.call("GET", f"/control/{page}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    return answer.body.decode()


@story
async def test_the_address_itself_leads_to_the_panel(osm: Osm) -> None:
    answer = await osm.call("GET", "/")
    assert (answer.status, answer.headers["Location"]) == (302, "/control/")


@pytest.mark.parametrize("page", ["", "log"])
@story
async def test_the_pages_are_well_formed_and_need_no_script(osm: Osm, page: str) -> None:
    await osm.control("fault", kind="server_error", user_id=HAZEL, times=None)
    await osm.control("hold", name="<b>")
    await osm.control("block", reason="<i>")
    await osm.call("GET", "/<script>?<b>=<i>")
    text = await shown(osm, page)
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert "<script" not in text
    assert "<b>" not in text
    assert "<i>" not in text


@story
async def test_the_style_sheet_is_served(osm: Osm) -> None:
    answer = await osm.call("GET", "/static/osmsim.css")
    assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/css")


@story
async def test_the_panel_shows_scores_calls_and_effects(osm: Osm) -> None:
    await osm.write(await osm.token(), 51)
    text = await shown(osm)
    assert re.search(r'Eagles</th><td class="number">51<', text)
    assert "points of Eagles (72699): 32 → 51" in text
    assert "999 of 1000 calls left" in text


@story
async def test_a_form_does_its_action_and_comes_back_to_the_panel(osm: Osm) -> None:
    form = {"section_id": SCOUTS, "patrol_id": EAGLES, "add": 5}
    answer = await osm.call("POST", "/control/points", form=form)
    assert (answer.status, answer.headers["Location"]) == (303, "/control/?done=points&open=40104#at-40104")
    assert await osm.points() == 37


@story
async def test_empty_fields_of_a_form_are_left_alone(osm: Osm) -> None:
    form = {"kind": "slow", "endpoint": "", "user_id": "", "times": "always", "seconds": "", "text": ""}
    await osm.call("POST", "/control/fault", form=form)
    fault = (await osm.state())["faults"][0]
    assert (fault["times"], fault["endpoint"], fault["user_id"], fault["seconds"]) == (None, None, None, 5.0)


@story
async def test_what_was_wrong_with_a_form_is_shown(osm: Osm) -> None:
    answer = await osm.call("POST", "/control/budget", form={"user_id": ROBIN, "remaining": "many"})
    assert answer.status == 303
    page = await osm.call("GET", answer.headers["Location"])
    assert "budget: Expected `int | null`, got `str`" in page.body.decode()


@story
async def test_every_button_of_the_panel_works(osm: Osm) -> None:
    await osm.control("fault", kind="slow", times=None)
    await osm.control("hold", name="held")
    await osm.control("block")
    forms = re.findall(
        r'<form method="post" action="/control/([a-z-]+)"[^>]*>(.*?)</form>', await shown(osm), re.DOTALL
    )
    assert len(forms) > 50
    for action, inside in forms:
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', inside))
        fields |= dict(re.findall(r'<select name="([^"]+)"><option value="([^"]*)"', inside))
        await osm.control("clear-faults")
        if action == "reset":
            continue
        answer = await osm.call("POST", f"/control/{action}", form=fields)
        assert "problem=" not in answer.headers["Location"], (action, fields, answer.headers["Location"])
