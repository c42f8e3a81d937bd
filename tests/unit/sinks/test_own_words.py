"""Whose words an answer is in."""

from __future__ import annotations

import pytest

from carrick.sinks.own_words import own_words


@pytest.mark.parametrize("body", [b"", b" \r\n", b"{}"])
def test_who_says_nothing_says_nothing_strange(body: bytes) -> None:
    assert own_words(body) == {}


def test_a_json_object_is_the_destinations() -> None:
    assert own_words(b' {"error":"no"} ') == {"error": "no"}


@pytest.mark.parametrize(
    "body", [b"<html>", b"Forbidden", b"[]", b'"no"', b"false", b"{", b'{"a":"\xff"}', b"[" * 100_000, b'{"a":1}<p>']
)
def test_anything_else_is_a_strangers(body: bytes) -> None:
    assert own_words(body) is None
