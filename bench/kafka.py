"""The Kafka sink beside the bare client, on librdkafka's mock cluster; and a drain to it beside one to nowhere."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from confluent_kafka import Producer
from tests.entries import claimed, deliver
from tests.kafka_cluster import MockCluster

from bench import postgres, sqlite
from bench.measure import Result, as_a_service, compare, rate
from carrick import Outbox
from carrick.entry import NewEntry
from carrick.sinks.kafka import KafkaSink
from carrick.sinks.kafka_messages import headers_of

BATCH = 1000
IN_FLIGHT = 4


def sink_cases(quick: bool) -> Iterator[Result]:
    """The same messages, in batches of 1000 that are acknowledged before the next."""
    rounds, passes = (3, 10) if quick else (7, 30)
    with MockCluster(brokers=3) as cluster, asyncio.Runner() as runner:
        topic = cluster.new_topic(partitions=4)
        fields = {"event_type": topic, "tenant_id": "acme", "payload": postgres.PAYLOAD, "headers": {"device": "d1"}}
        entries = [claimed(group_key=f"g{n % 50}", **fields) for n in range(BATCH)]
        ready = [(entry.payload, entry.group_key, headers_of(entry, str(entry.id))) for entry in entries]
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        producer = Producer(settings)
        sink = KafkaSink(cluster.bootstrap_servers)

        async def deliveries() -> None:
            for _ in range(passes):
                await deliver(sink, entries)

        def through_the_sink() -> int:
            runner.run(deliveries())
            return passes * BATCH

        def bare() -> int:
            for _ in range(passes):
                for value, key, headers in ready:
                    producer.produce(topic, value, key, headers=headers)
                producer.flush()
            return passes * BATCH

        def bare_from_entries() -> int:
            for _ in range(passes):
                for entry in entries:
                    headers = headers_of(entry, str(entry.id))
                    producer.produce(topic, entry.payload, entry.group_key, headers=headers)
                producer.flush()
            return passes * BATCH

        name = f"Kafka sink, batch {BATCH}"
        yield compare(name, through_the_sink, bare_from_entries, rounds=rounds, against="bare client, same headers")
        yield compare(name, through_the_sink, bare, rounds=rounds, against="bare client, messages ready")
        runner.run(sink.close())
        producer.close()


def drain_cases(quick: bool) -> Iterator[Result]:
    """Claim, send and finish, beside claim and finish; as a relay does it, with several batches under way. Medians."""
    count, rounds = (20_000, 3) if quick else (60_000, 7)
    for name, opened in (("PostgreSQL", _postgres), ("SQLite", _sqlite)):
        rates: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            with as_a_service(), MockCluster(brokers=3) as cluster, opened() as outbox, asyncio.Runner() as runner:
                topic = cluster.new_topic(partitions=4)
                sink = KafkaSink(cluster.bootstrap_servers)
                runner.run(_warm_up(sink, topic))
                for chosen, measured in ((sink, rates[0]), (None, rates[1])):
                    entry = NewEntry(channel="bench", event_type=topic, payload=postgres.PAYLOAD)
                    for _ in range(0, count, 10_000):
                        outbox.store.put_many([entry] * 10_000)
                    measured.append(rate(lambda: runner.run(_drain(outbox, chosen))))  # noqa: B023  called at once
                runner.run(sink.close())
        ours, other = map(statistics.median, rates)
        yield Result(f"{name} to Kafka, batch {BATCH}", ours, other, 0.7, "claim + finish")


def cpu_cases(quick: bool) -> Iterator[Result]:
    """CPU time of this process per entry, least of many passes: steadier than a rate where other work goes on.

    The brokers and the database server run in other processes, and are not counted.
    """
    count, passes = (4_000, 10) if quick else (8_000, 25)
    with _brokers() as (servers, topic):
        for name, opened in (("PostgreSQL", _postgres), ("SQLite", _sqlite)):
            with opened() as outbox, asyncio.Runner() as runner:
                sink = KafkaSink(servers)
                runner.run(_warm_up(sink, topic))
                entry = NewEntry(channel="bench", event_type=topic, payload=postgres.PAYLOAD)
                least: dict[KafkaSink | None, float] = {}
                for chosen in (sink, None) * passes:
                    outbox.store.put_many([entry] * count)
                    started = time.process_time()
                    runner.run(_drain(outbox, chosen))
                    spent = (time.process_time() - started) / count * 1e6
                    least[chosen] = min(spent, least.get(chosen, spent))
                runner.run(sink.close())
            yield Result(f"{name} to Kafka, CPU per entry", least[sink], least[None], None, "claim + finish", " µs")


@contextmanager
def _brokers() -> Iterator[tuple[str, str]]:
    """A mock cluster in a process of its own: its address, and a topic."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def _serve(pipe: Connection) -> None:
    with MockCluster(brokers=3) as cluster:
        pipe.send((cluster.bootstrap_servers, cluster.new_topic(partitions=4)))
        pipe.recv()


async def _warm_up(sink: KafkaSink, topic: str) -> None:
    """A new producer needs half a second until it may send."""
    await asyncio.gather(*(deliver(sink, [claimed(event_type=topic)]) for _ in range(IN_FLIGHT)))


async def _drain(outbox: Outbox, sink: KafkaSink | None) -> int:
    """Several workers, each claiming, sending and finishing one batch after the other; how many entries."""

    async def work() -> int:
        handled = 0
        while batch := await asyncio.to_thread(outbox.store.claim, "bench", "bench", max_rows=BATCH):
            if sink is not None:
                await deliver(sink, batch.entries)
            handled += len(await asyncio.to_thread(outbox.store.finish_all, batch.token))
        return handled

    return sum(await asyncio.gather(*(work() for _ in range(IN_FLIGHT))))


@contextmanager
def _postgres() -> Iterator[Outbox]:
    with postgres.database() as url, Outbox.connect(url) as outbox:
        yield outbox


@contextmanager
def _sqlite() -> Iterator[Outbox]:
    with sqlite.databases() as (outbox, _):
        yield outbox


CASES: dict[str, Callable[[bool], Iterator[Result]]] = {
    "kafka-sink": sink_cases,
    "kafka-drain": drain_cases,
    "kafka-cpu": cpu_cases,
}
