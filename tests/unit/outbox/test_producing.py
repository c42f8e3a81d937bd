"""What a producer may give, and what is refused before any database sees it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrick.errors import InvalidInput, InvalidPayload
from carrick.outbox.producing import DEEPEST, encode_payload, new_entry


def entry(**fields: Any) -> Any:
    return new_entry(**{"channel": "c", "event_type": "e", "payload": {}} | fields)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_any_json_value_survives_as_json(value: Any) -> None:
    assert json.loads(encode_payload(value)) == value


@given(st.text(st.characters(), max_size=20))
def test_text_with_nul_or_lone_surrogates_survives_as_escapes(text: str) -> None:
    payload = encode_payload({"t": text})
    payload.decode()
    assert json.loads(payload) == {"t": text}


def test_bytes_are_never_re_encoded() -> None:
    given_bytes = b' {"b" : 1.0,\n "a":"\\u0000 \xc3\xa9" } '
    assert encode_payload(given_bytes) == given_bytes


def test_a_struct_is_a_payload() -> None:
    class Paid(msgspec.Struct):
        invoice: int
        at: datetime

    assert encode_payload(Paid(7, datetime(2026, 1, 2, tzinfo=UTC))) == b'{"invoice":7,"at":"2026-01-02T00:00:00Z"}'


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"a": NaN}',
        b"\xff\xfe",
        b'"\xed\xa0\x80"',
        b'"raw \x00 control"',
        b"1 2",
        float("nan"),
        float("inf"),
        {"deep": float("-inf")},
        {1, 2},
        object(),
        {b"bytes": 1},
        {"at": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
    ids=range(15),
)
def test_what_is_not_json_is_refused_by_name(payload: Any) -> None:
    with pytest.raises(InvalidPayload, match=r"^payload: .*; accepted: a JSON value"):
        encode_payload(payload)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidPayload):
        encode_payload(loop)


@pytest.mark.parametrize("levels", [DEEPEST + 1, 100_000])
def test_deep_nesting_is_refused(levels: int) -> None:
    with pytest.raises(InvalidPayload):
        encode_payload(b"[" * levels + b"]" * levels)


def test_brackets_inside_text_are_not_nesting() -> None:
    text = json.dumps("[{" * 500 + '\\"').encode()
    assert encode_payload(text) == text


@pytest.mark.parametrize("field", ["channel", "event_type", "key", "tenant_id", "group", "principal"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("x" * 256, "256 characters"),
        ("a\x00b", "NUL"),
        ("\ud800", "lone surrogate"),
        (7, "not text"),
        ("x" * 10_000_000, "characters"),
    ],
    ids=["long", "nul", "surrogate", "number", "10MB"],
)
def test_bad_text_is_refused_with_the_name_of_its_field(field: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refused:
        entry(**{field: value})
    assert refused.value.field == field


@pytest.mark.parametrize("field", ["channel", "event_type", "key", "group", "principal"])
def test_empty_text_is_refused_where_it_means_nothing(field: str) -> None:
    with pytest.raises(InvalidInput, match="is empty"):
        entry(**{field: ""})


def test_255_characters_are_accepted() -> None:
    assert entry(key="k" * 255).key == "k" * 255


@pytest.mark.parametrize("priority", [-1001, 1001, 10**30, 1.5, "1", True])
def test_an_absurd_priority_is_refused(priority: Any) -> None:
    with pytest.raises(InvalidInput, match="^priority: "):
        entry(priority=priority)


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 10**12, "5", True, timedelta(seconds=-1)])
def test_an_absurd_delay_is_refused(delay: Any) -> None:
    with pytest.raises(InvalidInput, match="^delay: "):
        entry(delay=delay)


def test_a_delay_may_be_a_timedelta() -> None:
    made = entry(delay=timedelta(minutes=1), max_wait=90)
    assert (made.delay_seconds, made.max_wait_seconds) == (60.0, 90.0)


def test_max_wait_without_delay_is_refused() -> None:
    with pytest.raises(InvalidInput, match="^max_wait: given without delay"):
        entry(max_wait=5)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="^occurred_at: "):
        entry(occurred_at=datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_its_zone_takes_out_of_the_calendar_is_refused(moment: str) -> None:
    with pytest.raises(InvalidInput, match=r"^occurred_at: is out of range; accepted: the years 2 to 9998$"):
        entry(occurred_at=datetime.fromisoformat(moment))


@pytest.mark.parametrize("year", [1, 9999])
def test_a_year_that_no_ingest_takes_is_refused(year: int) -> None:
    with pytest.raises(InvalidInput, match=r"^occurred_at: is out of range; accepted: the years 2 to 9998$"):
        entry(occurred_at=datetime(year, 6, 1, tzinfo=UTC))


@pytest.mark.parametrize("year", [2, 9998])
def test_the_first_and_the_last_year_that_an_ingest_takes_are_accepted(year: int) -> None:
    moment = datetime(year, 6, 1, tzinfo=UTC)
    assert entry(occurred_at=moment).occurred_at == moment


@pytest.mark.parametrize("payload", [rb'"\ud83d"', rb'{"a":"\udfff and more"}', rb'"\ud83d\u0041"'])
def test_half_of_a_surrogate_pair_in_bytes_is_refused_by_name(payload: bytes) -> None:
    with pytest.raises(InvalidPayload, match=r"^payload: contains a lone surrogate; accepted: whole surrogate pairs$"):
        encode_payload(payload)


@pytest.mark.parametrize(
    "headers",
    [[], "x", {1: 2}, {"a": object()}, {"a": "\x00"}, {"a": "\ud800"}, {"a": "x" * 70_000}, {"n": float("nan")}],
)
def test_bad_headers_are_refused(headers: Any) -> None:
    with pytest.raises(InvalidInput, match="^headers: "):
        entry(headers=headers)


def test_headers_become_json() -> None:
    assert entry(headers={"farm_id": 7, "nested": {"a": [1]}}).headers == b'{"farm_id":7,"nested":{"a":[1]}}'
