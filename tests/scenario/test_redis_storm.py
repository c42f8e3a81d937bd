"""Redis is killed, and cut off from single replicas, under load: what is read is never older than what was written."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from carrick.state import epoch, switch
from carrick.state.fallback import SharedState
from carrick.state.redis import RedisServer
from carrick.testing.state_contract import run
from carrick.wiring import migrate
from tests.redis_server import RedisProcess
from tests.replicas import Wire, replica, until

REPLICAS = 3
KEYS = 4
FAULTS = 9


@pytest.fixture
def server() -> Iterator[RedisProcess]:
    server = RedisProcess()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules in a tenth of the time."""
    monkeypatch.setattr(switch, "LEASE_SECONDS", 0.2)
    monkeypatch.setattr(epoch, "SETTLE_SECONDS", 0.25)
    monkeypatch.setattr(epoch, "FIRST_HOLD_OFF_SECONDS", 0.01)
    monkeypatch.setattr(epoch, "LONGEST_HOLD_OFF_SECONDS", 0.1)


class Ledger:
    """What was written and acknowledged, by key; each key has one writer that counts upward."""

    def __init__(self) -> None:
        self.written = dict.fromkeys((f"k{number}" for number in range(KEYS)), 0)
        self.reads = 0
        self.hits = 0
        self.stop = False

    async def write(self, key: str, states: list[SharedState]) -> None:
        number = 0
        while not self.stop:
            number += 1
            await random.choice(states).set(key, b"%d" % number, ttl=60)
            self.written[key] = number
            await asyncio.sleep(random.random() / 50)

    async def read(self, state: SharedState) -> None:
        while not self.stop:
            key = random.choice(list(self.written))
            at_least = self.written[key]
            found = await state.get(key)
            self.reads += 1
            if found is not None:
                self.hits += 1
                assert int(found) >= at_least, f"{key}: read {found!r}, but {at_least} was written before"

    async def more_reads(self) -> None:
        """Return when the load has gone on for a while."""
        enough = self.reads + 100
        await until(lambda: self.reads >= enough)


class Faults:
    """What happens to Redis, and to the wires between it and the replicas."""

    def __init__(self, server: RedisProcess, ledger: Ledger) -> None:
        self._server = server
        self._ledger = ledger
        self.wires = [Wire(server.socket, server.socket.with_name(f"wire{number}")) for number in range(REPLICAS)]

    async def run(self, states: list[SharedState]) -> None:
        """One fault after the other, each while Redis is in use."""
        for number in range(FAULTS):
            await self._ledger.more_reads()
            while not await random.choice(states).recover():
                await self._ledger.more_reads()
            await (self._unseen, self._outage, self._one_alone)[number % 3]()
        self._ledger.stop = True

    async def _unseen(self) -> None:
        self._server.restart()

    async def _outage(self) -> None:
        self._server.kill()
        await self._ledger.more_reads()
        self._server.start()

    async def _one_alone(self) -> None:
        wire = random.choice(self.wires)
        wire.cut = True
        wire.drop()
        await self._ledger.more_reads()
        wire.cut = False


def test_nobody_reads_an_older_value_while_redis_comes_and_goes(sqlite_path: Path, server: RedisProcess) -> None:
    migrate(f"sqlite:///{sqlite_path}")
    ledger = Ledger()
    faults = Faults(server, ledger)

    async def story() -> None:
        async with AsyncExitStack() as stack:
            states = []
            for wire in faults.wires:
                await stack.enter_async_context(wire)
                states.append(await stack.enter_async_context(replica(sqlite_path, RedisServer(wire.url))))
            async with asyncio.TaskGroup() as tasks:
                for key in ledger.written:
                    tasks.create_task(ledger.write(key, states))
                for state in states:
                    tasks.create_task(ledger.read(state))
                tasks.create_task(faults.run(states))
            assert sum(state.health.errors for state in states) >= FAULTS

    run(story())
    assert ledger.hits > FAULTS
