from __future__ import annotations

from carrick.contacts.identity import given_identities
from carrick.contacts.sqlite.rules import Found, changed_traits, joined_traits, plan, traits_after


def found(seq: int, external_id: str | None = None, **traits: object) -> Found:
    return Found(f"c{seq}", seq, external_id, dict(traits), ())


def test_the_given_external_id_decides() -> None:
    one, two, loose = found(1, "one"), found(2, "two"), found(3)
    chosen = plan(given_identities([("external_id", "two"), ("email", "a@x")]), [one, two, loose])
    assert (chosen.external_id, chosen.joined, chosen.apart) == ("two", [two, loose], [one])


def test_else_the_first_found_that_has_one() -> None:
    loose, two, one = found(3), found(2, "two"), found(1, "one")
    chosen = plan(given_identities([("email", "a@x")]), [loose, two, one])
    assert (chosen.external_id, chosen.joined, chosen.apart) == ("two", [two, loose], [one])


def test_nobody_found_is_nobody_joined() -> None:
    assert plan(given_identities([("external_id", "e")]), []) == ("e", [], [])
    assert plan(given_identities([("email", "a@x")]), []) == (None, [], [])


def test_the_oldest_contacts_traits_stay() -> None:
    assert joined_traits([found(1, a=1), found(2, a=2, b=2), found(3, b=3, c=3)]) == {"a": 1, "b": 2, "c": 3}


def test_a_trait_changes_when_its_json_value_does() -> None:
    known = {"a": 1, "b": True, "c": None}
    assert changed_traits(known, {"a": 1.0, "b": 1, "c": None, "d": None, "e": {}}) == {"b": 1, "e": {}}


def test_none_removes_a_trait() -> None:
    assert traits_after({"a": 1, "b": 2}, {"a": None, "c": 3}) == {"b": 2, "c": 3}
