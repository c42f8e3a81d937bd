"""What the Kafka sink promises, read back by a real consumer: on librdkafka's mock cluster, and on a Kafka of yours.

Set KAFKA_BOOTSTRAP_SERVERS to run the same tests against that Kafka too; it must allow to create topics.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from carrick.entry import Entry, Outcome
from carrick.outbox.outbox import Outbox
from carrick.outbox.sqlite.migrate import migrate
from carrick.relay.meter import Tally
from carrick.relay.relay import Relay, RelaySettings
from carrick.sinks.kafka import KafkaSink
from carrick.sinks.sink import Report, Results, Sink, Unavailable
from carrick.testing.sink_contract import Destination, Silence, SinkContract
from tests.entries import claimed, claimed_run, deliver, deliver_and_close
from tests.kafka_cluster import MockCluster, RealCluster, message_count, read_back

REAL = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "")


@pytest.fixture(params=["mock", "real"] if REAL else ["mock"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MockCluster | RealCluster]:
    if request.param == "real":
        yield RealCluster(REAL)
        return
    with MockCluster(brokers=3) as cluster:
        yield cluster


class KafkaDestination:
    """A topic with one partition; and servers that are not there or say nothing."""

    def __init__(self, cluster: MockCluster | RealCluster) -> None:
        self._servers = cluster.bootstrap_servers
        self._topic = cluster.new_topic()

    @asynccontextmanager
    async def taking(self) -> AsyncIterator[Sink]:
        async with closing(KafkaSink(self._servers, topic=self._topic)) as sink:
            yield sink

    @asynccontextmanager
    async def dead(self) -> AsyncIterator[Sink]:
        async with closing(KafkaSink("127.0.0.1:1", topic=self._topic)) as sink:
            yield sink

    @asynccontextmanager
    async def silent(self) -> AsyncIterator[Silence]:
        asked, gone = asyncio.Event(), asyncio.Event()

        loop = asyncio.get_running_loop()

        async def listen(connection: socket.socket) -> None:
            with connection:
                while await loop.sock_recv(connection, 1024):
                    asked.set()
            gone.set()

        async def accept(listener: socket.socket, group: asyncio.TaskGroup) -> None:
            while True:
                connection, _ = await loop.sock_accept(listener)
                group.create_task(listen(connection))

        # asyncio's own server would leave a task behind when a client that tries again comes as it closes
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            host, port = listener.getsockname()
            async with asyncio.TaskGroup() as group:
                accepting = group.create_task(accept(listener, group))
                async with closing(KafkaSink(f"{host}:{port}", topic=self._topic)) as sink:
                    yield Silence(sink, asked, gone)
                accepting.cancel()

    def received(self) -> list[tuple[str, bytes]]:
        messages = read_back(self._servers, self._topic, message_count(self._servers, self._topic))
        return [(_id(message), message.value() or b"") for message in messages]


def _id(message: Message) -> str:
    value = dict(message.headers() or [])["carrick-id"]
    assert isinstance(value, bytes)
    return value.decode()


@asynccontextmanager
async def closing(sink: KafkaSink) -> AsyncIterator[KafkaSink]:
    try:
        yield sink
    finally:
        await sink.close()


class TestKafkaSink(SinkContract):
    @pytest.fixture
    def destination(self, cluster: MockCluster | RealCluster) -> Destination:
        return KafkaDestination(cluster)


def send(cluster: MockCluster | RealCluster, entries: list[Entry], **options: Any) -> Report:
    return asyncio.run(deliver_and_close(KafkaSink(cluster.bootstrap_servers, **options), entries))


def all_delivered(entries: list[Entry]) -> Results:
    return Results(outcomes={entry.id: Outcome.delivered() for entry in entries})


def test_a_message_has_the_group_as_key_and_the_payload_untouched(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic()
    payload = b'{ "b" : 1,\n"a":"\\u00e9 \xc3\xa9" }'
    entry = claimed(event_type=topic, group_key="account 7 ü", payload=payload)
    assert send(cluster, [entry]) == all_delivered([entry])
    (message,) = read_back(cluster.bootstrap_servers, topic, 1)
    assert (message.key(), message.value()) == ("account 7 ü".encode(), payload)


def test_an_entry_without_a_group_has_no_key(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic()
    send(cluster, [claimed(event_type=topic)])
    (message,) = read_back(cluster.bootstrap_servers, topic, 1)
    assert message.key() is None


def test_headers_arrive_as_text(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic()
    entry = claimed(event_type=topic, tenant_id="acme", traceparent="00-1-2-01", headers={"device": "gate ü", "n": 7})
    send(cluster, [entry])
    (message,) = read_back(cluster.bootstrap_servers, topic, 1)
    assert message.headers() == [
        ("device", "gate ü".encode()),
        ("n", b"7"),
        ("carrick-id", str(entry.id).encode()),
        ("carrick-event-type", topic.encode()),
        ("carrick-tenant", b"acme"),
        ("traceparent", b"00-1-2-01"),
    ]


def test_cloud_events_arrive_in_binary_mode(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic()
    entry = claimed(event_type=topic)
    send(cluster, [entry], cloud_events=True, source="/shop")
    (message,) = read_back(cluster.bootstrap_servers, topic, 1)
    assert (
        dict(message.headers() or []).items()
        >= {
            "ce_specversion": b"1.0",
            "ce_id": str(entry.id).encode(),
            "ce_source": b"/shop",
            "ce_type": topic.encode(),
            "ce_time": b"2026-01-02T03:04:05Z",
            "content-type": b"application/json",
        }.items()
    )


def test_entries_go_to_the_topic_of_the_template(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic()
    prefix, _, rest = topic.partition("-")
    entry = claimed(event_type=rest)
    assert send(cluster, [entry], topic=f"{prefix}-{{event_type}}") == all_delivered([entry])
    assert message_count(cluster.bootstrap_servers, topic) == 1


def test_the_messages_of_a_key_keep_their_order(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic(partitions=4)
    entries = [claimed(event_type=topic, group_key=f"g{n % 7}", payload=str(n).encode()) for n in range(700)]
    assert send(cluster, entries, config={"batch.num.messages": 20}) == all_delivered(entries)
    arrived: dict[bytes, list[int]] = {}
    for message in read_back(cluster.bootstrap_servers, topic, 700):
        arrived.setdefault(message.key() or b"", []).append(int(message.value() or b""))
    assert arrived == {f"g{k}".encode(): list(range(k, 700, 7)) for k in range(7)}


def test_several_deliveries_at_once_all_arrive_once(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic(partitions=2)
    batches = [claimed_run(50, event_type=topic) for _ in range(4)]

    async def together() -> list[Report]:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            return list(await asyncio.gather(*(deliver(sink, batch) for batch in batches)))
        finally:
            await sink.close()

    assert asyncio.run(together()) == [all_delivered(batch) for batch in batches]
    assert message_count(cluster.bootstrap_servers, topic) == 200


def test_a_sink_that_was_cancelled_goes_on_with_the_next_delivery(cluster: MockCluster | RealCluster) -> None:
    topic = cluster.new_topic()
    entries = claimed_run(3, event_type=topic)

    async def story() -> Report:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            task = asyncio.create_task(deliver(sink, claimed_run(3, event_type=topic)))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await deliver(sink, entries)
        finally:
            await sink.close()

    assert asyncio.run(story()) == all_delivered(entries)


def test_a_cluster_that_answers_is_reachable(cluster: MockCluster | RealCluster) -> None:
    async def ask() -> bool:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            return await sink.reachable()
        finally:
            await sink.close()

    assert asyncio.run(ask())


def test_a_free_port_is_unavailable_and_not_reachable() -> None:
    async def ask() -> tuple[Report, bool]:
        sink = KafkaSink("127.0.0.1:1")
        try:
            return await deliver(sink, claimed_run(2)), await sink.reachable()
        finally:
            await sink.close()

    report, reachable = asyncio.run(ask())
    assert isinstance(report, Unavailable)
    assert (report.connection, reachable) == (True, False)


def test_closing_ends_every_thread(cluster: MockCluster | RealCluster) -> None:
    before = threading.active_count()
    send(cluster, claimed_run(3, event_type=cluster.new_topic()))
    assert threading.active_count() == before


def test_a_relay_brings_entries_from_the_database_to_kafka(cluster: MockCluster | RealCluster, outbox: Outbox) -> None:
    topic = cluster.new_topic()
    for number in range(5):
        outbox.put(channel="events", event_type=topic, payload={"n": number})
    tally = asyncio.run(relay_once(outbox, cluster.bootstrap_servers))
    assert (tally.delivered, tally.claimed) == (5, 5)
    assert message_count(cluster.bootstrap_servers, topic) == 5


def test_while_no_broker_is_there_entries_wait_behind_a_gate_and_spend_nothing(outbox: Outbox) -> None:
    put = outbox.put(channel="events", event_type="thing.happened", payload={})
    tally = asyncio.run(relay_once(outbox, "127.0.0.1:1"))
    assert (tally.delivered, tally.released) == (0, 1)
    (gate,) = outbox.store.gates("events")
    assert gate.reason.startswith("_TRANSPORT")
    assert outbox.store.standing(put.id).attempt_count == 0


async def relay_once(outbox: Outbox, servers: str) -> Tally:
    """Deliver what is due in the channel to Kafka, as a relay does."""
    async with closing(KafkaSink(servers)) as sink:
        relay = Relay(outbox.store, sink, outbox.channel("events"), RelaySettings(owner="test"))
        return await relay.once()


@pytest.fixture
def outbox(sqlite_path: Path) -> Iterator[Outbox]:
    migrate(sqlite_path)
    with Outbox.connect(f"sqlite:///{sqlite_path}") as outbox:
        outbox.channel("events")
        yield outbox
