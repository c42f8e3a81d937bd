"""What shared state needs now and then is done by one replica, and Redis is looked after."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from carrick.outbox.sqlite.store import SqliteStore
from carrick.relay.threads import Threads
from carrick.state import upkeep
from carrick.state.redis import RedisServer
from carrick.testing.state_contract import run
from tests.redis_server import RedisProcess
from tests.replicas import Time, replica, until


def test_the_replica_with_the_duty_removes_what_has_ended(path: Path, time: Time) -> None:
    store, threads = SqliteStore(path), Threads(1)

    async def story() -> None:
        async with replica(path, None, time) as state:
            for number in range(3):
                await state.set(f"k{number}", b"1", ttl=10)
            time.shift(11)
            assert store.take_duty("janitor:state", "other", 60)
            assert await upkeep.prune_once(state, store, threads, "me") == 0
            time.shift(61)
            assert await upkeep.prune_once(state, store, threads, "me") == 3

    try:
        run(story())
    finally:
        threads.close()
        store.close()


def test_a_process_at_rest_notices_that_redis_goes_and_comes_back(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "LOOK_EVERY_SECONDS", 0.01)
    store, threads = SqliteStore(path), Threads(1)

    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            keeping = asyncio.create_task(upkeep.keep(state, store, threads, "me"))
            server.kill()
            await until(lambda: state.health.degraded)
            server.start()
            await until(lambda: not state.health.degraded)
            keeping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await keeping

    try:
        run(story())
    finally:
        threads.close()
        store.close()
