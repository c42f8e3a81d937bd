"""No room for the outbox: producers are refused with a word, what was accepted arrives, and room is enough to go on."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from carrick.outbox.sqlite.migrate import migrate
from tests.scenario.cloud import read_log
from tests.scenario.processes import CloudProcess, ForwarderProcess, until

SETTINGS = {"SYNC_INTERVAL_MS": "200", "OUTBOX_BACKOFF_CAP_SECONDS": "1"}
EVENTS = 20
TRIES = 1000


@contextmanager
def no_room(pid: int, path: Path) -> Iterator[None]:
    """The write-ahead log, where all that is new goes first, cannot grow: to the process that is a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    size = path.with_name(f"{path.name}-wal").stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def post(forwarder: ForwarderProcess) -> tuple[int, Any]:
    """Some events that need room."""
    event = {"tenant_id": "farm", "event_type": "e", "payload": {"n": 0, "filling": "x" * 10_000}}
    return forwarder.ask("POST", "/api/v1/events", [event] * EVENTS)


def filled(folder: Path, path: Path, times: int) -> None:
    """Take the room away and give it back so many times, while events come."""
    migrate(path)
    accepted: list[str] = []
    refused = 0
    with (
        CloudProcess(folder) as cloud,
        ForwarderProcess(folder, f"sqlite:///{path}", cloud.url, **SETTINGS) as forwarder,
    ):
        forwarder.wait_ready()
        for _ in range(times):
            with no_room(forwarder.pid, path):
                for _ in range(TRIES):
                    status, answer = post(forwarder)
                    if status != 202:
                        break
                    accepted += answer["ids"]
                assert (status, answer["error"]) == (503, "store_unavailable")
                refused += 1
            status, answer = post(forwarder)
            assert status == 202
            accepted += answer["ids"]
        until(lambda: {event.event_id for event in read_log(cloud.file)} == set(accepted), "all that was accepted")
        until(lambda: forwarder.ask("GET", "/api/v1/sync/state")[1]["pending_count"] == 0, "all is finished")
        assert forwarder.stop() == 0
    print(f"{refused} times without room, {len(accepted)} events accepted and delivered")


@pytest.mark.timeout(300)
def test_a_full_disk_refuses_events_and_loses_none(tmp_path: Path, sqlite_path: Path) -> None:
    filled(tmp_path, sqlite_path, times=2)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_a_disk_that_is_full_again_and_again_loses_nothing(tmp_path: Path, sqlite_path: Path) -> None:
    filled(tmp_path, sqlite_path, times=50)
