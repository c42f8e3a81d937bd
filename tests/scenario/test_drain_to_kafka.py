"""`carrick drain --to kafka`: the command as cron and operators use it, read back by a consumer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from carrick.cli import run
from carrick.entry import State
from carrick.errors import EntryNotFound
from carrick.outbox.channel import MIB, Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from carrick.testing.samples import put, sample, states
from tests.kafka_cluster import MockCluster, read_back
from tests.scenario.conftest import Shared
from tests.scenario.processes import Process, until


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as cluster:
        yield cluster


@pytest.fixture
def store(shared: Shared, cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("DATABASE_URL", shared.url)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    with closing(open_store(shared.url)) as store:
        store.declare(Channel(name="events", mode=Mode.ORDERED))
        yield store


def drain(*options: str) -> int:
    return run(["drain", "--channel", "events", "--to", "kafka", *options])


def test_once_delivers_what_is_due_and_says_so(
    store: Store, cluster: MockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = cluster.new_topic()
    entries = [
        sample("events", event_type=topic, group_key="contact-1", tenant_id="t", payload=f'{{"n": {n}}}'.encode())
        for n in range(20)
    ]
    ids = [answer.id for answer in store.put_many(entries)]
    later = put(store, "events", delay_seconds=3600)
    assert drain("--once") == 0
    said = "events: claimed 20, delivered 20, retried 0, dead 0, released 0, held 0, troubled 0\n"
    assert capsys.readouterr().out == said
    messages = read_back(cluster.bootstrap_servers, topic, 20)
    assert [message.value() for message in messages] == [entry.payload for entry in entries]
    assert {message.key() for message in messages} == {b"contact-1"}
    assert set(states(store, ids)) == {State.DELIVERED}
    assert states(store, [later]) == [State.PENDING]


def test_a_template_names_the_topic(store: Store, cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    prefix, _, rest = topic.partition("-")
    put(store, "events", event_type=rest, payload=b"1")
    assert drain("--once", "--topic", f"{prefix}-{{event_type}}") == 0
    assert [message.value() for message in read_back(cluster.bootstrap_servers, topic, 1)] == [b"1"]


def test_once_removes_what_is_past_its_retention(store: Store, cluster: MockCluster) -> None:
    store.declare(Channel(name="events", retention_days=0))
    old = put(store, "events", event_type=cluster.new_topic())
    assert drain("--once") == 0
    with pytest.raises(EntryNotFound):
        store.standing(old)


def test_cloud_events_carry_the_source_that_was_asked_for(store: Store, cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    put(store, "events", event_type=topic)
    assert drain("--once", "--cloud-events", "--source", "/shop") == 0
    (message,) = read_back(cluster.bootstrap_servers, topic, 1)
    assert dict(message.headers() or [])["ce_source"] == b"/shop"


def test_once_without_a_broker_says_what_is_left(
    store: Store, cluster: MockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, "events", event_type=cluster.new_topic())
    cluster.stop()
    assert drain("--once") == 1
    said = "events: claimed 1, delivered 0, retried 0, dead 0, released 1, held 1, troubled 0\n"
    assert capsys.readouterr().out == said


def test_once_fails_while_something_waits_that_an_earlier_run_has_tried_in_vain(
    store: Store, cluster: MockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    store.declare(Channel(name="events", mode=Mode.ORDERED, backoff_base_seconds=3600, backoff_cap_seconds=3600))
    topic = cluster.new_topic()
    cluster.fail_topic("forbidden", KafkaError.TOPIC_AUTHORIZATION_FAILED)
    put(store, "events", event_type="forbidden", group_key="g")
    assert drain("--once") == 1
    put(store, "events", event_type=topic, group_key="g")
    put(store, "events", event_type=topic, group_key="h")
    capsys.readouterr()
    assert drain("--once") == 1
    said = "events: claimed 1, delivered 1, retried 0, dead 0, released 0, held 0, troubled 1\n"
    assert capsys.readouterr().out == said
    assert (drain("--once", "--json"), json.loads(capsys.readouterr().out)["troubled"]) == (1, {"events": 1})


def test_the_largest_payload_that_a_channel_takes_is_delivered(store: Store, cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    payload = b'"' + b"x" * (MIB - 2) + b'"'
    put(store, "events", event_type=topic, payload=payload, headers=b'{"more":"' + b"y" * 60_000 + b'"}')
    assert drain("--once") == 0
    assert [message.value() for message in read_back(cluster.bootstrap_servers, topic, 1)] == [payload]


def test_a_message_larger_than_the_variable_allows_is_dead_and_names_it(
    store: Store, cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_MESSAGE_MAX_BYTES", "5000")
    fits = put(store, "events", event_type=cluster.new_topic(), payload=b'"' + b"x" * 4_000 + b'"')
    large = put(store, "events", event_type=cluster.new_topic(), payload=b'"' + b"x" * 5_000 + b'"')
    assert drain("--once") == 1
    assert states(store, [fits, large]) == [State.DELIVERED, State.DEAD]
    assert "5000 (KAFKA_MESSAGE_MAX_BYTES)" in str(store.standing(large).last_error_message)


def test_a_file_without_certificates_is_named_with_its_variable(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del store
    (tmp_path / "ca.pem").write_text("nothing of the kind")
    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "SSL")
    monkeypatch.setenv("KAFKA_CA_FILE", str(tmp_path / "ca.pem"))
    assert drain("--once") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"carrick: KAFKA_CA_FILE='{tmp_path / 'ca.pem'}' is not acceptable; accepted: a PEM file")


def test_a_running_drain_delivers_what_is_put_and_stops_cleanly(
    shared: Shared, store: Store, cluster: MockCluster, tmp_path: Path
) -> None:
    topic = cluster.new_topic()
    arguments = ["-m", "carrick", "drain", "--channel", "events", "--to", "kafka"]
    environment = {"DATABASE_URL": shared.url, "KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}
    with Process(arguments, tmp_path, environment) as process:
        ids = [put(store, "events", event_type=topic) for _ in range(3)]
        until(lambda: set(states(store, ids)) == {State.DELIVERED}, "they are delivered")
        assert process.stop() == 0
    assert len(read_back(cluster.bootstrap_servers, topic, 3)) == 3
