"""Forwarders → ingests → Kafka, three processes each, killed again and again: in the inbox once, in Kafka in order."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Message

from carrick.entry import State
from carrick.forward.events import CHANNEL
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from carrick.testing.samples import sample
from carrick.wiring import migrate
from tests.kafka_cluster import MockCluster, message_count, read_back
from tests.postgres_server import drop_database, fresh_database, versions
from tests.scenario.processes import ForwarderProcess, IngestProcess, Process, until

REPLICAS = 3
GROUPS = 30
EVENTS = "events"
SETTINGS = {
    "OUTBOX_LEASE_SECONDS": "6",
    "OUTBOX_BATCH_SIZE": "50",
    "OUTBOX_BACKOFF_CAP_SECONDS": "1",
    "SYNC_INTERVAL_MS": "500",
}
HMAC = {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "old and new"}


@pytest.fixture(params=["sqlite", "postgres"])
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The database of the gateway and the one of the cloud."""
    if request.param == "sqlite":
        urls = f"sqlite:///{tmp_path}/edge.db", f"sqlite:///{tmp_path}/cloud.db"
        for url in urls:
            migrate(url)
        yield urls
        return
    version = versions()[0]
    urls = fresh_database(version), fresh_database(version)
    yield urls
    for url in urls:
        drop_database(version, url)


@contextmanager
def the_line(folder: Path, edge: str, cloud: str, cluster: MockCluster, topic: str) -> Iterator[list[Process]]:
    """Every process on the way of an event, three of each kind."""
    ingests = [IngestProcess(folder, cloud, **HMAC) for _ in range(REPLICAS)]
    forwarders = [ForwarderProcess(folder, edge, ingest.url, **SETTINGS, **HMAC) for ingest in ingests]
    drain = ["-m", "carrick", "drain", "--channel", EVENTS, "--to", "kafka", "--topic", topic]
    kafka = {"DATABASE_URL": cloud, "KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap_servers, **SETTINGS}
    drains = [Process(drain, folder, kafka) for _ in range(REPLICAS)]
    with ExitStack() as stack:
        yield [stack.enter_context(process) for process in (*ingests, *forwarders, *drains)]


def put_share(store: Store, numbers: range) -> list[str]:
    """Events of devices, numbered; their ids."""
    events = [
        sample(CHANNEL, tenant_id=f"t{n % 3}", group_key=f"device-{n % GROUPS}", payload=str(n).encode())
        for n in numbers
    ]
    return [str(answer.id) for answer in store.put_many(events)]


def storm(folder: Path, databases: tuple[str, str], events: int, kills: int, seed: int) -> None:
    """Put events while processes die; then let the survivors finish, and look at what arrived."""
    chance = random.Random(seed)
    edge, cloud = (open_store(url) for url in databases)
    with MockCluster() as cluster, closing(edge), closing(cloud):
        edge.declare(Channel(name=CHANNEL, mode=Mode.ORDERED, one_tenant=True, lease_seconds=6))
        cloud.declare(Channel(name=EVENTS, mode=Mode.ORDERED, lease_seconds=6))
        topic = cluster.new_topic(partitions=4)
        put: list[str] = []
        with the_line(folder, *databases, cluster, topic) as processes:
            for generation in range(1, kills + 1):
                put += put_share(edge, range(len(put), events * generation // kills))
                time.sleep(chance.uniform(0.1, 0.6))  # how long a process lives is chance, and not what is tested
                victim = chance.choice(processes)
                victim.kill()
                victim.start()
            until(lambda: not waiting(edge, CHANNEL) and not waiting(cloud, EVENTS), "all is in Kafka", 180)
        messages = read_back(cluster.bootstrap_servers, topic, message_count(cluster.bootstrap_servers, topic))
        assert sorted(inbox_of(databases[1])) == sorted(put)
        assert {event_id(message) for message in messages} == set(put)
        check_order(messages)
        assert edge.entries(CHANNEL, state=State.DEAD).lines == ()
        assert cloud.entries(EVENTS, state=State.DEAD).lines == ()


def waiting(store: Store, channel: str) -> int:
    (stats,) = [stats for stats in store.stats() if stats.channel == channel]
    return stats.pending_count + stats.claimed_count


def inbox_of(url: str) -> list[str]:
    """The ids of all stored events."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            return [row[0] for row in file.execute("select event_id from carrick_inbox")]
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("select event_id from carrick.inbox")]


def event_id(message: Message) -> str:
    """The id that the gateway gave the event."""
    value = dict(message.headers() or [])["event_id"]
    assert isinstance(value, bytes)
    return value.decode()


def check_order(messages: list[Message]) -> None:
    """First arrivals of a device are in the order in which they were put."""
    seen: set[str] = set()
    last: defaultdict[bytes, int] = defaultdict(lambda: -1)
    for message in messages:
        if event_id(message) not in seen:
            device, number = message.key(), int(message.value() or b"")
            assert isinstance(device, bytes)
            assert number > last[device], f"{number} of {device!r} after {last[device]}"
            last[device] = number
            seen.add(event_id(message))


@pytest.mark.timeout(400)
def test_every_event_is_in_the_inbox_once_and_in_kafka_in_order_through_kills(
    databases: tuple[str, str], tmp_path: Path
) -> None:
    storm(tmp_path, databases, events=5_000, kills=15, seed=11)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_longer_storm_over_the_whole_line(databases: tuple[str, str], tmp_path: Path) -> None:
    storm(tmp_path, databases, events=50_000, kills=300, seed=random.randrange(2**32))
