"""Forwarders and their cloud endpoint killed again and again: every event arrives, and is known when it comes twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
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
Clocks = Sequence[Mapping[str, str]]
"""How wrong the clock of each forwarder is."""
RIGHT_CLOCKS: Clocks = [{}] * FORWARDERS
WRONG_CLOCKS: Clocks = [{"SHIFTED_SECONDS": "600"}, {"SHIFTED_SECONDS": "-600"}, {}]
SETTINGS = {
    "OUTBOX_LEASE_SECONDS": "6",
    "OUTBOX_BATCH_SIZE": "50",
    "OUTBOX_BACKOFF_CAP_SECONDS": "1",
    "SYNC_INTERVAL_MS": "500",
}


class Storm:
    """Three forwarders and their endpoint, of which any may be killed; and what was put."""

    def __init__(self, folder: Path, url: str, stack: ExitStack, clocks: Clocks = RIGHT_CLOCKS) -> None:
        self._store = stack.enter_context(closing(open_store(url)))
        self._store.declare(Channel(name=CHANNEL, mode=Mode.ORDERED, one_tenant=True))
        self.cloud = stack.enter_context(CloudProcess(folder))
        self.names = [f"f{n}-0" for n in range(FORWARDERS)]
        self.forwarders = [
            stack.enter_context(ForwarderProcess(folder, url, self.cloud.url, INSTANCE_ID=name, **clock, **SETTINGS))
            for name, clock in zip(self.names, clocks, strict=True)
        ]
        self.put_ids: list[str] = []
        self.killed: set[str] = set()
        self.killed_clouds: set[int] = set()

    def put(self, upto: int) -> None:
        """More events, until there are that many."""
        batch = [
            sample(
                CHANNEL,
                tenant_id=f"t{n % 3}",
                group_key=f"g{n % GROUPS}",
                payload=f'{{"n": {n}, "group": "t{n % 3}/g{n % GROUPS}"}}'.encode(),
            )
            for n in range(len(self.put_ids), upto)
        ]
        self.put_ids += [str(answer.id) for answer in self._store.put_many(batch)]

    def kill(self, victim: int, generation: int) -> None:
        """A forwarder by its number, else the endpoint; it starts again at once."""
        if victim == FORWARDERS:
            self.killed_clouds.add(self.cloud.pid)
            self.cloud.kill()
            self.cloud.start()
            return
        self.killed.add(self.names[victim])
        self.forwarders[victim].kill()
        self.names[victim] = f"f{victim}-{generation}"
        self.forwarders[victim].start(INSTANCE_ID=self.names[victim])

    def drain(self) -> None:
        """Wait until nothing waits."""
        until(lambda: not self._waiting(), "everything is delivered", patience_seconds=300)

    def end(self) -> list[Taken]:
        """Let the survivors finish; then everything must have arrived, in order, and again only where it had to."""
        self.drain()
        for forwarder in self.forwarders:
            forwarder.wait_ready()
            assert forwarder.stop() == 0
        taken = read_log(self.cloud.file)
        assert {event.event_id for event in taken} == set(self.put_ids)
        assert self._store.entries(CHANNEL, state=State.DEAD).lines == ()
        stalled = {n for n, forwarder in enumerate(self.forwarders) if "lease_lost" in forwarder.log}
        _check_duplicates(taken, self.killed, self.killed_clouds, stalled)
        _check_order(taken)
        return taken

    def _waiting(self) -> int:
        (stats,) = [stats for stats in self._store.stats() if stats.channel == CHANNEL]
        return stats.pending_count + stats.claimed_count


def storm(folder: Path, url: str, events: int, kills: int, seed: int, clocks: Clocks = RIGHT_CLOCKS) -> None:
    """Put events while processes die."""
    chance = random.Random(seed)
    began = time.monotonic()
    with ExitStack() as stack:
        processes = Storm(folder, url, stack, clocks)
        for generation in range(1, kills + 1):
            processes.put(events * generation // kills)
            time.sleep(chance.uniform(0.1, 0.6))  # how long a process lives is chance, and not what is tested
            processes.kill(chance.randrange(FORWARDERS + 1), generation)
        taken = processes.end()
    print(
        f"seed {seed}: {events} events, {kills} kills, {len(processes.killed_clouds)} of them of the endpoint; "
        f"{len(taken) - events} events came again; {time.monotonic() - began:.0f} s"
    )


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


def test_forwarders_whose_clocks_are_wrong_lose_nothing_and_double_nothing(
    newest_postgres_dsn: str, tmp_path: Path
) -> None:
    """Ten minutes off, either way: all times come from the database (G9)."""
    with ExitStack() as stack:
        processes = Storm(tmp_path, newest_postgres_dsn, stack, WRONG_CLOCKS)
        for forwarder in processes.forwarders:
            forwarder.wait_ready()
        processes.put(1_500)
        processes.drain()
        busy = {event.edge_id for event in read_log(processes.cloud.file)}
        for number in {int(name[1]) for name in list(busy)[: FORWARDERS - 1]}:
            os.kill(processes.forwarders[number].pid, signal.SIGSTOP)  # or one of them might do it all alone
        processes.put(3_000)
        processes.drain()
        for forwarder in processes.forwarders:
            os.kill(forwarder.pid, signal.SIGCONT)
        taken = processes.end()
    assert len({event.edge_id for event in taken}) > 1


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_longer_storm(shared: Shared, tmp_path: Path) -> None:
    storm(tmp_path, shared.url, events=100_000, kills=500, seed=random.randrange(2**32))


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_longer_storm_with_clocks_that_are_wrong(newest_postgres_dsn: str, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    storm(tmp_path, newest_postgres_dsn, events=20_000, kills=100, seed=seed, clocks=WRONG_CLOCKS)
