"""What Kafka's answer for one message means for its entry: one table, by the names that librdkafka gives its errors.

Names that begin with an underscore are the client's own; the others are the broker's. A name that is not here means
`retry`, as any failure that Carrick knows nothing about. librdkafka has then already repeated, within the delivery's
time, whatever it holds to be worth repeating.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """What follows from an answer.

    REJECTED: this message will never be taken. DOUBTFUL: so it says, but the topic or the cluster may as well be the
    reason: rejected only where another message of the topic is taken beside it, else the gate closes. TOPIC: its topic
    is missing, forbidden or impossible: a matter of the channel when all go to one topic, else of the entry.
    UNAVAILABLE: a matter of the cluster, so the gate closes. NOT_SENT: it was taken back, or failed because of another
    message: released. RETRY: all else.
    """

    REJECTED = "rejected"
    DOUBTFUL = "doubtful"
    TOPIC = "topic"
    UNAVAILABLE = "unavailable"
    NOT_SENT = "not_sent"
    RETRY = "retry"


class Fault(msgspec.Struct, frozen=True):
    """Why a message was not acknowledged: librdkafka's name for it, and a sentence."""

    code: str
    message: str


_REJECTED = (
    "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
)
_DOUBTFUL = ("INVALID_RECORD", "INVALID_MSG", "INVALID_MSG_SIZE")
_TOPIC = (
    "UNKNOWN_TOPIC_OR_PART",
    "UNKNOWN_TOPIC_ID",
    "_UNKNOWN_TOPIC",
    "_UNKNOWN_PARTITION",
    "TOPIC_AUTHORIZATION_FAILED",
    "TOPIC_EXCEPTION",
)
_NO_CONNECTION = ("_TRANSPORT", "_RESOLVE", "_ALL_BROKERS_DOWN")
_UNAVAILABLE = (
    *_NO_CONNECTION,
    "_AUTHENTICATION",
    "_SSL",
    "SASL_AUTHENTICATION_FAILED",
    "UNSUPPORTED_SASL_MECHANISM",
    "CLUSTER_AUTHORIZATION_FAILED",
    "SECURITY_DISABLED",
    "_MSG_TIMED_OUT",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "BROKER_NOT_AVAILABLE",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "KAFKA_STORAGE_ERROR",
    "THROTTLING_QUOTA_EXCEEDED",
    "REBOOTSTRAP_REQUIRED",
    "UNSUPPORTED_VERSION",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "INVALID_TIMESTAMP",
    "INVALID_REQUIRED_ACKS",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
    "PRODUCER_FENCED",
    "_FENCED",
    "_FATAL",
    "_INCONSISTENT",
    "_DESTROY",
    "_CRIT_SYS_RESOURCE",
    "_UNSUPPORTED_FEATURE",
    "_BAD_MSG",
    "_INVALID_ARG",
)
OTHER_RECORD = "_INVALID_DIFFERENT_RECORD"
"""The broker has named another message of the request as the bad one."""
_NOT_SENT = ("_PURGE_QUEUE", "_PURGE_INFLIGHT", OTHER_RECORD, "_GAPLESS_GUARANTEE")

VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(_REJECTED, Verdict.REJECTED),
    **dict.fromkeys(_DOUBTFUL, Verdict.DOUBTFUL),
    **dict.fromkeys(_TOPIC, Verdict.TOPIC),
    **dict.fromkeys(_UNAVAILABLE, Verdict.UNAVAILABLE),
    **dict.fromkeys(_NOT_SENT, Verdict.NOT_SENT),
}
"""Every answer that means something else than `retry`."""

IMPOSSIBLE_TOPIC = "TOPIC_EXCEPTION"
"""The broker's word for a topic name that can never be."""


def verdict_on(code: str, *, one_topic: bool) -> Verdict:
    """What the answer means; `one_topic`: every entry of this sink goes to the same topic."""
    verdict = VERDICTS.get(code, Verdict.RETRY)
    if verdict is not Verdict.TOPIC:
        return verdict
    if one_topic:
        return Verdict.UNAVAILABLE
    return Verdict.REJECTED if code == IMPOSSIBLE_TOPIC else Verdict.RETRY


def is_no_connection(code: str) -> bool:
    """Whether no broker could be reached at all, so that a bare connect may tell when one is back."""
    return code in _NO_CONNECTION
