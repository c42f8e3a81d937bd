"""Objects inside a body: looked at by their size first."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from carrick.contacts.api import ResolveBody
from carrick.contacts.identity import MOST_TRAIT_BYTES
from carrick.errors import InvalidInput
from carrick.forward.events import Event, entries_of
from carrick.web.objects import object_in
from carrick.web.problems import Problem

NESTED = b'{"a":[' + b"[]," * 300_000 + b"[]]}"
"""As Python's objects this is thirty times larger, and as gzip a thousandth."""


def test_headers_are_not_read_before_their_size_was_looked_at() -> None:
    text = b'{"tenant_id":"t","event_type":"e","payload":1,"headers":' + NESTED + b"}"
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="headers: has 9000"):
            entries_of(msgspec.json.decode(text, type=Event), None)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


def test_traits_are_not_read_before_their_size_was_looked_at() -> None:
    text = b'{"tenant_id":"t","identities":[{"type":"email","value":"a@b.c"}],"traits":' + NESTED + b"}"
    tracemalloc.start()
    try:
        body = msgspec.json.decode(text, type=ResolveBody)
        with pytest.raises(InvalidInput, match="traits: has 9000"):
            object_in("traits", body.traits, MOST_TRAIT_BYTES)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


@pytest.mark.parametrize("text", [b"5", b"[]", b'"a"', b'{"a":1e400}', b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_what_is_no_object_is_refused_by_name(text: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"headers: .*; accepted: an object of at most 100000 bytes"):
        object_in("headers", msgspec.Raw(text), 100_000)


def test_an_object_is_read_and_null_is_none() -> None:
    assert object_in("headers", msgspec.Raw(b'{"a": 1}'), 100) == {"a": 1}
    assert object_in("headers", msgspec.Raw(b"null"), 100) is None
