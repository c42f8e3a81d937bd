from __future__ import annotations

from typing import Any

import pytest

from carrick.contacts.identity import (
    MOST_TRAIT_BYTES,
    Identity,
    IdentityType,
    check_tenant,
    given_identities,
    given_traits,
    identity,
)
from carrick.errors import InvalidInput


@pytest.mark.parametrize(
    ("kind", "given", "value", "normalised"),
    [
        ("external_id", " Acct_1 ", " Acct_1 ", " Acct_1 "),
        ("anonymous_id", "C\u0130", "C\u0130", "C\u0130"),
        ("email", " \tAnn@Example.ORG\r\n", "Ann@Example.ORG", "ann@example.org"),
        ("email", "\u0130\u00df\u00c9K@X.ORG", "\u0130\u00df\u00c9K@X.ORG", "\u0130\u00df\u00c9k@x.org"),
        ("email", "\u212aelvin@x.org", "\u212aelvin@x.org", "\u212aelvin@x.org"),
        ("email", '"a@b"@x', '"a@b"@x', '"a@b"@x'),
        ("phone", "+44 (0)20 7946-0958", "+442079460958", "+442079460958"),
        ("phone", "\uff0b1 650 253 0000", "+16502530000", "+16502530000"),
    ],
)
def test_an_identity_has_one_spelling(kind: str, given: str, value: str, normalised: str) -> None:
    assert identity(kind, given) == Identity(IdentityType(kind), value, normalised)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("twitter", "x", r"identity.type: unknown type 'twitter'; accepted: external_id, email, phone, anonymous_id"),
        (None, "x", "identity.type"),
        (["email"], "x", "identity.type"),
        ("external_id", 5, "identity.value: is int, not text"),
        ("external_id", "", "is empty"),
        ("external_id", "x" * 256, "has 256 characters"),
        ("external_id", "a\x00", "NUL"),
        ("anonymous_id", "\ud800", "lone surrogate"),
        ("anonymous_id", None, "not text"),
        ("email", 5, "is int"),
        ("email", "", "is empty"),
        ("email", " ", "is empty"),
        ("email", "ann", "is no e-mail address"),
        ("email", "@x", "is no e-mail address"),
        ("email", "a@", "is no e-mail address"),
        ("email", "a@b@", "is no e-mail address"),
        ("email", "a b@x", "is no e-mail address"),
        ("email", "a\x7f@x", "is no e-mail address"),
        ("email", "a\x00@x", "NUL"),
        ("email", "\ud800@x", "lone surrogate"),
        ("email", "a" * 320 + "@x", "has 322 characters"),
        ("phone", 442079460958, "is int"),
        ("phone", "", "is empty"),
        ("phone", "020 7946 0958", "CONTACTS_DEFAULT_REGION"),
        ("phone", "+44", "is no phone number"),
        ("phone", "+999 1234567", "is no phone number"),
        ("phone", "+44 20 7946 095812345", "too few or too many digits"),
        ("phone", "+44 20 7946 0958 ext. 12", "has an extension"),
        ("phone", "+1" * 100, "has 200 characters"),
        ("phone", "call me", "is no phone number"),
    ],
)
def test_what_is_no_identity_is_refused_with_what_is_accepted(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        identity(kind, value)
    assert "accepted: " in str(caught.value)


def test_a_number_without_plus_is_read_as_of_the_region() -> None:
    assert identity("phone", "020 7946 0958", region="GB").normalised == "+442079460958"
    assert identity("phone", "+1 650 253 0000", region="GB").normalised == "+16502530000"


def test_identities_come_the_strongest_first_and_each_once() -> None:
    given = given_identities(
        [
            {"type": "anonymous_id", "value": "c"},
            ("email", "b@x"),
            ["email", "A@x"],
            ("email", "B@X"),
            ("external_id", "e"),
            ("external_id", "e"),
        ]
    )
    assert [(one.type.value, one.value) for one in given] == [
        ("external_id", "e"),
        ("email", "b@x"),
        ("email", "A@x"),
        ("anonymous_id", "c"),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "has 0 identities"),
        ([("anonymous_id", str(n)) for n in range(21)], "has 21 identities"),
        ([("anonymous_id", "x")] * 10_000, "has 10000 identities"),
        ("email", "is str, not a list"),
        (b"email", "is bytes, not a list"),
        (None, "is NoneType"),
        ({"type": "email", "value": "a@x"}, "is dict"),
        ([5], r"identities\[0\]: 5 is no identity"),
        (["ab"], r"identities\[0\]: 'ab' is no identity"),
        ([{"type": "email"}], "is no identity"),
        ([{"type": "email", "value": "a@x", "more": 1}], "is no identity"),
        ([("email", "a@x"), ("email", "b")], r"identities\[1\]\.value: 'b' is no e-mail"),
        ([("external_id", "a"), ("external_id", "A")], "two different external ids"),
    ],
)
def test_a_list_that_cannot_be_resolved_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        given_identities(given)


def test_traits_are_json() -> None:
    assert given_traits(None) == b"{}"
    assert given_traits({"a": [1, "\u00e9"], "path": "C:\\u0000"}) == '{"a":[1,"\u00e9"],"path":"C:\\\\u0000"}'.encode()


@pytest.mark.parametrize(
    ("traits", "said"),
    [
        (5, "not a mapping"),
        ([], "not a mapping"),
        ({1: 2}, "not a mapping with text keys"),
        ({"a": float("nan")}, "cannot be written as JSON"),
        ({"a": object()}, "cannot be written as JSON"),
        ({"a": "\x00"}, "NUL"),
        ({"\\\x00": 1}, "NUL"),
        ({"a": "\ud800"}, "lone surrogate"),
        ({"a": "x" * MOST_TRAIT_BYTES}, "has 16392 bytes"),
        ({"a": 10**5000}, "cannot be written as JSON"),
    ],
)
def test_traits_that_no_database_can_hold_are_refused(traits: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"traits: .*{said}"):
        given_traits(traits)


def test_deep_traits_are_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="traits: "):
        given_traits({"a": deep})


@pytest.mark.parametrize("tenant", ["", None, 5, "x" * 256, "a\x00", "\ud800"])
def test_a_tenant_is_named_by_text(tenant: Any) -> None:
    with pytest.raises(InvalidInput, match="tenant: "):
        check_tenant(tenant)
