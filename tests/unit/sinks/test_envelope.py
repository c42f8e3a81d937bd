"""The body of a batch: its form, and payloads byte by byte."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from carrick.entry import Entry
from carrick.sinks.envelope import Event, body_of, by_tenant
from carrick.testing.samples import claimed

SENT_AT = datetime(2026, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)


def batch(*entries: Entry) -> Any:
    return json.loads(body_of(entries, edge_id="edge-1", sent_at=SENT_AT))


def test_a_batch_names_its_tenant_its_edge_and_its_time() -> None:
    body = batch(claimed())
    assert {**body, "events": len(body["events"])} == {
        "tenant_id": "acme",
        "edge_id": "edge-1",
        "sent_at": "2026-05-06T07:08:09.123000Z",
        "events": 1,
    }


def test_an_event_has_the_fields_of_its_entry() -> None:
    entry = claimed(
        7,
        payload=b'{"a":1}',
        occurred_at=datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC),
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )
    assert batch(entry)["events"] == [
        {
            "event_id": "00000000-0000-0000-0000-000000000007",
            "tenant_id": "acme",
            "event_type": "thing.happened",
            "occurred_at": "2025-12-31T23:59:59Z",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "schema_version": "1.0",
            "payload": {"a": 1},
        }
    ]


def test_an_event_without_its_own_time_happened_when_it_was_put() -> None:
    assert batch(claimed())["events"][0]["occurred_at"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize("traceparent", [None, "nonsense"])
def test_an_event_without_a_trace_says_so(traceparent: str | None) -> None:
    assert batch(claimed(traceparent=traceparent))["events"][0]["trace_id"] is None


def test_headers_become_fields_of_the_event() -> None:
    headers = {"farm_id": "f-1", "depth": {"a": [1, None, True]}, "big": 2**80, "ünï": "☃"}
    event = batch(claimed(headers=headers))["events"][0]
    assert {name: event[name] for name in headers} == headers


@pytest.mark.parametrize("name", Event.__struct_fields__)
def test_a_header_does_not_take_the_place_of_a_fixed_field(name: str) -> None:
    forged = claimed(headers={name: "forged", "x": 1}, group_key="barn-7")
    assert batch(forged)["events"][0] == {**batch(claimed(group_key="barn-7"))["events"][0], "x": 1}


@pytest.mark.parametrize("headers", [None, {"farm_id": "f-1"}])
def test_an_event_names_its_group_where_it_has_one(headers: dict[str, Any] | None) -> None:
    grouped, alone = batch(claimed(group_key="barn-7", headers=headers), claimed(headers=headers))["events"]
    assert grouped["group"] == "barn-7"
    assert "group" not in alone


@pytest.mark.parametrize("headers", [None, {"farm_id": "f-1"}])
@pytest.mark.parametrize(
    "payload",
    [
        b'{ "odd" :\n\t[ 1 ,2]  }',
        '{"snow":"☃","escaped":"\\u2603"}'.encode(),
        b'{"huge":1e400,"precise":0.1000000000000000055511151231257827}',
        b'{"twice":1,"twice":2}',
        b'{"event_id":"not-yours","tenant_id":"other"}',
        b"null",
        b'"text with \\"quotes\\" and }]"',
    ],
)
def test_a_payload_arrives_byte_by_byte(payload: bytes, headers: dict[str, Any] | None) -> None:
    body = body_of([claimed(payload=payload, headers=headers)], edge_id="edge-1", sent_at=SENT_AT)
    assert (
        b'"payload":' + payload + (b"}]}" if headers is None else b',"farm_id":"f-1"}]}')
        == body[body.index(b'"payload":') :]
    )


def test_entries_are_parted_by_tenant_in_their_order() -> None:
    entries = [
        claimed(1, tenant_id="b"),
        claimed(2, tenant_id="a"),
        claimed(3, tenant_id="b"),
        claimed(4, tenant_id=""),
    ]
    assert [[entry.seq for entry in part] for part in by_tenant(entries)] == [[1, 3], [2], [4]]


def test_no_entries_make_no_parts() -> None:
    assert by_tenant([]) == []
