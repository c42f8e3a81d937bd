"""Kafka for tests: librdkafka's own mock cluster, with brokers that fail when told; and reading back what was sent."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from confluent_kafka import Consumer, Message, TopicPartition, cimpl
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PRODUCE, METADATA, INIT_PRODUCER_ID = 0, 3, 22
"""Requests of Kafka's protocol."""

READ_SECONDS = 20.0


def _library() -> Any:
    """librdkafka, as the Python client has loaded it."""
    library = ctypes.CDLL(cimpl.__file__)
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


class MockCluster:
    """Brokers inside this process that speak Kafka's protocol on real sockets."""

    def __init__(self, brokers: int = 1) -> None:
        self._library = _library()
        problem = ctypes.create_string_buffer(512)
        config = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        self._library.rd_kafka_conf_set(config, b"log_level", b"0", problem, 512)
        self._client = ctypes.c_void_p(self._library.rd_kafka_new(0, config, problem, 512))
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_mock_cluster_new(self._client, brokers))
        self.bootstrap_servers: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)

    def new_topic(self, partitions: int = 1, leader: int = 1) -> str:
        """A topic that nobody else uses, led by that broker; its name."""
        name = f"topic-{uuid4().hex[:8]}"
        self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)
        for partition in range(partitions):
            self._library.rd_kafka_mock_partition_set_leader(self._cluster, name.encode(), partition, leader)
        return name

    def fail_next(self, request: int, *errors: int) -> None:
        """The next requests of that kind are answered with these errors, one after the other."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(errors)), codes
        )

    def fail_topic(self, topic: str, error: int) -> None:
        """Whoever asks for this topic gets the error."""
        self._library.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), error)

    def delay_next(self, request: int, milliseconds: int, broker: int = 1) -> None:
        """The broker's answer to the next request of that kind takes so long."""
        self._library.rd_kafka_mock_broker_push_request_error_rtts(
            self._cluster, broker, ctypes.c_int16(request), ctypes.c_size_t(1), 0, milliseconds
        )

    def delay(self, milliseconds: int, broker: int = 1) -> None:
        """From now on the broker's answers take so long."""
        self._library.rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds)

    def stop(self, broker: int = 1) -> None:
        """The broker closes its connections and takes no more."""
        self._library.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def start(self, broker: int = 1) -> None:
        """The broker is back."""
        self._library.rd_kafka_mock_broker_set_up(self._cluster, broker)


class RealCluster:
    """A Kafka that is there already (KAFKA_BOOTSTRAP_SERVERS)."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def new_topic(self, partitions: int = 1) -> str:
        """A topic that nobody else uses; its name."""
        name = f"carrick-test-{uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        admin.create_topics([NewTopic(name, num_partitions=partitions)])[name].result(READ_SECONDS)
        return name


def read_back(bootstrap_servers: str, topic: str, count: int) -> list[Message]:
    """The first messages of a topic, in the order of their partitions; fewer when there are not so many in time."""
    reader = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": uuid4().hex, "auto.offset.reset": "earliest"}
    )
    try:
        partitions = reader.list_topics(topic, timeout=READ_SECONDS).topics[topic].partitions
        reader.assign([TopicPartition(topic, number, 0) for number in partitions])
        messages: list[Message] = []
        while len(messages) < count and (found := reader.consume(count - len(messages), timeout=READ_SECONDS)):
            messages += found
        return messages
    finally:
        reader.close()


def message_count(bootstrap_servers: str, topic: str) -> int:
    """How many messages a topic holds."""
    reader = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": uuid4().hex})
    try:
        partitions = reader.list_topics(topic, timeout=READ_SECONDS).topics[topic].partitions
        ends = [reader.get_watermark_offsets(TopicPartition(topic, n), timeout=READ_SECONDS) for n in partitions]
        return sum(high - low for low, high in (end for end in ends if end is not None))
    finally:
        reader.close()
