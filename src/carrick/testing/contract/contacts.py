"""Contacts: one contact per person and tenant, merges, conflicts, and what is told of them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest

from carrick.contacts.arrival import Arrival, Refused
from carrick.contacts.contacts import Contacts
from carrick.contacts.store import Resolved
from carrick.entry import Entry
from carrick.errors import BacklogFull, ContactNotFound, InvalidInput
from carrick.outbox.channel import Channel
from carrick.outbox.store import Store
from carrick.testing.contract.caller import Connect

TENANT = "acme"

ANN = ("email", "ann@example.org")
PHONE = ("phone", "+442079460958")
COOKIE = ("anonymous_id", "cookie-1")
ONE = ("external_id", "one")
TWO = ("external_id", "two")


BAD_OBJECTS: list[Any] = [
    5,
    [],
    "x",
    {},
    {"plan": "pro"},
    {"email": 5},
    {"email": "no address"},
    {"identities": []},
    {"identities": [{"type": "email"}]},
    {"identities": "x"},
    {"identities": [ANN], "more": 1},
    {"email": ANN[1], "t": "\x00"},
    {"email": ANN[1], "t": "\ud800"},
    {"email": ANN[1], "traits": 5},
    {"external_id": "\ud800"},
    {"phone": "+0"},
    {"email": "a\x00@x.org"},
]


class Told(NamedTuple):
    """An event of contacts, as a consumer gets it."""

    type: str
    body: dict[str, Any]
    tenant_id: str
    group: str | None


def told(store: Store, channel: str = "events") -> list[Told]:
    """The events that wait, in the order they were put; takes them away."""
    entries: list[Entry] = []
    while channel in store.channels() and (batch := store.claim(channel, "reader", max_rows=1000)):
        entries += list(batch)
        store.finish_all(batch.token)
    entries.sort(key=lambda entry: entry.seq)
    return [Told(one.event_type, json.loads(one.payload), one.tenant_id, one.group_key) for one in entries]


def types(store: Store) -> list[str]:
    """What kinds of events wait, in order, without their common ends."""
    return [event.type.removeprefix("contact.").removesuffix(".v1") for event in told(store)]


def known_by(contacts: Contacts, contact_id: UUID) -> set[tuple[str, str]]:
    """The identities of a contact."""
    return {(one.type.value, one.normalised) for one in contacts.get(TENANT, contact_id).identities}


class ResolveContract:
    """One contact, found or made."""

    def test_identities_that_nobody_has_make_a_contact_and_tell_it(self, contacts: Contacts, store: Store) -> None:
        answer = contacts.resolve(TENANT, [ANN, PHONE], {"plan": "pro", "gone": None})
        assert (answer.created, answer.merged, answer.conflicts) == (True, (), ())
        assert known_by(contacts, answer.contact_id) == {ANN, PHONE}
        (event,) = told(store)
        assert (event.type, event.tenant_id, event.group) == ("contact.created.v1", TENANT, str(answer.contact_id))
        assert event.body == {
            "tenant_id": TENANT,
            "contact_id": str(answer.contact_id),
            "identities": [{"type": "email", "value": ANN[1]}, {"type": "phone", "value": PHONE[1]}],
            "traits": {"plan": "pro"},
        }

    def test_a_contact_has_an_id_that_sorts_by_time(self, contacts: Contacts) -> None:
        assert contacts.resolve(TENANT, [ANN]).contact_id.version == 7

    def test_the_same_again_is_the_same_contact_and_tells_nothing(self, contacts: Contacts, store: Store) -> None:
        first = contacts.resolve(TENANT, [ANN, PHONE], {"plan": "pro", "n": 1})
        before = contacts.get(TENANT, first.contact_id)
        assert types(store) == ["created"]
        again = contacts.resolve(TENANT, [PHONE, ("email", " ANN@Example.ORG\n")], {"n": 1.0})
        assert again == Resolved(contact_id=first.contact_id, created=False)
        assert types(store) == []
        assert contacts.get(TENANT, first.contact_id) == before

    def test_one_of_its_identities_is_enough(self, contacts: Contacts) -> None:
        first = contacts.resolve(TENANT, [ANN, PHONE, COOKIE, ONE])
        for one in (ANN, PHONE, COOKIE, ONE):
            assert contacts.resolve(TENANT, [one]).contact_id == first.contact_id

    def test_the_same_identity_twice_in_one_call_is_one(self, contacts: Contacts, store: Store) -> None:
        answer = contacts.resolve(TENANT, [ANN, ("email", "ANN@example.org")])
        assert known_by(contacts, answer.contact_id) == {ANN}
        assert types(store) == ["created"]

    def test_a_new_identity_is_added_and_told_alone(self, contacts: Contacts, store: Store) -> None:
        first = contacts.resolve(TENANT, [ANN])
        told(store)
        assert contacts.resolve(TENANT, [ANN, COOKIE]).contact_id == first.contact_id
        (event,) = told(store)
        assert event.type == "contact.updated.v1"
        assert event.body["identities"] == [{"type": "anonymous_id", "value": "cookie-1"}]
        assert event.body["traits"] == {}
        assert known_by(contacts, first.contact_id) == {ANN, COOKIE}

    def test_ids_are_compared_exactly(self, contacts: Contacts) -> None:
        for kind in ("external_id", "anonymous_id"):
            made = {contacts.resolve(TENANT, [(kind, value)]).contact_id for value in ("a", "A", " a", "a ", "\uff41")}
            assert len(made) == 5

    @pytest.mark.parametrize(
        ("one", "other"),
        [("\u0130@x.org", "i\u0307@x.org"), ("\u0130@x.org", "i@x.org"), ("\u00c9@x.org", "\u00e9@x.org")],
        ids=["turkish", "dotless", "accent"],
    )
    def test_letters_beyond_ascii_are_compared_exactly(self, contacts: Contacts, one: str, other: str) -> None:
        first = contacts.resolve(TENANT, [("email", one)])
        assert contacts.resolve(TENANT, [("email", one)]).contact_id == first.contact_id
        assert contacts.resolve(TENANT, [("email", other)]).contact_id != first.contact_id

    def test_a_letter_whose_lower_case_grows_is_no_problem(self, contacts: Contacts) -> None:
        first = contacts.resolve(TENANT, [("email", "Stra\u00dfe\u1e9e@x.org")])
        assert contacts.resolve(TENANT, [("email", "STRA\u00dfE\u1e9e@X.ORG")]).contact_id == first.contact_id

    def test_tenants_know_nothing_of_each_other(self, contacts: Contacts) -> None:
        mine = contacts.resolve(TENANT, [ANN, ONE])
        theirs = contacts.resolve("other", [ANN, ONE])
        assert theirs.created
        assert theirs.contact_id != mine.contact_id
        with pytest.raises(ContactNotFound):
            contacts.get("other", mine.contact_id)

    def test_a_contact_is_found_by_an_identity_as_somebody_writes_it(self, contacts: Contacts) -> None:
        made = contacts.resolve(TENANT, [ANN, PHONE])
        for kind, value in (("email", "Ann@Example.org "), ("phone", "+44 (0)20 7946 0958")):
            found = contacts.find(TENANT, kind, value)
            assert found is not None
            assert found.id == made.contact_id
        assert contacts.find(TENANT, "email", "bob@example.org") is None

    def test_an_unknown_contact_is_not_found(self, contacts: Contacts) -> None:
        with pytest.raises(ContactNotFound):
            contacts.get(TENANT, uuid4())


class TraitContract:
    """Traits: set key by key, told when they change."""

    def test_a_trait_that_changes_is_told_alone(self, contacts: Contacts, store: Store) -> None:
        made = contacts.resolve(TENANT, [ANN], {"plan": "free", "city": "Oslo"})
        told(store)
        contacts.resolve(TENANT, [ANN], {"plan": "pro", "city": "Oslo"})
        (event,) = told(store)
        assert (event.type, event.body["traits"], event.body["identities"]) == (
            "contact.updated.v1",
            {"plan": "pro"},
            [],
        )
        assert contacts.get(TENANT, made.contact_id).traits == {"plan": "pro", "city": "Oslo"}

    def test_null_removes_a_trait_and_is_told_once(self, contacts: Contacts, store: Store) -> None:
        made = contacts.resolve(TENANT, [ANN], {"plan": "free"})
        told(store)
        contacts.resolve(TENANT, [ANN], {"plan": None})
        contacts.resolve(TENANT, [ANN], {"plan": None, "never": None})
        assert [event.body["traits"] for event in told(store)] == [{"plan": None}]
        assert contacts.get(TENANT, made.contact_id).traits == {}

    @pytest.mark.parametrize(
        ("old", "new", "same"),
        [
            (1, 1.0, True),
            (1, True, False),
            ("1", 1, False),
            ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
            ([1, 2], [2, 1], False),
            ({"a": None}, {}, False),
            (0.1, 0.1, True),
            (10**30, 10**30 + 1, False),
        ],
    )
    def test_a_trait_is_the_same_when_its_json_value_is(
        self, contacts: Contacts, store: Store, old: Any, new: Any, same: bool
    ) -> None:
        contacts.resolve(TENANT, [ANN], {"t": old})
        told(store)
        contacts.resolve(TENANT, [ANN], {"t": new})
        assert types(store) == ([] if same else ["updated"])

    def test_traits_cannot_grow_for_ever(self, contacts: Contacts, store: Store) -> None:
        for number in range(16):
            contacts.resolve(TENANT, [ANN], {f"t{number}": "x" * 16_000})
        with pytest.raises(InvalidInput, match="256 kB"):
            contacts.resolve(TENANT, [ANN], {"more": "x" * 16_000})
        told(store)
        assert contacts.resolve(TENANT, [ANN], {"t0": None}).created is False
        assert types(store) == ["updated"]


class CallerContactContract:
    """In the transaction of the caller's own connection."""

    def test_a_rolled_back_resolve_leaves_nothing(self, contacts: Contacts, store: Store, connect: Connect) -> None:
        connection = connect()
        contacts.resolve_in(connection, TENANT, [ANN])
        connection.rollback()
        connection.close()
        assert contacts.find(TENANT, *ANN) is None
        assert types(store) == []

    def test_a_committed_resolve_is_there_with_its_events(
        self, contacts: Contacts, store: Store, connect: Connect
    ) -> None:
        connection = connect()
        made = contacts.resolve_in(connection, TENANT, [ANN])
        answers = contacts.resolve_many_in(connection, TENANT, [([ANN, COOKIE], None), ([COOKIE], {"n": 1})])
        connection.commit()
        connection.close()
        assert [answer.contact_id for answer in answers] == [made.contact_id] * 2
        assert types(store) == ["created", "updated", "updated"]

    def test_a_resolve_that_fails_half_way_leaves_nothing(self, contacts: Contacts, store: Store) -> None:
        store.declare(Channel(name="events", max_backlog_bytes=200))
        contacts.resolve(TENANT, [ANN])
        with pytest.raises(BacklogFull):
            contacts.resolve(TENANT, [PHONE])
        assert contacts.find(TENANT, *PHONE) is None
        assert types(store) == ["created"]

    def test_one_that_fails_leaves_nothing_of_itself_in_the_callers_transaction(
        self, contacts: Contacts, store: Store, connect: Connect
    ) -> None:
        store.declare(Channel(name="events", max_backlog_bytes=200))
        connection = connect()
        contacts.resolve_in(connection, TENANT, [ANN])
        with pytest.raises(BacklogFull):
            contacts.resolve_in(connection, TENANT, [PHONE])
        connection.commit()
        connection.close()
        assert contacts.find(TENANT, *PHONE) is None

    def test_the_channel_is_declared_when_nobody_has(self, contacts: Contacts, store: Store) -> None:
        assert "events" not in store.channels()
        contacts.resolve(TENANT, [ANN])
        assert store.channels()["events"].mode == "ordered"

    def test_a_channel_that_somebody_has_declared_stays_as_it_is(self, contacts: Contacts, store: Store) -> None:
        store.declare(Channel(name="events", batch_rows=7))
        contacts.resolve(TENANT, [ANN])
        assert store.channels()["events"] == Channel(name="events", batch_rows=7)


class ArrivalContract:
    """Contact objects of ingested events."""

    def arrive(self, contacts: Contacts, connect: Connect, *objects: Any) -> list[Any]:
        connection = connect()
        arrivals = [Arrival(f"event-{number}", one) for number, one in enumerate(objects)]
        answers: list[Any] = contacts.arrive_in(connection, TENANT, arrivals)
        connection.commit()
        connection.close()
        return answers

    def test_nothing_happens_unless_the_tenant_has_turned_it_on(
        self, contacts: Contacts, store: Store, connect: Connect
    ) -> None:
        contacts.turn_on("other")
        assert self.arrive(contacts, connect, {"email": ANN[1]}, {"email": 5}) == [None, None]
        assert contacts.find(TENANT, *ANN) is None
        assert store.channels().keys() <= {"outbox"}

    def test_both_forms_are_resolved(self, contacts: Contacts, connect: Connect) -> None:
        contacts.turn_on(TENANT)
        long, none, short = self.arrive(
            contacts,
            connect,
            {"identities": [{"type": "email", "value": ANN[1]}], "traits": {"plan": "pro"}},
            None,
            {"email": "ANN@example.org", "phone": None, "anonymous_id": "cookie-1", "city": "Oslo", "traits": {"n": 1}},
        )
        assert none is None
        assert (long.created, short.created, long.contact_id) == (True, False, short.contact_id)
        assert known_by(contacts, long.contact_id) == {ANN, COOKIE}
        assert contacts.get(TENANT, long.contact_id).traits == {"plan": "pro", "city": "Oslo", "n": 1}

    def test_bad_objects_are_told_and_the_others_are_resolved(
        self, contacts: Contacts, store: Store, connect: Connect
    ) -> None:
        contacts.turn_on(TENANT)
        *refused, good = self.arrive(contacts, connect, *BAD_OBJECTS, {"anonymous_id": "cookie-1"})
        assert {type(answer) for answer in refused} == {Refused}
        assert good.created
        *events, last = told(store)
        assert {(event.type, event.group, event.tenant_id) for event in events} == {
            ("contact.refused.v1", None, TENANT)
        }
        assert [event.body for event in events] == [
            {"tenant_id": TENANT, "event_id": f"event-{number}", "problem": answer.problem}
            for number, answer in enumerate(refused)
        ]
        assert last.type == "contact.created.v1"

    def test_it_is_turned_on_and_off(self, contacts: Contacts) -> None:
        assert [contacts.turn_on(TENANT), contacts.turn_on(TENANT), contacts.turn_on("b")] == [True, False, True]
        assert [tenant for tenant, _ in contacts.tenants()] == [TENANT, "b"]
        assert [contacts.turn_off(TENANT), contacts.turn_off(TENANT)] == [True, False]
        assert [tenant for tenant, _ in contacts.tenants()] == ["b"]
