"""The Kafka sink before a cluster that fails in all the ways it can be told to."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from carrick.entry import Outcome, OutcomeKind
from carrick.errors import InvalidInput, MissingExtra
from carrick.sinks import kafka_producer
from carrick.sinks.kafka import KafkaSink
from carrick.sinks.sink import Report, Results, Unavailable
from tests.entries import claimed, claimed_run, deliver, deliver_and_close
from tests.kafka_cluster import INIT_PRODUCER_ID, PRODUCE, MockCluster, message_count, read_back

pytestmark = pytest.mark.slow

DELIVERED = Outcome.delivered()


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _quick_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_producer, "ASK_SECONDS", 0.1)


def send(cluster: MockCluster, entries: list[Any], *, seconds: float = 60.0, **options: Any) -> Report:
    """One delivery by a sink of its own."""
    return asyncio.run(deliver_and_close(KafkaSink(cluster.bootstrap_servers, **options), entries, seconds))


def results(report: Report) -> Results:
    assert isinstance(report, Results), report
    return report


def unavailable(report: Report) -> Unavailable:
    assert isinstance(report, Unavailable), report
    return report


def kinds(report: Report) -> list[str]:
    return [str(outcome.kind) for outcome in results(report).outcomes.values()]


def in_order(report: Report, entries: list[Any]) -> list[str]:
    outcomes = results(report).outcomes
    return [str(outcomes[entry.id].kind) if entry.id in outcomes else "not tried" for entry in entries]


def test_acknowledged_entries_are_delivered(cluster: MockCluster) -> None:
    entries = claimed_run(3, event_type=cluster.new_topic())
    assert results(send(cluster, entries)) == Results(outcomes=dict.fromkeys((e.id for e in entries), DELIVERED))


def test_a_message_that_is_too_large_for_the_client_is_rejected_and_the_others_go_on(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    small, other = claimed_run(2, event_type=topic)
    large = claimed(event_type=topic, payload=b"x" * 2 * 1024 * 1024)
    outcomes = results(send(cluster, [small, large, other])).outcomes
    assert (outcomes[small.id], outcomes[other.id]) == (DELIVERED, DELIVERED)
    assert (outcomes[large.id].kind, outcomes[large.id].code) == (OutcomeKind.REJECTED, "MSG_SIZE_TOO_LARGE")
    assert "the producer's message.max.bytes, 2097152" in str(outcomes[large.id].message)


def test_a_message_as_large_as_the_caller_allows_is_delivered(cluster: MockCluster) -> None:
    entry = claimed(event_type=cluster.new_topic(), payload=b"x" * 3_000_000)
    assert kinds(send(cluster, [entry], config={"message.max.bytes": 4_000_000})) == ["delivered"]


def test_a_message_that_the_broker_refuses_alone_is_rejected(cluster: MockCluster) -> None:
    entry = claimed(event_type=cluster.new_topic())
    cluster.fail_next(PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE)
    outcome = results(send(cluster, [entry])).outcomes[entry.id]
    assert (outcome.kind, outcome.code) == (OutcomeKind.REJECTED, "MSG_SIZE_TOO_LARGE")
    assert "max.message.bytes of the topic" in str(outcome.message)


def test_of_messages_refused_together_each_is_tried_alone(cluster: MockCluster) -> None:
    entries = claimed_run(5, event_type=cluster.new_topic())
    cluster.fail_next(PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE, 0, KafkaError.MSG_SIZE_TOO_LARGE)
    report = results(send(cluster, entries))
    assert in_order(report, entries) == ["delivered", "rejected", "delivered", "delivered", "delivered"]
    assert report.unavailable is None


@pytest.mark.parametrize("code", [KafkaError.INVALID_TIMESTAMP, KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_what_every_message_may_be_refused_for_closes_the_gate(cluster: MockCluster, code: int) -> None:
    cluster.fail_next(PRODUCE, *[code] * 50)
    report = unavailable(send(cluster, claimed_run(5, event_type=cluster.new_topic())))
    assert (report.code, report.unsure) == (KafkaError(code).name(), False)


@pytest.mark.parametrize("count", [1, 5])
def test_bad_records_close_the_gate_as_long_as_their_topic_takes_none(cluster: MockCluster, count: int) -> None:
    cluster.fail_next(PRODUCE, *[KafkaError.INVALID_RECORD] * 50)
    report = unavailable(send(cluster, claimed_run(count, event_type=cluster.new_topic())))
    assert (report.code, report.unsure) == ("INVALID_RECORD", False)


def test_a_record_is_bad_where_another_of_its_topic_is_taken_beside_it(cluster: MockCluster) -> None:
    entries = claimed_run(4, event_type=cluster.new_topic())
    invalid = KafkaError.INVALID_RECORD
    cluster.fail_next(PRODUCE, invalid, invalid, 0, invalid)
    report = results(send(cluster, entries))
    assert in_order(report, entries) == ["rejected", "delivered", "rejected", "delivered"]
    assert report.unavailable is None


def test_nothing_overtakes_a_record_of_its_key_that_may_be_bad(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    first, second = (claimed(event_type=topic, group_key="k") for _ in range(2))
    other = claimed(event_type=topic)
    cluster.fail_next(PRODUCE, KafkaError.INVALID_RECORD, KafkaError.INVALID_RECORD)
    report = results(send(cluster, [first, second, other]))
    assert in_order(report, [first, second, other]) == ["rejected", "not tried", "delivered"]


def test_nothing_overtakes_a_refused_message_of_its_key(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    entries = [claimed(event_type=topic, group_key="k", payload=str(n).encode()) for n in range(30)]
    cluster.fail_next(PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE)

    async def twice() -> None:
        sink = KafkaSink(cluster.bootstrap_servers, config={"batch.num.messages": 10})
        try:
            first = results(await deliver(sink, entries))
            left = [entry for entry in entries if entry.id not in first.outcomes]
            assert [entry.payload for entry in left] == [str(n).encode() for n in range(10, 30)]
            await deliver(sink, left)
        finally:
            await sink.close()

    asyncio.run(twice())
    assert [m.value() for m in read_back(cluster.bootstrap_servers, topic, 30)] == [e.payload for e in entries]


def test_a_topic_name_that_kafka_would_refuse_is_rejected_and_the_others_go_on(cluster: MockCluster) -> None:
    bad, good = claimed(event_type="no topic!"), claimed(event_type=cluster.new_topic())
    outcomes = results(send(cluster, [bad, good])).outcomes
    assert outcomes[good.id] == DELIVERED
    assert outcomes[bad.id] == Outcome.rejected("'no topic!' cannot be the name of a topic", code="invalid_topic")


@pytest.mark.parametrize("headers", [["a"], "text", 7, {"\ud800": "half a pair"}, {"a": "\ud800"}], ids=ascii)
def test_headers_that_cannot_be_sent_are_rejected_and_the_others_go_on(cluster: MockCluster, headers: Any) -> None:
    topic = cluster.new_topic()
    bad, good = claimed(event_type=topic, headers=headers), claimed(event_type=topic)
    outcomes = results(send(cluster, [bad, good])).outcomes
    assert outcomes[good.id] == DELIVERED
    assert (outcomes[bad.id].kind, outcomes[bad.id].code) == (OutcomeKind.REJECTED, "invalid_entry")


@pytest.mark.parametrize("error", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_a_topic_among_many_that_cannot_be_used_costs_only_its_entries(cluster: MockCluster, error: int) -> None:
    bad, good = claimed(event_type="forbidden"), claimed(event_type=cluster.new_topic())
    cluster.fail_topic("forbidden", error)
    report = results(send(cluster, [bad, good], config={"topic.metadata.propagation.max.ms": 0}))
    assert report.outcomes[good.id] == DELIVERED
    assert (report.outcomes[bad.id].kind, report.unavailable) == (OutcomeKind.RETRY, None)


def test_the_only_topic_that_cannot_be_used_closes_the_gate(cluster: MockCluster) -> None:
    cluster.fail_topic("only", KafkaError.TOPIC_AUTHORIZATION_FAILED)
    report = unavailable(send(cluster, claimed_run(2), topic="only"))
    assert (report.code, report.connection) == ("TOPIC_AUTHORIZATION_FAILED", False)


def test_an_answer_that_nobody_knows_is_retried(cluster: MockCluster) -> None:
    cluster.fail_next(PRODUCE, KafkaError.POLICY_VIOLATION)
    entry = claimed(event_type=cluster.new_topic())
    outcome = results(send(cluster, [entry])).outcomes[entry.id]
    assert (outcome.kind, outcome.code) == (OutcomeKind.RETRY, "POLICY_VIOLATION")


def test_a_passing_fault_of_the_broker_is_repeated_within_the_delivery(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    cluster.fail_next(PRODUCE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT)
    assert kinds(send(cluster, claimed_run(3, event_type=topic))) == ["delivered"] * 3
    assert message_count(cluster.bootstrap_servers, topic) == 3


def test_without_a_broker_the_gate_closes_until_one_can_be_reached(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    cluster.stop()
    report = unavailable(send(cluster, claimed_run(3, event_type=topic)))
    assert (report.code, report.connection, report.unsure) == ("_TRANSPORT", True, False)


def test_an_unknown_host_closes_the_gate_as_a_failed_connection() -> None:
    sink = KafkaSink("nowhere.invalid:9092")
    report = unavailable(asyncio.run(deliver_and_close(sink, [claimed()])))
    assert (report.code, report.connection) == ("_RESOLVE", True)


def test_a_sink_that_found_no_broker_delivers_when_one_is_back(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def story() -> list[Report]:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            cluster.stop()
            down = await deliver(sink, claimed_run(2, event_type=topic))
            assert not await sink.reachable()
            cluster.start()
            assert await sink.reachable()
            return [down, await deliver(sink, claimed_run(2, event_type=topic))]
        finally:
            await sink.close()

    down, up = asyncio.run(story())
    assert unavailable(down).connection
    assert kinds(up) == ["delivered", "delivered"]
    assert message_count(cluster.bootstrap_servers, topic) == 2


def test_a_cluster_that_was_away_while_nothing_was_sent_is_no_reason_to_give_up(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def story() -> Report:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            await deliver(sink, [claimed(event_type=topic)])
            cluster.stop()
            assert not await sink.reachable()
            cluster.start()
            assert await sink.reachable()
            return await deliver(sink, [claimed(event_type=topic)])
        finally:
            await sink.close()

    assert kinds(asyncio.run(story())) == ["delivered"]


def test_acknowledged_entries_stay_delivered_when_the_rest_is_not_acknowledged_and_the_gate_closes() -> None:
    with MockCluster(brokers=2) as cluster:
        entries = [claimed(event_type=cluster.new_topic(leader=leader)) for leader in (2, 1)]
        cluster.delay_next(PRODUCE, 60_000, broker=2)
        report = results(send(cluster, entries, timeout_seconds=2))
    assert report.outcomes == {entries[1].id: DELIVERED}
    assert report.unavailable is not None


def test_what_kafka_does_not_acknowledge_in_time_is_taken_back(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    cluster.delay(60_000)
    report = unavailable(send(cluster, claimed_run(3, event_type=topic), seconds=0.3))
    assert "did not acknowledge in time" in report.message


def test_a_delivery_without_time_sends_nothing(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def second_is_late() -> Report:
        sink = KafkaSink(cluster.bootstrap_servers, config={"linger.ms": 0})
        try:
            await deliver(sink, [claimed(event_type=topic)])
            return await deliver(sink, claimed_run(200, event_type=topic), seconds=-1)
        finally:
            await sink.close()

    unavailable(asyncio.run(second_is_late()))
    assert message_count(cluster.bootstrap_servers, topic) == 1


def test_a_cancelled_delivery_sends_nothing_more(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def cancel_then_deliver() -> Report:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            cluster.stop()
            task = asyncio.create_task(deliver(sink, claimed_run(3, event_type=topic)))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            cluster.start()
            report = await deliver(sink, claimed_run(2, event_type=topic))
            while isinstance(report, Unavailable):  # the broker does not listen at once
                report = await deliver(sink, claimed_run(2, event_type=topic))
            return report
        finally:
            await sink.close()

    assert kinds(asyncio.run(cancel_then_deliver())) == ["delivered", "delivered"]
    assert message_count(cluster.bootstrap_servers, topic) == 2


def test_a_cancelled_delivery_takes_nothing_of_another_back(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def two() -> Report:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            cluster.delay(100)
            one = asyncio.create_task(deliver(sink, claimed_run(3, event_type=topic)))
            other = asyncio.create_task(deliver(sink, claimed_run(2, event_type=topic)))
            await asyncio.sleep(0)
            one.cancel()
            return await other
        finally:
            await sink.close()

    assert kinds(asyncio.run(two())) == ["delivered", "delivered"]


def test_a_broken_producer_is_replaced_for_the_next_delivery(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def story() -> list[Report]:
        sink = KafkaSink(cluster.bootstrap_servers)
        try:
            cluster.fail_next(PRODUCE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
            broken = await deliver(sink, claimed_run(2, event_type=topic))
            return [broken, await deliver(sink, claimed_run(2, event_type=topic))]
        finally:
            await sink.close()

    broken, after = asyncio.run(story())
    assert unavailable(broken).code == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert kinds(after) == ["delivered", "delivered"]


def test_a_producer_that_may_not_write_closes_the_gate(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    cluster.fail_next(INIT_PRODUCER_ID, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    report = unavailable(send(cluster, claimed_run(2, event_type=topic)))
    assert (report.code, report.connection) == ("CLUSTER_AUTHORIZATION_FAILED", False)


def test_more_messages_than_the_client_can_hold_at_once_all_go(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    report = send(cluster, claimed_run(500, event_type=topic), config={"queue.buffering.max.messages": 50})
    assert kinds(report) == ["delivered"] * 500


def test_the_event_loop_goes_on_while_kafka_is_silent(cluster: MockCluster) -> None:
    topic = cluster.new_topic()

    async def count_turns() -> int:
        sink = KafkaSink(cluster.bootstrap_servers)
        turns = 0
        cluster.delay(50)
        task = asyncio.create_task(deliver_and_close(sink, claimed_run(3, event_type=topic)))
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert kinds(task.result()) == ["delivered"] * 3
        return turns

    assert asyncio.run(count_turns()) > 10


def test_a_closed_sink_leaves_no_thread_behind(cluster: MockCluster) -> None:
    topic = cluster.new_topic()
    before = threading.active_count()
    send(cluster, claimed_run(3, event_type=topic))
    assert threading.active_count() == before


@pytest.mark.parametrize("setting", ["enable.idempotence", "acks", "message.timeout.ms", "enable.gapless.guarantee"])
def test_a_setting_that_the_guarantees_rest_on_cannot_be_changed(setting: str) -> None:
    with pytest.raises(InvalidInput, match=f"{setting} is not free to choose"):
        KafkaSink("localhost:9092", config={setting: "0"})


def test_a_setting_that_librdkafka_does_not_know_is_named() -> None:
    with pytest.raises(InvalidInput, match="no.such.thing"):
        KafkaSink("localhost:9092", config={"no.such.thing": 1})


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_that_cannot_be_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="timeout_seconds"):
        KafkaSink("localhost:9092", timeout_seconds=seconds)


def test_no_servers_are_a_clear_error() -> None:
    with pytest.raises(InvalidInput, match="bootstrap_servers"):
        KafkaSink(" ")


def test_without_the_client_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra, match=r"carrick\[kafka\]"):
        KafkaSink("localhost:9092")
