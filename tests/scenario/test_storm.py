"""Forwarders and their cloud endpoint killed again and again: every event arrives, and is known when it comes twice."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import pytest

from carrick.entry import State
from carrick.forward.events import CHANNEL
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.testing.samples import sample
from tests.scenario.cloud import Taken, read_log
from tests.scenario.conftest import Shared
from tests.scenario.processes import CloudProcess, ForwarderProcess, until

FORWARDERS = 3
GROUPS = 40
SETTINGS = {
    "OUTBOX_LEASE_SECONDS": "6",
    "OUTBOX_BATCH_SIZE": "50",
    "OUTBOX_BACKOFF_CAP_SECONDS": "1",
    "SYNC_INTERVAL_MS": "500",
}


def storm(folder: Path, url: str, events: int, kills: int, seed: int) -> None:
    """Put events while processes die; then let the survivors finish, and look at what arrived."""
    chance = random.Random(seed)
    store = open_store(url)
    store.declare(Channel(name=CHANNEL, mode=Mode.ORDERED, one_tenant=True))
    killed: set[str] = set()
    killed_clouds: set[int] = set()
    with ExitStack() as stack:
        cloud = stack.enter_context(CloudProcess(folder))
        forwarders = [
            stack.enter_context(ForwarderProcess(folder, url, cloud.url, INSTANCE_ID=f"f{n}-0", **SETTINGS))
            for n in range(FORWARDERS)
        ]
        names = [f"f{n}-0" for n in range(FORWARDERS)]
        put: list[str] = []
        for generation in range(1, kills + 1):
            share = range(len(put), events * generation // kills)
            batch = [
                sample(
                    CHANNEL,
                    tenant_id=f"t{n % 3}",
                    group_key=f"g{n % GROUPS}",
                    payload=f'{{"n": {n}, "group": "t{n % 3}/g{n % GROUPS}"}}'.encode(),
                )
                for n in share
            ]
            put += [str(answer.id) for answer in store.put_many(batch)]
            time.sleep(chance.uniform(0.1, 0.6))  # how long a process lives is chance, and not what is tested
            victim = chance.randrange(FORWARDERS + 1)
            if victim == FORWARDERS:
                killed_clouds.add(cloud.pid)
                cloud.kill()
                cloud.start()
            else:
                killed.add(names[victim])
                forwarders[victim].kill()
                names[victim] = f"f{victim}-{generation}"
                forwarders[victim].start(INSTANCE_ID=names[victim])
        until(lambda: not _waiting(url), "everything is delivered", patience_seconds=180)
        for forwarder in forwarders:
            forwarder.wait_ready()
            assert forwarder.stop() == 0
        taken = read_log(cloud.file)
    assert {event.event_id for event in taken} == set(put)
    assert store.entries(CHANNEL, state=State.DEAD).lines == ()
    stalled = {n for n, forwarder in enumerate(forwarders) if "lease_lost" in forwarder.log}
    _check_duplicates(taken, killed, killed_clouds, stalled)
    _check_order(taken)
    store.close()


def _waiting(url: str) -> int:
    store = open_store(url)
    try:
        (stats,) = [stats for stats in store.stats() if stats.channel == CHANNEL]
        return stats.pending_count + stats.claimed_count
    finally:
        store.close()


def _check_duplicates(taken: list[Taken], killed: set[str], killed_clouds: set[int], stalled: set[int]) -> None:
    """An event comes again only if its finish was cut off: its sender or its taker was killed, or the sender stalled so
    long on this busy machine that it lost the lease, which it has told."""
    by_event: defaultdict[str, list[Taken]] = defaultdict(list)
    for event in taken:
        by_event[event.event_id].append(event)
    for copies in by_event.values():
        for earlier in copies[:-1]:
            sender = int(earlier.edge_id[1 : earlier.edge_id.index("-")])
            assert earlier.edge_id in killed or earlier.cloud in killed_clouds or sender in stalled, copies


def _check_order(taken: list[Taken]) -> None:
    """First arrivals of a group are in the order in which they were put."""
    seen: set[str] = set()
    last: defaultdict[str, int] = defaultdict(lambda: -1)
    for event in taken:
        if event.event_id not in seen:
            assert event.number > last[event.group], f"{event} after {last[event.group]}"
            last[event.group] = event.number
            seen.add(event.event_id)


@pytest.mark.timeout(400)
def test_every_event_arrives_through_kills_of_forwarders_and_endpoint(shared: Shared, tmp_path: Path) -> None:
    storm(tmp_path, shared.url, events=20_000, kills=20, seed=7)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_longer_storm(shared: Shared, tmp_path: Path) -> None:
    storm(tmp_path, shared.url, events=100_000, kills=500, seed=random.randrange(2**32))
