from __future__ import annotations

import gc
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest

from carrick.errors import InvalidInput
from carrick.sinks.kafka_messages import Message, TopicTemplate, cloud_event_headers, headers_of, is_topic_name
from tests.entries import claimed

ID = UUID("0198c0de-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("template", "topic"),
    [
        ("{event_type}", "invoice.paid"),
        ("shop.{event_type}", "shop.invoice.paid"),
        ("{channel}", "billing"),
        ("{tenant_id}-{channel}", "acme-billing"),
        ("events", "events"),
    ],
)
def test_the_topic_is_made_from_the_template(template: str, topic: str) -> None:
    entry = claimed(event_type="invoice.paid", channel="billing", tenant_id="acme")
    assert TopicTemplate(template).of(entry) == topic


@pytest.mark.parametrize("template", ["{color}", "{}", "{0}", "{event_type.x}", "{event_type!r}", "{event_type:>9}"])
def test_an_unknown_placeholder_is_refused_by_name(template: str) -> None:
    with pytest.raises(InvalidInput, match="unknown placeholder.*event_type"):
        TopicTemplate(template)


@pytest.mark.parametrize("template", ["", "a b", "{event_type", "über", "..", "x" * 250])
def test_a_template_that_makes_no_topic_name_is_refused(template: str) -> None:
    with pytest.raises(InvalidInput, match="^topic: "):
        TopicTemplate(template)


@pytest.mark.parametrize(
    ("template", "one"), [("events", True), ("{channel}.x", True), ("{event_type}", False), ("{tenant_id}", False)]
)
def test_a_template_tells_whether_a_channel_has_one_topic(template: str, one: bool) -> None:
    assert TopicTemplate(template).one_topic is one


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 249, "..."])
def test_names_that_kafka_takes(name: str) -> None:
    assert is_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "x" * 250, "a\n"])
def test_names_that_kafka_refuses(name: str) -> None:
    assert not is_topic_name(name)


def test_headers_tell_what_the_entry_is() -> None:
    entry = claimed(id=ID, event_type="invoice.paid", tenant_id="acme", traceparent="00-1-2-01")
    assert headers_of(entry, str(ID)) == {
        "carrick-id": str(ID),
        "carrick-event-type": "invoice.paid",
        "carrick-tenant": "acme",
        "traceparent": "00-1-2-01",
    }


def test_an_entry_without_tenant_and_trace_has_no_headers_for_them() -> None:
    assert headers_of(claimed(), str(ID)).keys() == {"carrick-id", "carrick-event-type"}


def test_own_headers_are_text_and_what_is_not_text_becomes_json() -> None:
    entry = claimed(headers={"device": "gate 7 ü", "n": 1.5, "yes": True, "list": [1, "a"], "none": None})
    assert headers_of(entry, "") | {"carrick-event-type": ""} == {
        "carrick-id": "",
        "carrick-event-type": "",
        "device": "gate 7 ü",
        "n": b"1.5",
        "yes": b"true",
        "list": b'[1,"a"]',
        "none": None,
    }


def test_the_entrys_trace_counts_more_than_an_own_header_of_that_name() -> None:
    traced = claimed(traceparent="00-1-2-01", headers={"traceparent": "other"})
    assert headers_of(traced, str(ID))["traceparent"] == "00-1-2-01"
    untraced = claimed(headers={"traceparent": "own"})
    assert headers_of(untraced, str(ID))["traceparent"] == "own"


def test_an_own_header_cannot_pass_for_one_of_carricks() -> None:
    entry = claimed(id=ID, headers={"carrick-id": "forged", "carrick-tenant": "forged"})
    assert headers_of(entry, str(ID)).keys() == {"carrick-id", "carrick-event-type"}
    assert headers_of(entry, str(ID))["carrick-id"] == str(ID)


def test_cloud_events_have_the_headers_of_binary_mode() -> None:
    occurred = datetime(2026, 3, 4, 5, 6, 7, 891000, tzinfo=timezone(timedelta(hours=2)))
    entry = claimed(id=ID, event_type="invoice.paid", group_key="acc-1", occurred_at=occurred)
    headers = cloud_event_headers("/shop")(entry, str(ID))
    assert (
        headers.items()
        >= {
            "ce_specversion": "1.0",
            "ce_id": str(ID),
            "ce_source": "/shop",
            "ce_type": "invoice.paid",
            "ce_time": "2026-03-04T03:06:07.891000Z",
            "ce_partitionkey": "acc-1",
            "content-type": "application/json",
            "carrick-id": str(ID),
        }.items()
    )


def test_cloud_events_say_by_default_which_channel_they_come_from_and_when_they_were_put() -> None:
    headers = cloud_event_headers(None)(claimed(channel="billing"), str(ID))
    assert (headers["ce_source"], headers["ce_time"]) == ("/carrick/billing", "2026-01-02T03:04:05Z")


def test_an_own_header_cannot_pass_for_one_of_a_cloud_event() -> None:
    headers = cloud_event_headers(None)(claimed(headers={"ce_id": "forged"}), str(ID))
    assert headers["ce_id"] == str(ID)


def test_messages_are_nothing_that_the_garbage_collector_must_look_at() -> None:
    message = Message("topic", "group", b"{}", headers_of(claimed(headers={"n": 1}), str(ID)))
    assert not gc.is_tracked(message)
    assert not gc.is_tracked(message.headers)
