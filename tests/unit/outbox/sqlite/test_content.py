"""When two payloads are the same content."""

from __future__ import annotations

import pytest

from carrick.outbox.sqlite.content import content_hash, same_json

SAME = [
    ('{"a":1,"b":[true,null]}', ' { "b" : [ true , null ], "a" : 1 } '),
    ("1", "1.0"),
    ("100", "1e2"),
    ("1E+2", "1000e-1"),
    ("-0", "0"),
    ("0.0010", "1e-3"),
    ('"\\u00e4"', '"ä"'),
    ('"\\ud83d\\udc4b"', '"👋"'),
    ('{"a":1,"a":2}', '{"a":2}'),
    ("1e400000", "10e399999"),
]

OTHER = [
    ("1", "true"),
    ("0", "false"),
    ("1", '"1"'),
    ("null", '"null"'),
    ("[1,2]", "[2,1]"),
    ("[]", "{}"),
    ("1", "-1"),
    ("1", "10"),
    ("0.1", "0.10000000000000000000000000000000000001"),
    ('"a"', '"A"'),
    ('"\\ud800"', '"\\ud801"'),
    ('{"a":null}', "{}"),
    ("12345678901234567890123", "12345678901234567890124"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_value_is_the_same_content_however_it_is_written(one: str, other: str) -> None:
    assert same_json(one, other)
    assert content_hash("e", one, None, None) == content_hash("e", other, None, None)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_values_are_other_content(one: str, other: str) -> None:
    assert not same_json(one, other)
    assert content_hash("e", one, None, None) != content_hash("e", other, None, None)


def test_what_no_reader_can_follow_is_compared_as_text() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert same_json(deep, deep)
    assert not same_json(deep, f" {deep}")
    assert content_hash("e", deep, None, None) == content_hash("e", deep, None, None)


def test_event_type_group_and_principal_are_content_and_are_kept_apart() -> None:
    hashes = {
        content_hash("e", "1", None, None),
        content_hash("f", "1", None, None),
        content_hash("e", "1", "g", None),
        content_hash("e", "1", None, "g"),
        content_hash("e", "1", "", None),
    }
    assert len(hashes) == 5
