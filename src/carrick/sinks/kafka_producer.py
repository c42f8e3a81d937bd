"""One Kafka producer, used by one delivery at a time, in a thread: sends messages and waits until each is answered for.

A delivery has a producer to itself because taking messages back (`purge`) takes back all that a producer holds, and
nothing may go out after the lease. Only a message that Kafka has acknowledged counts as sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from carrick.sinks.kafka_errors import Fault
from carrick.sinks.kafka_messages import Message

log = logging.getLogger("carrick.kafka")
client_log = logging.getLogger("carrick.kafka.librdkafka")
client_log.addFilter(lambda record: not record.getMessage().startswith("FATAL"))  # told once, by kafka.producer_broken

LOOK_SECONDS = 0.05
"""How often a waiting delivery looks whether it was cancelled."""
ASK_SECONDS = 1.0
"""How long brokers that are all down get to show that one is back."""
DRAIN_SECONDS = 1.0
"""How long the reports of messages that were taken back may take; they are there already."""
ANY_PARTITION = -1
"""The partitioner chooses."""
NOW = 0
"""The time of a message is when it is handed over."""


class Sent(msgspec.Struct, kw_only=True):
    """What became of the messages, by their position. What is in neither was not answered for.

    `stopped` says why not everything was, when something other than a message was the reason.
    """

    acknowledged: set[int]
    faults: dict[int, Fault]
    refused: set[int]
    """The part of `faults` that the broker has refused, perhaps because of another message in the same request."""
    stopped: Fault | None = None


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """Writes down Kafka's report of one message. There is one for each, so the garbage collector leaves it alone."""

    sent: Sent
    position: int

    def __call__(self, error: KafkaError | None, _: Any) -> None:
        if error is None:
            self.sent.acknowledged.add(self.position)
            return
        self.sent.faults[self.position] = Fault(error.name(), error.str())
        self.sent.refused.add(self.position)


class KafkaProducer:
    """A producer that repeats no message and changes no order. When it is `worn`, close it and make another.

    Raises KafkaException for a configuration that librdkafka does not take.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.worn = False
        self._down: Fault | None = None
        self._last_error: Fault | None = None
        self._broken: Fault | None = None
        self._producer = Producer({**config, "error_cb": self._note_error}, logger=client_log)

    def send(self, messages: Sequence[Message], until: float, cancelled: threading.Event) -> Sent:
        """Send the messages in their order and wait for the answers, at most `until` (monotonic) or until cancelled."""
        self._serve(0)  # what happened while nobody used this producer; brokers that went then may be back
        sent = Sent(acknowledged=set(), faults={}, refused=set(), stopped=self._reason_to_stop(until, cancelled))
        if sent.stopped is not None:
            return sent
        self._last_error = None
        for position, message in enumerate(messages):
            if not self._produce(position, message, sent, until, cancelled):
                break
        else:
            self._wait(sent, len(messages), until, cancelled)
        if sent.stopped is not None:
            self._take_back()
        return sent

    def reachable(self, seconds: float) -> bool:
        """Whether a broker answers within that time."""
        self._serve(0)
        try:
            self._producer.list_topics(timeout=seconds)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Take back what is left and end the threads and connections."""
        self._take_back()
        self._producer.close()

    def _produce(self, position: int, message: Message, sent: Sent, until: float, cancelled: threading.Event) -> bool:
        """Hand over one message; False when nothing more can be handed over."""
        while True:
            try:
                # by position: with names the client takes a third longer
                receipt = Receipt(sent, position)
                self._producer.produce(
                    message.topic, message.value, message.key, ANY_PARTITION, receipt, None, NOW, message.headers
                )
            except BufferError:
                self._serve(LOOK_SECONDS)
                sent.stopped = self._reason_to_stop(until, cancelled)
                if sent.stopped is not None:
                    return False
            except KafkaException as error:
                fault = _fault(error)
                if fault.code == "_FATAL":
                    sent.stopped = self._break(fault)
                    return False
                sent.faults[position] = fault
                return True
            else:
                return True

    def _wait(self, sent: Sent, count: int, until: float, cancelled: threading.Event) -> None:
        """Serve reports until there is one for each message, or a reason to stop."""
        while len(sent.acknowledged) + len(sent.faults) < count:
            self._serve(max(0.0, min(LOOK_SECONDS, until - time.monotonic())))
            if self._broken is not None and not len(self._producer):
                break
            if len(sent.acknowledged) + len(sent.faults) == count:
                break
            sent.stopped = self._reason_to_stop(until, cancelled)
            if sent.stopped is not None:
                return
        sent.stopped = self._broken

    def _reason_to_stop(self, until: float, cancelled: threading.Event) -> Fault | None:
        if cancelled.is_set():
            return Fault("cancelled", "the delivery was cancelled")
        left = until - time.monotonic()
        if left <= 0:
            last = self._last_error or self._down or Fault("_MSG_TIMED_OUT", "none")
            return Fault(last.code, f"Kafka did not acknowledge in time; last error: {last.message}")
        if self._down is not None and not self.reachable(min(ASK_SECONDS, left)):
            return self._last_error or self._down
        self._down = None
        return None

    def _serve(self, seconds: float) -> None:
        """Let librdkafka hand over its reports.

        The client raises fatal errors here, as a KafkaException, or as a SystemError when a report was being handed
        over meanwhile; the rest of the reports comes with the next call.
        """
        try:
            self._producer.flush(seconds)
        except (KafkaException, SystemError) as error:
            self._break(_fault(error.__cause__ if isinstance(error, SystemError) else error))

    def _break(self, fault: Fault) -> Fault:
        """The producer can send nothing more. What is under way may still be answered for."""
        if not self.worn:
            log.warning("kafka.producer_broken", extra={"code": fault.code, "error": fault.message})
        self.worn = True
        self._broken = self._broken or fault
        self._producer.purge(in_queue=True, in_flight=False)
        return self._broken

    def _take_back(self) -> None:
        """Nothing goes out any more. What may be under way counts as not acknowledged."""
        self.worn = True
        self._producer.purge()
        self._serve(DRAIN_SECONDS)

    def _note_error(self, error: KafkaError) -> None:
        fault = Fault(error.name(), error.str())
        if fault.code == "_ALL_BROKERS_DOWN":
            self._down = fault
        else:
            self._last_error = fault


def _fault(error: BaseException | None) -> Fault:
    cause = error.args[0] if isinstance(error, KafkaException) and error.args else None
    if isinstance(cause, KafkaError):
        return Fault(cause.name(), cause.str())
    return Fault("_FATAL", str(error))
