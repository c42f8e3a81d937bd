"""Batches: what is read of them, what is wrong with all of one, and what is wrong with one event."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from carrick.ingest.problems import TooLarge, Unreadable
from tests.batches import batch, body, event, numbered, read


def test_a_batch_is_read_with_its_payloads_as_they_came() -> None:
    text = body(event("a", payload="P"), event("b")).replace(b'"P"', b'{ "n" : 1.00,"n":2 }')
    found = read(text)
    assert (found.tenant_id, found.edge_id, found.repeated, found.faults) == ("farm-1", "gate-7", 0, [])
    assert [arrival.payload for arrival in found.arrivals] == [b'{ "n" : 1.00,"n":2 }', b'{"celsius": 21.5}']
    assert found.arrivals[0].occurred_at == 1777636800_000001


def test_only_id_type_and_payload_are_needed() -> None:
    found = read(b'{"tenant_id": "t", "events": [{"event_id": "a", "event_type": "x", "payload": null}]}')
    assert (found.arrivals[0].event_id, found.arrivals[0].occurred_at, found.edge_id) == ("a", None, None)


def test_an_empty_batch_is_a_batch() -> None:
    assert len(read(body()).arrivals) == 0


def test_a_batch_without_a_tenant_of_its_own_is_accepted() -> None:
    assert read(body(event(tenant_id=""), tenant_id="")).tenant_id == ""


def test_further_fields_are_kept_as_they_came() -> None:
    text = body(event("a", device_id="d-7", more="M"), event("b")).replace(b'"M"', b'{"x" : 1.0}')
    first, second = read(text).arrivals
    assert (first.extra, second.extra) == (b'{"device_id":"d-7","more":{"x" : 1.0}}', None)


def test_an_id_that_comes_again_counts_once() -> None:
    found = read(body(event("a", payload=1), event("b"), event("a", payload=2)))
    assert [(arrival.event_id, arrival.payload) for arrival in found.arrivals] == [
        ("a", b"1"),
        ("b", b'{"celsius": 21.5}'),
    ]
    assert found.repeated == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"tenant_id": "t", "events": []} x', "not JSON"),
        (b"\xff", "not UTF-8 (invalid start byte at byte 0)"),
        (body(event(payload="x")).replace(b'"x"', b'"\xff"'), "not UTF-8"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
        (b'{"events": []}', "missing required field `tenant_id`"),
        (b'{"tenant_id": "t"}', "missing required field `events`"),
        (b'{"tenant_id": 1, "events": []}', "Expected `str`, got `int` at $.tenant_id"),
        (b'{"tenant_id": "t", "events": {}}', "Expected `array`, got `object` at $.events"),
        (body(tenant_id="x" * 256), "length <= 255 at $.tenant_id"),
        (body(edge_id="x" * 256), "length <= 255 at $.edge_id"),
        (body(tenant_id="a\0b"), "contains a NUL character at $.tenant_id"),
        (body(edge_id="a\0b"), "contains a NUL character at $.edge_id"),
        (body(sent_at="yesterday"), "at $.sent_at"),
        (body(event(payload=1)).replace(b"1}", b"01}"), "not JSON"),
        (body(event(payload="x")).replace(b'"x"', b'"\x01"'), "not JSON"),
        (b"[" * 5000 + b"]" * 5000, "Expected `object`, got `array`"),
        (b'{"tenant_id": "t", "events": ' + b"[" * 5000, "nested deeper than 200 levels, and does not end"),
        (
            b'{"tenant_id": "t", "events": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "deeper than 10,000 levels at byte",
        ),
        (b'{"tenant_id": "t", "events": [' + b'{"a":' * 100_000, "deeper than 10,000 levels at byte"),
    ],
)
def test_a_malformed_batch_is_refused_with_the_path_of_the_fault(text: bytes, said: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(text)
    assert str(refused.value).startswith("body: ")
    assert said in str(refused.value)


def test_a_thousand_events_are_accepted_and_one_more_is_too_many() -> None:
    assert len(read(body(*numbered(1000))).arrivals) == 1000
    with pytest.raises(TooLarge, match="more than 1,000 events; accepted: at most 1,000"):
        read(body(*numbered(1001)))
    with pytest.raises(TooLarge, match="more than 1,000 events"):
        read(b'{"tenant_id": "t", "events": [' + b",".join([b"0"] * 100_000) + b"]}")


def test_the_tenant_of_the_header_must_be_the_batch_s() -> None:
    assert read(body(event()), tenant_header="farm-1").arrivals
    with pytest.raises(Unreadable, match="x-tenant-id"):
        read(body(event()), tenant_header="farm-2")


FAULTS: list[tuple[Any, str]] = [
    (event("bad", event_type=7), "Expected `str`, got `int` at $.event_type"),
    (event("bad", event_type=""), "length >= 1 at $.event_type"),
    (event("bad", event_type="x" * 256), "length <= 255 at $.event_type"),
    (event("bad", event_type="a\0"), "must not contain NUL"),
    (event("bad", occurred_at="yesterday"), "at $.occurred_at"),
    (event("bad", occurred_at="2026-05-01T12:00:00"), "at $.occurred_at"),
    (event("bad", occurred_at="0001-01-01T00:00:00+14:00"), "out of range"),
    (event("bad", occurred_at="9999-12-31T23:59:59-14:00"), "out of range"),
    (event("bad", trace_id=7), "at $.trace_id"),
    (event("bad", trace_id="a\0"), "must not contain NUL"),
    (event("bad", tenant_id="farm-2"), "tenant_id: is not that of the batch"),
    (event("bad", schema_version="2.0"), "schema_version: '2.0' is not known; accepted: 1.0"),
    ({"event_id": "bad", "event_type": "x"}, "missing required field `payload`"),
    (event("bad", payload=json.loads("[" * 101 + "]" * 101)), "nested deeper than 100 levels"),
    (event("bad", payload="x" * 2000), "payload: has 2,002 bytes; accepted: at most 1,000"),
    (event("bad", more="x" * 70_000), "the further fields have 70,"),
    (event("bad", more="a\0"), "a further field contains NUL"),
    (event("bad", more=json.loads("[" * 101 + "]" * 101)), "nested too deeply"),
]


@pytest.mark.parametrize(("bad", "said"), FAULTS)
def test_a_bad_event_is_named_and_the_others_go_on(bad: Any, said: str) -> None:
    found = read(body(event("first"), bad, event("last")), max_payload_bytes=1000)
    assert [arrival.event_id for arrival in found.arrivals] == ["first", "last"]
    (fault,) = found.faults
    assert (fault.event_id, fault.index) == ("bad", None)
    assert said in fault.error


@pytest.mark.parametrize(
    "bad",
    [
        7,
        None,
        "x",
        [],
        {},
        event(""),
        event("x" * 256),
        event(7),
        {k: v for k, v in event().items() if k != "event_id"},
    ],
)
def test_an_event_without_a_usable_id_is_named_by_its_place(bad: Any) -> None:
    found = read(body(event("first"), bad, event("last")))
    assert [arrival.event_id for arrival in found.arrivals] == ["first", "last"]
    (fault,) = found.faults
    assert (fault.event_id, fault.index) == (None, 1)


def test_an_id_with_nul_is_refused_for_that_event_only() -> None:
    found = read(body(event("a\0b"), event("b")))
    assert [arrival.event_id for arrival in found.arrivals] == ["b"]
    assert "NUL" in found.faults[0].error


def test_a_further_number_that_is_out_of_range_is_refused_for_that_event_only() -> None:
    found = read(body(event("a", more="N"), event("b")).replace(b'"N"', b"1e400"))
    assert [arrival.event_id for arrival in found.arrivals] == ["b"]
    assert "a further field cannot be kept" in found.faults[0].error


@pytest.mark.parametrize("half", [r"\ud800", r"\uDC00", r"\ud800x", r"\ud800\ud800", r"\udc00\ud800", r"\\\ud800"])
def test_half_a_surrogate_pair_is_refused_for_that_event_only(half: str) -> None:
    text = body(event("a", payload="H"), event("b", payload="F")).replace(b'"H"', f'"{half}"'.encode())
    text = text.replace(b'"F"', rb'"\ud83d\ude00 \\ud800 \ufdd0"')
    found = read(text)
    assert [(arrival.event_id, arrival.payload) for arrival in found.arrivals] == [
        ("b", rb'"\ud83d\ude00 \\ud800 \ufdd0"')
    ]
    (fault,) = found.faults
    assert (fault.event_id, fault.error) == ("a", "contains a lone surrogate; accepted: whole surrogate pairs")


def with_halves(*events: Any, **fields: Any) -> bytes:
    """A batch in which every `HALF` is half of a surrogate pair."""
    return body(*events, **fields).replace(b"HALF", rb"\ud800")


@pytest.mark.parametrize("other", [event("a", device_id="d-7"), event("a", event_type=7)], ids=["further", "fault"])
def test_half_a_surrogate_pair_is_found_behind_an_event_that_is_read_by_itself(other: Any) -> None:
    found = read(with_halves(other, event("b"), event("c", payload="HALF")))
    assert found.arrivals[-1].event_id == "b"
    assert [(fault.event_id, fault.error) for fault in found.faults][-1] == (
        "c",
        "contains a lone surrogate; accepted: whole surrogate pairs",
    )


@pytest.mark.parametrize("field", ["tenant_id", "edge_id"])
@pytest.mark.parametrize("events", [[], [event(device_id="d-7", payload="HALF")]], ids=["alone", "beside another"])
def test_half_a_surrogate_pair_in_the_name_of_a_batch_refuses_it(field: str, events: list[Any]) -> None:
    text = with_halves(*events, **{field: "acme-HALF"})
    with pytest.raises(Unreadable) as refused:
        read(text)
    assert str(refused.value) == f"body: contains a lone surrogate at $.{field}"


@pytest.mark.parametrize("tenant", [rb"\uFDD0", rb"\ufdd0", "\ufdd0".encode()])
def test_a_tenant_whose_name_means_nothing_is_not_taken_for_half_a_surrogate_pair(tenant: bytes) -> None:
    text = with_halves(event("a", tenant_id=None), event("b", payload="HALF"), tenant_id="T").replace(
        b'"T"', b'"%s"' % tenant
    )
    found = read(text)
    assert (found.tenant_id, len(found.arrivals), len(found.faults)) == ("\ufdd0", 1, 1)


def test_an_id_with_half_a_surrogate_pair_is_not_repeated_but_named_by_its_place() -> None:
    found = read(with_halves(event("a"), event("b-HALF")))
    assert [(fault.event_id, fault.index) for fault in found.faults] == [(None, 1)]


def nested(levels: int) -> bytes:
    """A payload with so many levels, and brackets in texts that are none."""
    return b'["]]",' * (levels - 1) + b"[]" + b"]" * (levels - 1)


@pytest.mark.parametrize("levels", [101, 197, 198, 199, 900, 1000, 9_000])
@pytest.mark.parametrize("further", [{}, {"device_id": "d-7"}], ids=["plain", "further"])
def test_a_payload_that_is_nested_too_deeply_is_the_fault_of_its_event(levels: int, further: Any) -> None:
    text = body(event("a"), event("deep", payload="P", **further), event("b", payload="[")).replace(
        b'"P"', nested(levels)
    )
    found = read(text)
    assert [(arrival.event_id, arrival.payload) for arrival in found.arrivals] == [
        ("a", b'{"celsius": 21.5}'),
        ("b", b'"["'),
    ]
    assert [(fault.event_id, fault.error) for fault in found.faults] == [
        ("deep", "payload: nested deeper than 100 levels")
    ]


def test_there_is_no_depth_that_stops_the_reading_of_the_other_events() -> None:
    for levels in range(800, 1010):
        deep = [
            event("deep", payload="P", more=1),
            event("deep-too", payload="P", event_type=7),
            event("last", more="P"),
        ]
        found = read(body(event("a"), *deep).replace(b'"P"', nested(levels)))
        assert [arrival.event_id for arrival in found.arrivals] == ["a"], levels
        assert len(found.faults) == 3, levels


def test_half_a_surrogate_pair_and_deep_nesting_are_faults_of_their_own_events() -> None:
    deep = [event("deep", payload="P"), event("half", payload="HALF"), event("deep-too", payload="P")]
    for events in (deep, deep[::-1], deep[1:], deep[:2]):
        found = read(with_halves(*events, event("a")).replace(b'"P"', nested(3000)))
        assert [arrival.event_id for arrival in found.arrivals] == ["a"]
        assert [fault.event_id for fault in found.faults] == [one["event_id"] for one in events]


def test_nul_in_a_payload_survives() -> None:
    found = read(body(event("a", payload="a\0b")))
    assert found.arrivals[0].payload == rb'"a\u0000b"'


def test_a_message_about_an_event_is_not_longer_than_a_line() -> None:
    found = read(body(event("bad", schema_version="9" * 100_000)))
    assert len(found.faults[0].error) < 500


def test_the_last_of_two_equal_keys_counts() -> None:
    twice = b'{"event_id": "a", "event_id": "b", "event_type": "x", "payload": 1}'
    found = read(b'{"tenant_id": "x", "tenant_id": "t", "events": [' + twice + b"]}")
    assert (found.tenant_id, found.arrivals[0].event_id) == ("t", "b")


def test_further_fields_of_the_batch_are_nobody_s_business() -> None:
    assert read(json.dumps(batch(event("a"), more=1)).encode()).arrivals


def one_event(payload: bytes, further: bytes = b"") -> bytes:
    return b'{"tenant_id":"t","events":[{"event_id":"e","event_type":"x","payload":%b%b}]}' % (payload, further)


SIZE = 500_000
COSTLY = {
    "numbers for events": b'{"tenant_id":"t","events":[' + b"1," * (SIZE // 2) + b"1]}",
    "objects for events": b'{"tenant_id":"t","events":[' + b"{}," * (SIZE // 3) + b"1]}",
    "further fields": one_event(b"1", b"".join(b',"f%d":1' % number for number in range(SIZE // 10))),
    "lone surrogates": one_event(b'"' + rb"\ud800" * (SIZE // 6) + b'"'),
    "backslashes and half a pair": one_event(b'"' + rb"\\" * (SIZE // 2) + rb'\ud800"'),
    "backslashes without an end": one_event(b'"' + rb"\\" * (SIZE // 2))[:-3],
    "empty lists": one_event(b"[" + b"[]," * (SIZE // 3) + b"[]]"),
}


@pytest.mark.parametrize("case", COSTLY)
def test_no_body_costs_many_times_its_size_in_memory(case: str) -> None:
    tracemalloc.start()
    try:
        read(COSTLY[case])
    except (TooLarge, Unreadable):
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 8 * len(COSTLY[case])
