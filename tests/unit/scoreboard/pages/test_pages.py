"""The pages as HTML: everything that is shown is escaped, and every page keeps the rules of the house."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from importlib import resources

import pytest

from carrick.web.addresses import Visitor
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Profile, Section, Term
from carrick_scoreboard.pages import device, troubles
from carrick_scoreboard.pages.render import PACKAGE, Html, render, style, style_path
from carrick_scoreboard.sign_in import NotSignedIn, Why
from carrick_scoreboard.store.devices import DeviceCode

NOW = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)
EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(1)>' {csrf} {0}"
OSM_ERRORS = [
    errors.RateLimited(NOW),
    errors.OutOfBudget(None),
    errors.ServiceBlocked(),
    errors.Misconfigured(EVIL),
    errors.Unavailable("x", EVIL),
    errors.TimedOut(EVIL, sent=True),
    errors.BadData(EVIL),
]


def code(address: str = EVIL, country: str = EVIL) -> DeviceCode:
    return DeviceCode(
        id=1,
        user_code="BCDFGHJK",
        client_id="c",
        status="pending",
        address=address,
        country=country,
        poll_seconds=5,
        device_id=None,
        created_at=NOW,
        expires_at=NOW,
        last_polled_at=None,
    )


def choices(name: str = EVIL) -> tuple[device.Choice, ...]:
    term = Term(5, name, date(2026, 1, 1), date(2026, 4, 21))
    sections = (Section(1, name, name, terms=(term,)), Section(2, "Cubs", "A"), Section(3, "Beavers", name))
    return device.choices_of(Profile(7, sections=sections), NOW.date())


PAGES = {
    "entry": device.entry(),
    "wrong code": device.entry(EVIL, EVIL),
    "confirm": device.confirm(code(), EVIL, Visitor("10.0.0.1", "GB"), NOW, "mark"),
    "section": device.section("ab", "BCDFGHJK", EVIL, choices(), "mark", name=EVIL, chosen=1, problem=EVIL),
    "done": device.done(EVIL, EVIL),
    "cancel": device.cancel("BCDFGHJK", "mark"),
    "no sections": troubles.no_sections(EVIL, "BCDFGHJK"),
    "unreadable": troubles.unreadable(EVIL),
    "wait": troubles.too_many(5, device.Link(EVIL, EVIL)),
    "used": troubles.used_code(),
    "old": troubles.old_code(),
    "old page": troubles.old_page(),
    "forged": troubles.forged(),
    "store": troubles.store_away(),
    "away": troubles.turned_away(),
    "foreign": troubles.foreign_section(),
    **{
        f"trouble {type(error).__name__}": troubles.not_signed_in(NotSignedIn("trouble", "BCDFGHJK", error), NOW)[0]
        for error in OSM_ERRORS
    },
}


class Outline(HTMLParser):
    """The tags of a page, and what the rules ask about."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_shown_becomes_a_tag_or_an_attribute(name: str) -> None:
    outline = Outline(PAGES[name])
    used = {tag for tag, _ in outline.tags}
    assert not used & {"script", "img", "style", "iframe", "object", "base"}
    for _, attributes in outline.tags:
        assert not [attribute for attribute in attributes if attribute.startswith("on") or attribute == "style"]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_language_a_title_one_heading_and_a_label_for_each_field(name: str) -> None:
    outline = Outline(PAGES[name])
    assert outline.all("html") == [{"lang": "en"}]
    assert len(outline.all("title")) == len(outline.all("h1")) == len(outline.all("main")) == 1
    assert any(meta.get("name") == "viewport" for meta in outline.all("meta"))
    labelled = {label.get("for") for label in outline.all("label")}
    for field in outline.all("input"):
        assert field.get("type") in ("hidden", "radio") or field["id"] in labelled
    assert outline.all("link")[-1]["href"] == style_path()


@pytest.mark.parametrize("name", PAGES)
def test_every_form_that_is_posted_carries_a_mark(name: str) -> None:
    outline = Outline(PAGES[name])
    posted = [form for form in outline.all("form") if form["method"] == "post"]
    marks = [field for field in outline.all("input") if field.get("name") == "csrf"]
    assert len(posted) == len(marks)


def test_what_looks_like_a_place_in_a_value_is_just_text() -> None:
    assert "{csrf}" in device.done("{csrf}", "x")


def test_html_is_put_in_as_it_is_and_text_is_not() -> None:
    assert render("paragraph", text="<b>") == "<p>&lt;b&gt;</p>\n"
    assert render("paragraph", text=Html("<b>")) == "<p><b></p>\n"


def test_places_in_templates_stand_between_tags_or_in_quotes() -> None:
    for file in resources.files(PACKAGE).iterdir():
        if file.name.endswith(".html"):
            for tag in re.findall(r"<[^>]*>", file.read_text()):
                outside = re.sub(r'"[^"]*"', "", tag).replace("{checked}", "")
                assert "{" not in outside, (file.name, tag)


def test_another_style_is_another_address() -> None:
    assert re.fullmatch(r"/static/pages-[0-9a-f]{16}\.css", style_path())
    assert b"prefers-color-scheme: dark" in style()
    assert b"url(" not in style()
    assert b"@import" not in style()


@pytest.mark.parametrize(
    ("device_at", "own", "distance"),
    [
        (Visitor("81.2.69.1", "GB"), Visitor("81.2.69.1", "GB"), "same"),
        (Visitor("81.2.69.1"), Visitor("81.2.69.2"), "other_network"),
        (Visitor("81.2.69.1", "GB"), Visitor("81.2.69.2", ""), "other_network"),
        (Visitor("81.2.69.1", "GB"), Visitor("81.2.69.2", "FR"), "other_country"),
        (Visitor("2001:db8::1"), Visitor("2001:db8::2"), "same"),
    ],
)
def test_a_page_warns_when_the_two_are_apart(device_at: Visitor, own: Visitor, distance: str) -> None:
    assert device.distance(device_at, own) == distance
    page = device.confirm(code(device_at.address, device_at.country), "x", own, NOW, "mark")
    assert ('role="alert"' in page) == (distance != "same")
    assert ("another country" in page) == (distance == "other_country")


def test_sections_stand_by_group_and_name_with_the_term_of_the_day() -> None:
    found = choices("Zebras")
    assert [choice.name for choice in found] == ["Cubs", "Beavers", "Zebras"]
    assert [choice.term_id for choice in found] == [None, None, 5]
    assert found[2].term_ends == date(2026, 4, 21)
    assert "until 21 April 2026" in found[2].term


def test_the_only_section_is_chosen_already() -> None:
    page = device.section("ab", "BCDFGHJK", "Robin", choices()[:1], "mark")
    assert page.count(" checked") == 1
    assert " checked" not in device.section("ab", "BCDFGHJK", "Robin", choices(), "mark")


@pytest.mark.parametrize(
    ("why", "trouble", "status", "retry_after"),
    [
        ("denied", None, 403, None),
        ("unknown", None, 400, None),
        ("not_accepted", None, 400, None),
        ("failed", None, 502, None),
        ("trouble", errors.RateLimited(datetime(2026, 3, 2, 18, 40, tzinfo=UTC)), 429, 600),
        ("trouble", errors.OutOfBudget(None), 429, 60),
        ("trouble", errors.ServiceBlocked(), 503, None),
        ("trouble", errors.Misconfigured("x"), 502, None),
        ("trouble", errors.Unavailable("x", "y"), 502, 60),
        ("trouble", errors.TimedOut("x", sent=True), 502, 60),
        ("trouble", errors.BadData("x"), 502, 60),
    ],
)
def test_each_trouble_has_its_status(
    why: Why, trouble: errors.OsmError | None, status: int, retry_after: int | None
) -> None:
    assert troubles.not_signed_in(NotSignedIn(why, "", trouble), NOW)[1:] == (status, retry_after)


def test_times_to_wait_are_told_in_words() -> None:
    for seconds, words in [(1, "1 second."), (90, "90 seconds"), (91, "2 minutes"), (7200, "2 hours")]:
        assert f"in {words}" in troubles.too_many(seconds, device.Link())
