"""The network between forwarder and cloud, or forwarder and PostgreSQL, cut, silent, slow, ended in mid-answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from carrick.entry import State
from carrick.forward.events import CHANNEL
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from carrick.testing.samples import sample
from tests.scenario.cloud import read_log
from tests.scenario.processes import CloudProcess, ForwarderProcess, until
from tests.scenario.proxy import Connect, Mood, Proxy

SETTINGS = {
    "OUTBOX_LEASE_SECONDS": "6",
    "OUTBOX_BATCH_SIZE": "20",
    "OUTBOX_BACKOFF_CAP_SECONDS": "1",
    "SYNC_INTERVAL_MS": "200",
    "CLOUD_TIMEOUT_SECONDS": "2",
}
TROUBLES = [mood for mood in Mood if mood is not Mood.PASS]


def way_to_postgres(dsn: str) -> Connect:
    """To the server's socket, wherever that is."""
    parts = urlsplit(dsn)
    folder = parse_qs(parts.query).get("host", [parts.hostname or ""])[0]
    if folder.startswith("/"):
        return lambda: asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{parts.port or 5432}")
    return lambda: asyncio.open_connection(folder, parts.port or 5432)


def through(proxy: Proxy, dsn: str) -> str:
    """The same database, behind the proxy."""
    parts = urlsplit(dsn)
    account = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{account}@127.0.0.1:{proxy.port}", query="").geturl()


def put(store: Store, numbers: range) -> list[str]:
    """Events of two tenants, in order in some groups."""
    events = [
        sample(CHANNEL, tenant_id=f"t{n % 2}", group_key=f"g{n % 7}", payload=f'{{"n": {n}}}'.encode()) for n in numbers
    ]
    return [str(answer.id) for answer in store.put_many(events)]


def troubled(folder: Path, dsn: str, troubles: Sequence[tuple[str, Mood, float]], events: int) -> None:
    """Put events all the while; each trouble lasts its seconds, and between two of them the network is well again."""
    ids: list[str] = []
    with ExitStack() as stack:
        store = stack.enter_context(closing(open_store(dsn)))
        store.declare(Channel(name=CHANNEL, mode=Mode.ORDERED, one_tenant=True))
        cloud = stack.enter_context(CloudProcess(folder))
        ways = {
            "cloud": stack.enter_context(Proxy(lambda: asyncio.open_connection("127.0.0.1", cloud.port))),
            "database": stack.enter_context(Proxy(way_to_postgres(dsn))),
        }
        address = f"http://127.0.0.1:{ways['cloud'].port}/batch"
        database = through(ways["database"], dsn)
        forwarder = stack.enter_context(ForwarderProcess(folder, database, address, **SETTINGS))
        forwarder.wait_ready()
        for turn, (way, mood, seconds) in enumerate(troubles):
            ways[way].feel(mood)
            ids += put(store, range(len(ids), events * (turn + 1) // len(troubles)))
            time.sleep(seconds)  # how long a trouble lasts is not what is tested
            ways[way].feel(Mood.PASS)
        until(lambda: {event.event_id for event in read_log(cloud.file)} == set(ids), "all arrived", 120)
        until(lambda: _left(store) == 0, "all are finished", 60)
        assert forwarder.stop() == 0
    assert len(ids) == events


def _left(store: Store) -> int:
    (stats,) = [stats for stats in store.stats() if stats.channel == CHANNEL]
    assert store.entries(CHANNEL, state=State.DEAD).lines == ()
    return stats.pending_count + stats.claimed_count


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["cloud", "database"])
def test_everything_arrives_after_every_trouble_on_the_way(way: str, newest_postgres_dsn: str, tmp_path: Path) -> None:
    troubled(tmp_path, newest_postgres_dsn, [(way, mood, 0.5) for mood in TROUBLES], events=200)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_everything_arrives_after_many_troubles_on_both_ways(newest_postgres_dsn: str, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    troubles = [
        (chance.choice(["cloud", "database"]), chance.choice(TROUBLES), chance.uniform(0.1, 4)) for _ in range(100)
    ]
    print(f"100 troubles on the way to the cloud or to PostgreSQL, 20,000 events, seed {seed}")
    troubled(tmp_path, newest_postgres_dsn, troubles, events=20_000)
