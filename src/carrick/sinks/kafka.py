"""Entries as messages in Kafka. The report of each message becomes the outcome of its entry.

An entry is delivered when Kafka has acknowledged it from all in-sync replicas, and not before. One that was on its way
when the delivery ended comes again, so consumers may see it twice: they know it by the header `carrick-id`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from carrick.entry import Entry, Outcome
from carrick.errors import InvalidInput, MissingExtra
from carrick.settings import MESSAGE_MAX_BYTES
from carrick.sinks.kafka_errors import OTHER_RECORD, Fault, Verdict, is_no_connection, verdict_on
from carrick.sinks.kafka_messages import Headers, Message, TopicTemplate, cloud_event_headers, headers_of, is_topic_name
from carrick.sinks.sink import Delivery, Report, Results, Sink, Unavailable, unfit

if TYPE_CHECKING:
    from carrick.sinks.kafka_producer import KafkaProducer, Sent

log = logging.getLogger("carrick.kafka")

TIMEOUT_SECONDS = 30.0
REACHABLE_SECONDS = 2.0
MAX_THREADS = 64
"""More deliveries at once than this wait for each other."""
TOO_LARGE = "MSG_SIZE_TOO_LARGE"
SUSPICIOUS = (Verdict.REJECTED, Verdict.DOUBTFUL)

OURS = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "acks": "all",
    "message.timeout.ms": 0,
}
"""What the guarantees rest on. Messages have no time of their own: the delivery takes them all back at its deadline."""

DEFAULTS = {
    "log_level": 0,
    "message.max.bytes": MESSAGE_MAX_BYTES,
    "partitioner": "murmur2_random",
    "reconnect.backoff.max.ms": 1000,
    "socket.connection.setup.timeout.ms": 10_000,
    "topic.metadata.propagation.max.ms": 5_000,
}
"""What a caller may set otherwise. The partitioner is the one of Java clients, so keys meet in the same partitions.

librdkafka's own log repeats every failed connect many times a second; what matters of it is in the reports.
"""


class KafkaSink(Sink):
    """Sends entries to Kafka: the topic from a template, the group as key, the payload as value, untouched.

    `config` are further settings of librdkafka (TLS, SASL, compression). `timeout_seconds` is how long Kafka may take
    to acknowledge a batch; less when the lease ends earlier. Raises MissingExtra, and InvalidInput for settings that
    cannot be.
    """

    side_by_side = True

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic: str = "{event_type}",
        client_id: str = "outbox-drain",
        cloud_events: bool = False,
        source: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._topic = TopicTemplate(topic)
        self._headers: Callable[[Entry, str], Headers] = cloud_event_headers(source) if cloud_events else headers_of
        if not timeout_seconds > 0:
            raise InvalidInput("timeout_seconds", repr(timeout_seconds), "more than 0")
        self._timeout_seconds = timeout_seconds
        self._config = _checked(bootstrap_servers, client_id, config or {})
        self._idle: list[KafkaProducer] = [self._new_producer()]
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="carrick-kafka")
        self._under_way: set[threading.Event] = set()

    async def deliver(self, delivery: Delivery) -> Report:
        """Send the entries, in their order, and wait for Kafka's word on each."""
        until = time.monotonic() + min(delivery.seconds_left(), self._timeout_seconds)
        cancelled = threading.Event()
        self._under_way.add(cancelled)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._deliver, delivery.entries, until, cancelled)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.wait({work})
            raise
        finally:
            self._under_way.discard(cancelled)

    async def reachable(self) -> bool:
        """Whether a broker answers."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._reachable)

    async def close(self) -> None:
        """End what is under way, the connections and the threads."""
        for cancelled in self._under_way:
            cancelled.set()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _deliver(self, entries: Sequence[Entry], until: float, cancelled: threading.Event) -> Report:
        outcomes: dict[UUID, Outcome] = {}
        ids: list[UUID] = []
        messages: list[Message] = []
        for entry, text in zip(entries, msgspec.to_builtins([entry.id for entry in entries]), strict=True):
            topic = self._topic.of(entry)
            if not is_topic_name(topic):
                outcomes[entry.id] = Outcome.rejected(f"{topic!r} cannot be the name of a topic", code="invalid_topic")
                continue
            try:
                message = Message(topic, entry.group_key, entry.payload, self._headers(entry, text))
            except Exception as error:  # noqa: BLE001  whatever it is, it is about this entry
                outcomes[entry.id] = unfit(error)
                continue
            ids.append(entry.id)
            messages.append(message)
        sent = self._send(messages, until, cancelled)
        self._send_suspects_alone(messages, sent, until, cancelled)
        unavailable = self._judge(ids, messages, sent, outcomes)
        if outcomes or unavailable is None:
            return Results(outcomes=outcomes, unavailable=unavailable)
        return unavailable

    def _send(self, messages: Sequence[Message], until: float, cancelled: threading.Event) -> Sent:
        with self._producer() as producer:
            return producer.send(messages, until, cancelled)

    def _send_suspects_alone(
        self, messages: Sequence[Message], sent: Sent, until: float, cancelled: threading.Event
    ) -> None:
        """The fault of messages that were refused together may lie in one of them, so each is tried alone, in order.

        After one that is not settled, nothing of its key is tried; after one for another reason, nothing at all.
        """
        suspects = sorted(n for n in sent.refused if self._verdict(sent.faults[n]) in SUSPICIOUS)
        if len(suspects) < 2:
            return
        for n in suspects:
            del sent.faults[n]
        unsettled: set[str | None] = set()
        for n in suspects:
            message = messages[n]
            if message.key is not None and message.key in unsettled:
                continue
            if self._reason_to_stop(sent) is not None:
                return
            alone = self._send([message], until, cancelled)
            sent.stopped = alone.stopped
            if alone.acknowledged:
                sent.acknowledged.add(n)
                continue
            if not alone.faults:
                return
            sent.faults[n] = alone.faults[0]
            match self._verdict(alone.faults[0]):
                case Verdict.REJECTED:
                    continue
                case Verdict.DOUBTFUL:
                    unsettled.add(message.key)
                case _:
                    return

    def _judge(
        self, ids: Sequence[UUID], messages: Sequence[Message], sent: Sent, outcomes: dict[UUID, Outcome]
    ) -> Unavailable | None:
        """Write down the outcome of each message that has one; why Kafka cannot be asked, if it cannot."""
        delivered = Outcome.delivered()
        for position in sent.acknowledged:
            outcomes[ids[position]] = delivered
        stopped = self._reason_to_stop(sent)
        for position, fault in sorted(sent.faults.items()):
            verdict = self._verdict(fault)
            if verdict is Verdict.DOUBTFUL:
                is_taken = _is_taken(messages[position].topic, messages, sent)
                verdict = Verdict.REJECTED if is_taken else Verdict.UNAVAILABLE
            match verdict:
                case Verdict.REJECTED:
                    said = self._said(fault, by_broker=position in sent.refused)
                    outcomes[ids[position]] = Outcome.rejected(said, code=fault.code)
                case Verdict.RETRY:
                    outcomes[ids[position]] = Outcome.retry(code=fault.code, message=fault.message)
                case Verdict.UNAVAILABLE:
                    stopped = stopped or fault
        return None if stopped is None else _unavailable(stopped)

    def _reason_to_stop(self, sent: Sent) -> Fault | None:
        """Why the cluster cannot be asked any more. What failed because a message was refused is none of its matter."""
        if sent.stopped is not None and self._verdict(sent.stopped) is not Verdict.NOT_SENT:
            return sent.stopped
        faults = (fault for _, fault in sorted(sent.faults.items()))
        return next((fault for fault in faults if self._verdict(fault) is Verdict.UNAVAILABLE), None)

    def _said(self, fault: Fault, *, by_broker: bool) -> str:
        """The fault; of a message that is too large, which limit it is. librdkafka has one sentence for all of them."""
        if fault.code != TOO_LARGE:
            return fault.message
        if by_broker:
            return "the broker refuses it: larger than max.message.bytes of the topic (message.max.bytes of the broker)"
        most = self._config["message.max.bytes"]
        return f"with key and headers larger than the producer's message.max.bytes, {most} (KAFKA_MESSAGE_MAX_BYTES)"

    def _verdict(self, fault: Fault) -> Verdict:
        return verdict_on(fault.code, one_topic=self._topic.one_topic)

    @contextmanager
    def _producer(self) -> Iterator[KafkaProducer]:
        """A producer that nobody else uses meanwhile. One that can no longer be used is replaced."""
        try:
            producer = self._idle.pop()
        except IndexError:
            producer = self._new_producer()
        try:
            yield producer
        except BaseException:
            producer.close()
            raise
        if producer.worn:
            producer.close()
        else:
            self._idle.append(producer)

    def _new_producer(self) -> KafkaProducer:
        with _confluent_kafka_needed():
            from confluent_kafka import KafkaException

            from carrick.sinks.kafka_producer import KafkaProducer
        try:
            return KafkaProducer(self._config)
        except KafkaException as error:
            raise InvalidInput("kafka", error.args[0].str(), "settings of librdkafka") from None

    def _reachable(self) -> bool:
        with self._producer() as producer:
            return producer.reachable(REACHABLE_SECONDS)

    def _close(self) -> None:
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().close()


def _is_taken(topic: str, messages: Sequence[Message], sent: Sent) -> bool:
    """Whether the broker takes messages of the topic, or has named another as the bad one."""
    fine = sent.acknowledged | {n for n, fault in sent.faults.items() if fault.code == OTHER_RECORD}
    return any(messages[n].topic == topic for n in fine)


def _unavailable(fault: Fault) -> Unavailable:
    return Unavailable(code=fault.code, message=fault.message, connection=is_no_connection(fault.code))


def _checked(bootstrap_servers: str, client_id: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """All settings together. Raises InvalidInput for no servers, or for a setting that the guarantees rest on."""
    if not bootstrap_servers.strip():
        raise InvalidInput("bootstrap_servers", "is empty", "host:port, or several with commas between them")
    for name in config:
        if name in OURS:
            raise InvalidInput("config", f"{name} is not free to choose", "any other setting of librdkafka")
    return {**DEFAULTS, **config, **OURS, "bootstrap.servers": bootstrap_servers, "client.id": client_id}


@contextmanager
def _confluent_kafka_needed() -> Iterator[None]:
    """Turn a missing client into an error that says what to install; other import errors pass."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "confluent_kafka":
            raise
        raise MissingExtra("kafka", "sending to Kafka") from error
