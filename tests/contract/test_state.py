"""The contract of shared state on SQLite and PostgreSQL, and of its counters on Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from carrick.state.beside import Health
from carrick.state.redis import RedisServer
from carrick.state.shared import SharedState
from carrick.testing import Clock, PostgresClock, RedisClock, SqliteClock, StateContract
from carrick.testing.state_contract import CounterContract, Replica, run
from tests.redis_server import redis_url
from tests.replicas import replica as opened_replica
from tests.sqlite_file import whole_file


@pytest.fixture
def sqlite_file(sqlite_path: Path) -> Path:
    whole_file(sqlite_path)
    return sqlite_path


class DatabaseContract(StateContract):
    """What holds where the values are in tables."""

    def test_pruning_removes_what_has_ended_and_nothing_else(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as state:
                for number in range(5):
                    await state.set(f"short:{number}", b"1", ttl=10)
                await state.set("long", b"1", ttl=100)
                assert await state.prune() == 0
                clock.shift(11)
                await state.set("short:0", b"2", ttl=10)
                assert [await state.prune(3) for _ in range(3)] == [3, 1, 0]
                assert await state.get_many(["long", "short:0"]) == {"long": b"1", "short:0": b"2"}

        run(story())

    def test_without_redis_nothing_is_degraded(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                assert not (await state.look()).degraded

        run(story())


class TestOnSqlite(DatabaseContract):
    """In a file."""

    @pytest.fixture
    def replica(self, sqlite_file: Path) -> Replica:
        return lambda: opened_replica(sqlite_file, None)

    @pytest.fixture
    def clock(self, sqlite_file: Path) -> Clock:
        return SqliteClock(sqlite_file)


class TestOnPostgres(DatabaseContract):
    """In a PostgreSQL database."""

    @pytest.fixture
    def replica(self, postgres_dsn: str) -> Replica:
        return lambda: opened_replica(postgres_dsn, None)

    @pytest.fixture
    def clock(self, postgres_dsn: str) -> Clock:
        return PostgresClock(postgres_dsn)


class TestOnRedis(CounterContract):
    """Counters on a Redis server beside the database."""

    @pytest.fixture
    def prefix(self) -> str:
        return f"test-{uuid4().hex}:"

    @pytest.fixture
    def replica(self, sqlite_file: Path, prefix: str) -> Replica:
        @asynccontextmanager
        async def on_redis() -> AsyncIterator[SharedState]:
            async with opened_replica(sqlite_file, RedisServer(redis_url(), prefix, timeout=30)) as state:
                yield state
                assert state.health == Health()
                assert await state.scan("") == []

        return on_redis

    @pytest.fixture
    def clock(self, prefix: str) -> Clock:
        return RedisClock(redis_url(), prefix)

    def test_keys_in_redis_begin_with_the_prefix(self, replica: Replica, prefix: str) -> None:
        async def story() -> None:
            async with replica() as state:
                await state.increment("limit:x", ttl=60)

        run(story())
        with redis.Redis.from_url(redis_url()) as client:
            assert list(client.scan_iter(match=f"{prefix}*")) == [f"{prefix}limit:x".encode()]

    def test_more_who_work_at_once_than_there_are_connections_wait_for_one(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                counts = await asyncio.gather(*(state.increment("hits", ttl=60) for _ in range(300)))
                assert max(count.sum for count in counts) == 300

        run(story())
