"""Contacts of ingested events on both databases: a bad object is told, and loses neither its event nor the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from carrick import wiring
from carrick.contacts.contacts import Contacts
from carrick.ingest.store import Inbox
from tests.batches import body, event, read, take
from tests.contract.inboxes import Place

ANN = {"email": "ann@example.org"}
FULL = 16
"""So many traits of 16 kB a contact can have."""


@pytest.fixture
def contacts(place: Place) -> Iterator[Contacts]:
    with Contacts.connect(place.url) as contacts:
        contacts.turn_on("farm-1")
        yield contacts


@pytest.fixture
def watched(place: Place, contacts: Contacts) -> Iterator[Inbox]:
    """An inbox that resolves, and relays nothing."""
    with closing(wiring.open_inbox(place.url, watcher=wiring.resolving(contacts))) as inbox:
        yield inbox


def take_people(inbox: Inbox, *people: Any, first: int = 0, tenant_id: str = "farm-1") -> int:
    """How many events with these contact objects are accepted, `e-0` and so on."""
    events = [event(f"e-{n}", payload={"contact": one}, tenant_id=None) for n, one in enumerate(people, first)]
    return take(inbox, read(body(*events, tenant_id=tenant_id))).accepted


def refused(place: Place) -> list[str]:
    """Which events' contacts were told as refused."""
    waiting = [json.loads(one.payload) for one in place.relayed() if one.event_type == "contact.refused.v1"]
    return [told["event_id"] for told in waiting]


def fill(contacts: Contacts) -> None:
    """Give Ann as many traits as she can have."""
    for number in range(FULL):
        contacts.resolve("farm-1", [("email", ANN["email"])], {f"t{number}": "x" * 16_000})


def test_traits_that_grow_too_large_lose_neither_their_event_nor_the_others(
    place: Place, contacts: Contacts, watched: Inbox
) -> None:
    fill(contacts)
    more = {**ANN, "more": "x" * 16_000}
    people = [
        {"external_id": "a"},
        more,
        {"external_id": "b"},
        {**ANN, "n": 1},
        {**more, "even": 1},
        {"external_id": "c"},
    ]
    assert take_people(watched, *people) == 6
    assert refused(place) == ["e-1", "e-4"]
    assert all(contacts.find("farm-1", "external_id", name) for name in "abc")
    ann = contacts.find("farm-1", "email", ANN["email"])
    assert ann is not None
    assert ann.traits.keys() == {*(f"t{number}" for number in range(FULL)), "n"}


def test_traits_that_grow_too_large_only_together_are_refused_from_there_on(
    place: Place, contacts: Contacts, watched: Inbox
) -> None:
    people = [{**ANN, f"t{number}": "x" * 16_000} for number in range(FULL + 2)]
    assert take_people(watched, *people) == FULL + 2
    assert refused(place) == [f"e-{FULL}", f"e-{FULL + 1}"]


def test_a_number_out_of_range_is_told(place: Place, contacts: Contacts, watched: Inbox) -> None:
    text = body(
        event("a", payload={"contact": {**ANN, "score": "N"}}), event("b", payload={"contact": {"email": "b@x"}})
    )
    assert take(watched, read(text.replace(b'"N"', b"1e999"))).accepted == 2
    assert refused(place) == ["a"]
    assert contacts.find("farm-1", "email", ANN["email"]) is None
    assert contacts.find("farm-1", "email", "b@x") is not None


def test_an_empty_tenant_has_no_contacts_and_its_events_are_stored(place: Place, watched: Inbox) -> None:
    assert take_people(watched, ANN, 5, tenant_id="") == 2
    assert refused(place) == []
