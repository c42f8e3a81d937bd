"""Contacts that turn out to be one, and contacts that must not become one."""

from __future__ import annotations

import pytest

from carrick.contacts.contacts import Contacts
from carrick.contacts.store import Resolved
from carrick.errors import InvalidInput
from carrick.outbox.store import Store
from carrick.testing.contract.contacts import ANN, COOKIE, ONE, PHONE, TENANT, TWO, known_by, told, types


class MergeContract:
    """Several contacts turn out to be one."""

    def test_the_older_survives_and_the_other_becomes_a_tombstone(self, contacts: Contacts, store: Store) -> None:
        old = contacts.resolve(TENANT, [COOKIE], {"city": "Oslo"}).contact_id
        new = contacts.resolve(TENANT, [ANN], {"city": "Rome", "plan": "pro"}).contact_id
        told(store)
        answer = contacts.resolve(TENANT, [ANN, COOKIE])
        assert answer == Resolved(contact_id=old, created=False, merged=(new,))
        (event,) = told(store)
        assert (event.type, event.group) == ("contact.merged.v1", str(old))
        assert event.body == {"tenant_id": TENANT, "contact_id": str(old), "merged_contact_id": str(new)}
        survivor, tombstone = contacts.get(TENANT, old), contacts.get(TENANT, new)
        assert known_by(contacts, old) == {ANN, COOKIE}
        assert survivor.traits == {"city": "Oslo", "plan": "pro"}
        assert (tombstone.merged_into, tombstone.living_id, tombstone.identities) == (old, old, ())
        assert (survivor.merged_into, survivor.living_id) == (None, old)

    def test_a_merge_is_told_once(self, contacts: Contacts, store: Store) -> None:
        contacts.resolve(TENANT, [COOKIE])
        contacts.resolve(TENANT, [ANN])
        contacts.resolve(TENANT, [ANN, COOKIE])
        contacts.resolve(TENANT, [ANN, COOKIE])
        assert types(store) == ["created", "created", "merged"]

    def test_what_is_given_wins_over_what_was_known(self, contacts: Contacts, store: Store) -> None:
        old = contacts.resolve(TENANT, [COOKIE], {"city": "Oslo"}).contact_id
        contacts.resolve(TENANT, [ANN], {"city": "Rome"})
        told(store)
        contacts.resolve(TENANT, [ANN, COOKIE, PHONE], {"city": "Bonn"})
        merged, updated = told(store)
        assert (merged.type, updated.type) == ("contact.merged.v1", "contact.updated.v1")
        assert updated.body["traits"] == {"city": "Bonn"}
        assert updated.body["identities"] == [{"type": "phone", "value": PHONE[1]}]
        assert contacts.get(TENANT, old).traits == {"city": "Bonn"}

    def test_the_external_id_moves_to_the_older_contact(self, contacts: Contacts) -> None:
        old = contacts.resolve(TENANT, [COOKIE]).contact_id
        contacts.resolve(TENANT, [ONE, ANN])
        assert contacts.resolve(TENANT, [ONE, COOKIE]).contact_id == old
        assert known_by(contacts, old) == {COOKIE, ONE, ANN}

    def test_many_become_one_at_once(self, contacts: Contacts, store: Store) -> None:
        made = [contacts.resolve(TENANT, [one], {one[0]: 1, "t": n}) for n, one in enumerate((COOKIE, PHONE, ANN, ONE))]
        first, *others = [answer.contact_id for answer in made]
        told(store)
        answer = contacts.resolve(TENANT, [ONE, ANN, PHONE, COOKIE])
        assert (answer.contact_id, answer.merged) == (first, tuple(others))
        assert types(store) == ["merged"] * 3
        assert contacts.get(TENANT, first).traits == {
            "anonymous_id": 1,
            "phone": 1,
            "email": 1,
            "external_id": 1,
            "t": 0,
        }

    def test_a_chain_of_merges_leads_to_the_living_one(self, contacts: Contacts) -> None:
        one, two, three = (contacts.resolve(TENANT, [identity]).contact_id for identity in (COOKIE, PHONE, ANN))
        contacts.resolve(TENANT, [ANN, PHONE])
        contacts.resolve(TENANT, [PHONE, COOKIE])
        tombstone = contacts.get(TENANT, three)
        assert (tombstone.merged_into, tombstone.living_id) == (two, one)
        assert contacts.resolve(TENANT, [ANN]).contact_id == one


class ConflictContract:
    """Two external ids are two contacts, whatever else ties them together."""

    def test_two_external_ids_stay_apart_and_the_strongest_identity_is_answered(
        self, contacts: Contacts, store: Store
    ) -> None:
        one = contacts.resolve(TENANT, [ONE, ANN]).contact_id
        two = contacts.resolve(TENANT, [TWO, PHONE]).contact_id
        told(store)
        answer = contacts.resolve(TENANT, [PHONE, ANN])
        assert answer == Resolved(contact_id=one, created=False, conflicts=(two,))
        (event,) = told(store)
        assert (event.type, event.group) == ("contact.conflict.v1", str(one))
        assert event.body == {
            "tenant_id": TENANT,
            "contact_id": str(one),
            "external_id": "one",
            "other_contact_id": str(two),
            "other_external_id": "two",
            "identities": [{"type": "phone", "value": PHONE[1]}],
        }
        assert known_by(contacts, one) == {ONE, ANN}
        assert known_by(contacts, two) == {TWO, PHONE}

    def test_a_pair_is_told_once_whichever_way_round(self, contacts: Contacts, store: Store) -> None:
        one = contacts.resolve(TENANT, [ONE, ANN]).contact_id
        two = contacts.resolve(TENANT, [TWO, PHONE]).contact_id
        for _ in range(2):
            assert contacts.resolve(TENANT, [ONE, PHONE]).conflicts == (two,)
            assert contacts.resolve(TENANT, [TWO, ANN]).conflicts == (one,)
        assert types(store) == ["created", "created", "conflict"]

    def test_a_pair_is_not_told_again_after_one_of_them_was_merged(self, contacts: Contacts, store: Store) -> None:
        old = contacts.resolve(TENANT, [COOKIE]).contact_id
        contacts.resolve(TENANT, [ONE, ANN])
        contacts.resolve(TENANT, [TWO, ANN])
        contacts.resolve(TENANT, [ONE, COOKIE])
        assert contacts.resolve(TENANT, [TWO, ANN]).conflicts == (old,)
        assert types(store).count("conflict") == 1

    def test_a_new_external_id_makes_a_new_contact_beside_the_one_that_has_another(
        self, contacts: Contacts, store: Store
    ) -> None:
        one = contacts.resolve(TENANT, [ONE, ANN]).contact_id
        answer = contacts.resolve(TENANT, [TWO, ANN, COOKIE])
        assert (answer.created, answer.conflicts) == (True, (one,))
        assert types(store) == ["created", "created", "conflict"]
        assert known_by(contacts, one) == {ONE, ANN}
        assert known_by(contacts, answer.contact_id) == {TWO, COOKIE}

    def test_a_contact_without_external_id_takes_the_one_that_is_given(self, contacts: Contacts) -> None:
        known = contacts.resolve(TENANT, [ANN]).contact_id
        answer = contacts.resolve(TENANT, [ANN, ONE])
        assert (answer.contact_id, answer.conflicts) == (known, ())
        assert known_by(contacts, known) == {ANN, ONE}

    def test_those_without_external_id_join_the_side_of_the_given_one(self, contacts: Contacts) -> None:
        loose = contacts.resolve(TENANT, [COOKIE]).contact_id
        one = contacts.resolve(TENANT, [ONE, ANN]).contact_id
        answer = contacts.resolve(TENANT, [TWO, ANN, COOKIE])
        assert (answer.contact_id, answer.created, answer.conflicts) == (loose, False, (one,))
        assert known_by(contacts, loose) == {TWO, COOKIE}

    def test_without_one_given_the_strongest_identity_decides_which_external_id(self, contacts: Contacts) -> None:
        loose = contacts.resolve(TENANT, [ANN]).contact_id
        one = contacts.resolve(TENANT, [ONE, PHONE]).contact_id
        two = contacts.resolve(TENANT, [TWO, COOKIE]).contact_id
        answer = contacts.resolve(TENANT, [COOKIE, PHONE, ANN])
        assert answer == Resolved(contact_id=loose, created=False, merged=(one,), conflicts=(two,))
        assert known_by(contacts, loose) == {ANN, ONE, PHONE}
        assert known_by(contacts, two) == {TWO, COOKIE}

    def test_of_identities_of_one_type_the_first_given_is_the_stronger(self, contacts: Contacts) -> None:
        one = contacts.resolve(TENANT, [ONE, ("email", "z@x.org")]).contact_id
        two = contacts.resolve(TENANT, [TWO, ("email", "a@x.org")]).contact_id
        first = contacts.resolve(TENANT, [("email", "z@x.org"), ("email", "a@x.org")])
        second = contacts.resolve(TENANT, [("email", "a@x.org"), ("email", "z@x.org")])
        assert (first.contact_id, second.contact_id) == (one, two)

    def test_every_other_external_id_is_told(self, contacts: Contacts, store: Store) -> None:
        for number in range(3):
            contacts.resolve(TENANT, [("external_id", f"e{number}"), ("email", f"{number}@x.org")])
        told(store)
        contacts.resolve(TENANT, [("email", f"{number}@x.org") for number in range(3)])
        assert [event.body["other_external_id"] for event in told(store)] == ["e1", "e2"]

    def test_two_external_ids_in_one_call_are_refused(self, contacts: Contacts, store: Store) -> None:
        with pytest.raises(InvalidInput, match="two different external ids"):
            contacts.resolve(TENANT, [ONE, ANN, TWO])
        assert types(store) == []
