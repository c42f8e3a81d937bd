from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from carrick.sinks.kafka_errors import VERDICTS, Verdict, is_no_connection, verdict_on
from tests.unit.test_documentation import page


@pytest.mark.parametrize("code", VERDICTS)
def test_every_code_of_the_table_is_one_that_the_client_knows(code: str) -> None:
    assert KafkaError(getattr(KafkaError, code)).name() == code


@pytest.mark.parametrize("code", VERDICTS)
def test_every_code_of_the_table_is_documented(code: str) -> None:
    assert f"`{code}`" in page("reference/kafka-sink.md")


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("MSG_SIZE_TOO_LARGE", Verdict.REJECTED),
        ("RECORD_LIST_TOO_LARGE", Verdict.REJECTED),
        ("INVALID_RECORD", Verdict.DOUBTFUL),
        ("INVALID_MSG", Verdict.DOUBTFUL),
        ("INVALID_TIMESTAMP", Verdict.UNAVAILABLE),
        ("UNSUPPORTED_FOR_MESSAGE_FORMAT", Verdict.UNAVAILABLE),
        ("_BAD_MSG", Verdict.UNAVAILABLE),
        ("_INVALID_ARG", Verdict.UNAVAILABLE),
        ("CLUSTER_AUTHORIZATION_FAILED", Verdict.UNAVAILABLE),
        ("NOT_ENOUGH_REPLICAS", Verdict.UNAVAILABLE),
        ("_PURGE_QUEUE", Verdict.NOT_SENT),
        ("_INVALID_DIFFERENT_RECORD", Verdict.NOT_SENT),
        ("SOMETHING_NEW", Verdict.RETRY),
    ],
)
def test_an_answer_about_message_or_cluster_means_the_same_whatever_the_topics(code: str, verdict: Verdict) -> None:
    assert {verdict_on(code, one_topic=True), verdict_on(code, one_topic=False)} == {verdict}


@pytest.mark.parametrize("code", ["UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION"])
def test_a_fault_of_the_only_topic_closes_the_gate(code: str) -> None:
    assert verdict_on(code, one_topic=True) is Verdict.UNAVAILABLE


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("UNKNOWN_TOPIC_OR_PART", Verdict.RETRY),
        ("TOPIC_AUTHORIZATION_FAILED", Verdict.RETRY),
        ("TOPIC_EXCEPTION", Verdict.REJECTED),
    ],
)
def test_a_fault_of_one_topic_among_many_is_its_entries_own(code: str, verdict: Verdict) -> None:
    assert verdict_on(code, one_topic=False) is verdict


def test_only_a_failed_connection_is_one() -> None:
    assert is_no_connection("_TRANSPORT")
    assert is_no_connection("_ALL_BROKERS_DOWN")
    assert not is_no_connection("_AUTHENTICATION")
    assert not is_no_connection("_MSG_TIMED_OUT")
