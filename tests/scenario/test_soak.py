"""Mixed load with faults for a long time: memory and open files of a forwarder stay what they were."""

from __future__ import annotations

import asyncio
import os
import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from carrick.outbox.sqlite.migrate import migrate
from tests.scenario.cloud import read_log
from tests.scenario.footprint import Footprint, check_flat
from tests.scenario.processes import CloudProcess, ForwarderProcess, Process, until
from tests.scenario.proxy import Mood, Proxy

SOAK_SECONDS = float(os.environ.get("SOAK_SECONDS", "1800"))
SETTINGS = {
    "OUTBOX_LEASE_SECONDS": "6",
    "OUTBOX_BACKOFF_CAP_SECONDS": "1",
    "OUTBOX_RETENTION_DAYS": "0",
    "SYNC_INTERVAL_MS": "500",
    "CLOUD_TIMEOUT_SECONDS": "2",
    "INTERNAL_ADMIN_ENABLED": "true",
}
READS = ["sync/state", "sync/outbox?limit=50", "sync/outbox?status=nonsense", "sync/dlq", "sync/diagnostics"]
EVENTS_AT_ONCE = 5
SECONDS_BETWEEN_FAULTS = 5.0


class Load:
    """Producers and onlookers of some forwarders, by chance."""

    def __init__(self, forwarders: list[ForwarderProcess], chance: random.Random) -> None:
        self._forwarders = forwarders
        self._chance = chance
        self.accepted: set[str] = set()

    def step(self) -> None:
        """One request to one of them."""
        forwarder = self._chance.choice(self._forwarders)
        if self._chance.random() < 0.2:
            status, _ = forwarder.ask("GET", f"/api/v1/{self._chance.choice(READS)}")
            assert status in (200, 400, 503)
            return
        filling = "x" * self._chance.choice([10, 100, 5_000])
        events = [
            {"tenant_id": f"t{n}", "event_type": "e", "group": f"g{n}", "payload": {"n": n, "filling": filling}}
            for n in range(EVENTS_AT_ONCE)
        ]
        status, answer = forwarder.ask("POST", "/api/v1/events", events)
        assert status in (202, 503)
        self.accepted.update(answer["ids"] if status == 202 else [])


def fault(way: Proxy, cloud: CloudProcess, chance: random.Random) -> None:
    """Something goes wrong with the endpoint, or with the way there; or is well again."""
    if chance.random() < 0.2:
        cloud.kill()
        cloud.start()
    else:
        way.feel(chance.choice(list(Mood)))


def soak(folder: Path, sqlite_path: Path, postgres_dsn: str, seconds: float) -> None:
    """One forwarder on each database, one endpoint, and a network between that fails every few seconds."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    migrate(sqlite_path)
    with ExitStack() as stack:
        cloud = stack.enter_context(CloudProcess(folder))
        way = stack.enter_context(Proxy(lambda: asyncio.open_connection("127.0.0.1", cloud.port)))
        forwarders = [
            stack.enter_context(ForwarderProcess(folder, url, f"http://127.0.0.1:{way.port}/batch", **SETTINGS))
            for url in (f"sqlite:///{sqlite_path}", postgres_dsn)
        ]
        for forwarder in forwarders:
            forwarder.wait_ready()
        load = Load(forwarders, chance)
        looks: list[list[Footprint]] = [[], []]
        end = time.monotonic() + seconds
        next_fault = next_look = time.monotonic()
        while (now := time.monotonic()) < end:
            load.step()
            if now >= next_fault:
                fault(way, cloud, chance)
                next_fault = now + SECONDS_BETWEEN_FAULTS
            if now >= next_look:
                for seen, forwarder in zip(looks, forwarders, strict=True):
                    seen.append(Footprint.of(forwarder.pid))
                next_look = now + seconds / 400
            time.sleep(0.01)  # a steady load, not the largest
        way.feel(Mood.PASS)
        until(lambda: load.accepted <= {event.event_id for event in read_log(cloud.file)}, "all arrived", 300)
        for forwarder in forwarders:
            assert forwarder.stop() == 0
    print(f"seed {seed}: {seconds:.0f} s, {len(load.accepted)} events; " + "; ".join(map(check_flat, looks)))


LEAK = "import time\nkept = []\nwhile True: kept.append({}); time.sleep(0.005)"


@pytest.mark.parametrize(
    ("keeps", "problem"),
    [("b'x' * 200_000", "memory grows"), ("open('/dev/null')", "handles grow"), ("None", None)],
    ids=["memory", "handles", "nothing"],
)
def test_a_process_that_keeps_something_is_found_out(tmp_path: Path, keeps: str, problem: str | None) -> None:
    looks = []
    with Process(["-c", LEAK.format(keeps)], tmp_path) as process:
        for _ in range(60):
            time.sleep(0.02)  # time is what it leaks in
            looks.append(Footprint.of(process.pid))
    if problem is None:
        check_flat(looks)
    else:
        with pytest.raises(AssertionError, match=problem):
            check_flat(looks)


@pytest.mark.chaos
@pytest.mark.timeout(7200)
def test_memory_and_handles_stay_flat(tmp_path: Path, sqlite_path: Path, newest_postgres_dsn: str) -> None:
    soak(tmp_path, sqlite_path, newest_postgres_dsn, SOAK_SECONDS)
