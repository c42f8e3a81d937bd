"""The pages of the device's sign-in, each made of values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec

from carrick.web.addresses import Visitor
from carrick_scoreboard.osm.answers import Profile, Section, Term
from carrick_scoreboard.pages.render import Html, joined, page, render
from carrick_scoreboard.store.devices import DeviceCode
from carrick_scoreboard.user_codes import shown

START = "/device"
NOT_KNOWN = "not known"
NOTHING = Html()


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A section that may be chosen, with its term of today."""

    id: int
    name: str
    group: str
    term_id: int | None = None
    term: str = "no term today: scores come when the next one begins"
    term_ends: date | None = None


class Link(NamedTuple):
    """Where a person goes on from a page that is an end."""

    href: str = START
    text: str = "Start again"


def code_link(user_code: str, text: str = "Try again") -> Link:
    """Back to the page of that code; to the start where there is none."""
    return Link(f"{START}?user_code={shown(user_code)}", text) if user_code else Link()


def entry(typed: str = "", problem: str = "") -> Html:
    """Type the code."""
    said = render("problem", said=problem) if problem else NOTHING
    return page("Connect a display", render("entry", typed=typed, problem=said))


def confirm(code: DeviceCode, application: str, own: Visitor, now: datetime, csrf: str) -> Html:
    """Is it your display? `now` is in the time zone to show."""
    device = Visitor(code.address, code.country)
    yes, no = ("", "main") if distance(device, own) == "other_country" else ("main", "")
    body = render(
        "confirm",
        code=shown(code.user_code),
        warning=_warning(device, own),
        device_address=device.address,
        own_address=own.address,
        device_country=device.country or NOT_KNOWN,
        own_country=own.country or NOT_KNOWN,
        device_time=_clock(code.created_at.astimezone(now.tzinfo)),
        own_time=_clock(now),
        application=application,
        csrf=csrf,
        yes=yes,
        no=no,
    )
    return page("Is this your display?", body)


Distance = Literal["same", "other_network", "other_country"]


def distance(device: Visitor, own: Visitor) -> Distance:
    """How far apart the two are, as far as their addresses tell."""
    if device.country and own.country and device.country != own.country:
        return "other_country"
    return "same" if device.neighbourhood == own.neighbourhood else "other_network"


def _warning(device: Visitor, own: Visitor) -> Html:
    match distance(device, own):
        case "same":
            kind, role, title, said = "ok", "note", "Same network.", "The display asked from where you are."
        case "other_network":
            kind, role, title = "warn", "alert", "The display is on another network than you."
            said = "That is usual when your phone uses mobile data. If the display is not in front of you, cancel."
        case "other_country":
            kind, role, title = "bad", "alert", "The display is in another country than you."
            said = "Somebody may be trying to read your scores with your help. Cancel, unless you know why."
    return render("warning", kind=kind, role=role, title=title, said=said)


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M} {moment.tzname() or ''}".strip()


def choices_of(profile: Profile, day: date) -> tuple[Choice, ...]:
    """The sections of a profile by group and name, each with its term of that day."""
    found = [_choice_of(section, section.term_on(day)) for section in profile.sections]
    return tuple(
        sorted(found, key=lambda choice: (choice.group.casefold(), choice.group, choice.name.casefold(), choice.id))
    )


def _choice_of(section: Section, term: Term | None) -> Choice:
    named = Choice(
        id=section.id, name=section.name or f"Section {section.id}", group=section.group_name or "Your sections"
    )
    if term is None:
        return named
    said = f"{term.name}, until {term.ends.day} {term.ends:%B %Y}"
    return msgspec.structs.replace(named, term_id=term.id, term=said, term_ends=term.ends)


def section(
    flow: str,
    user_code: str,
    person: str,
    choices: Sequence[Choice],
    csrf: str,
    *,
    name: str = "",
    chosen: int | None = None,
    problem: str = "",
) -> Html:
    """Which section, and under which name?"""
    only = choices[0].id if len(choices) == 1 else chosen
    groups = joined(
        render("group", group=group, choices=joined(_choice(choice, only) for choice in members))
        for group, members in groupby(choices, key=lambda choice: choice.group)
    )
    body = render(
        "section",
        flow=flow,
        code=shown(user_code),
        person=person,
        problem=render("problem", said=problem) if problem else NOTHING,
        groups=groups,
        name=name or "Scoreboard",
        csrf=csrf,
    )
    return page("What should it show?", body)


def _choice(choice: Choice, chosen: int | None) -> Html:
    checked = Html(" checked") if choice.id == chosen else NOTHING
    return render("choice", id=choice.id, name=choice.name, term=choice.term, checked=checked)


def done(name: str, section_name: str) -> Html:
    """The display is let in."""
    return page("The display is connected", render("done", name=name, section=section_name))


def cancel(user_code: str, csrf: str) -> Html:
    """Turn it away?"""
    return page("Turn this display away?", render("cancel", code=shown(user_code), csrf=csrf))


def message(title: str, *said: str, link: Link = Link()) -> Html:  # noqa: B008  immutable
    """An end: what happened, what to do about it, and one way on."""
    paragraphs = joined(render("paragraph", text=text) for text in said)
    return page(title, render("message", title=title, said=paragraphs, href=link.href, link=link.text))
