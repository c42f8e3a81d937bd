from __future__ import annotations

from typing import Any

import pytest

from carrick.contacts.arrival import contacts_in, request_of
from carrick.errors import InvalidInput
from carrick.testing.contract.contacts import BAD_OBJECTS


def asked(contact: Any) -> tuple[list[tuple[str, str]], bytes]:
    request = request_of(contact, "GB")
    return [(one.type.value, one.normalised) for one in request.identities], request.traits


@pytest.mark.parametrize(
    ("contact", "identities", "traits"),
    [
        ({"identities": [{"type": "email", "value": "A@x"}]}, [("email", "a@x")], b"{}"),
        ({"identities": [("email", "A@x")], "traits": {"n": 1}}, [("email", "a@x")], b'{"n":1}'),
        ({"identities": [("email", "A@x")], "traits": None}, [("email", "a@x")], b"{}"),
        ({"email": "A@x", "n": 1}, [("email", "a@x")], b'{"n":1}'),
        ({"phone": "020 7946 0958", "email": None}, [("phone", "+442079460958")], b"{}"),
        ({"anonymous_id": "c", "external_id": "e"}, [("external_id", "e"), ("anonymous_id", "c")], b"{}"),
        ({"email": "a@x", "n": 1, "traits": {"n": 2, "m": 3}}, [("email", "a@x")], b'{"n":2,"m":3}'),
    ],
)
def test_both_forms_of_a_contact_object_are_read(contact: Any, identities: Any, traits: bytes) -> None:
    assert asked(contact) == (identities, traits)


@pytest.mark.parametrize("contact", BAD_OBJECTS, ids=repr)
def test_what_is_no_contact_object_is_refused(contact: Any) -> None:
    with pytest.raises(InvalidInput, match="accepted: "):
        request_of(contact)


@pytest.mark.parametrize(
    ("payloads", "found"),
    [
        ([], None),
        ([b'{"n":1}', b"7"], None),
        ([b'["contact"]', b'{"note":"contact"}', b'{"deep":{"contact":1}}'], None),
        ([b'{"contact":null}'], None),
        ([b'{"n":1}', b'{"contact":{"email":"a@x"}}', b'["contact"]'], [None, {"email": "a@x"}, None]),
        ([b'{"\\u0063ontact":5}'], [5]),
        ([b'{"contact":1}', b'{"n":1e999}', b'{"contact":null,"n":1e999}'], [1, None, None]),
        ([b'{"contact":{"n":1e999},"contact":{"n":1}}'], [{"n": 1}]),
    ],
)
def test_the_contact_of_a_payload_is_found_at_its_top_only(payloads: list[bytes], found: Any) -> None:
    assert contacts_in(payloads) == found


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 5000])
def test_a_contact_with_a_number_out_of_range_is_refused(number: bytes) -> None:
    (found,) = contacts_in([b'{"contact":{"email":"a@x","score":%s}}' % number]) or []
    with pytest.raises(InvalidInput, match="contact: cannot be read .*; accepted: numbers in range"):
        request_of(found)
