"""Redis beside the database is killed, flushed, frozen and full: nothing is lost, nobody waits, and it is told."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from carrick.state.beside import REST_SECONDS
from carrick.state.kv import Count
from carrick.state.redis import RedisServer
from carrick.state.shared import SharedState
from carrick.testing.state_contract import run
from tests.redis_server import RedisProcess
from tests.replicas import Time, replica, until

LONG = 1000.0


class Counted(RedisServer):
    """Notes how often it was asked to count."""

    asked = 0

    async def increment(self, key: str, ttl: float, by: int) -> Count:
        self.asked += 1
        return await super().increment(key, ttl, by)


async def welcome(state: SharedState, times: int, limit: int) -> int:
    """How many of so many are within the limit of one window."""
    counts = [await state.increment("limit:x", ttl=LONG) for _ in range(times)]
    return sum(count.sum <= limit for count in counts)


def test_values_survive_whatever_becomes_of_redis(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.set("k", b"1", ttl=LONG)
            with server.client() as client:
                client.flushall()
            assert await state.get("k") == b"1"
            server.kill()
            assert await state.compare_and_set("k", b"1", b"2", ttl=LONG)
            server.start()
            assert await state.delete("k") == b"2"
            assert await state.get("k") is None
            with server.client() as client:
                assert client.keys() == []

    run(story())


def test_a_limiter_whose_counters_redis_forgets_grants_one_more_window(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            assert await welcome(state, 8, 5) == 5
            with server.client() as client:
                client.flushall()
            assert await welcome(state, 8, 5) == 5
            server.kill()
            assert await welcome(state, 8, 5) == 5  # the database counts from here on
            time.shift(REST_SECONDS)
            assert await welcome(state, 8, 5) == 0
            server.start()
            time.shift(REST_SECONDS)
            assert await welcome(state, 8, 5) == 0  # it had written its counter down
            server.kill()
            assert await welcome(state, 8, 5) == 0

    run(story())


def test_a_redis_that_says_nothing_is_waited_for_once_and_then_left_alone(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        redis = Counted(server.url, timeout=0.1)
        async with replica(path, redis, time) as state:
            await state.increment("hits", ttl=LONG)
            server.freeze()
            sums = [(await state.increment("hits", ttl=LONG)).sum for _ in range(20)]
            assert (sums, redis.asked) == ([*range(1, 21)], 2)
            assert state.health.degraded
            time.shift(REST_SECONDS)
            await state.increment("hits", ttl=LONG)
            assert redis.asked == 3
            server.thaw()
            time.shift(REST_SECONDS)
            await state.increment("hits", ttl=LONG)
            assert not state.health.degraded

    run(story())


def test_copies_and_messages_are_not_waited_for_and_the_latest_copy_stays(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url, timeout=30), time) as state:
            server.freeze()
            for number in range(100):
                state.copy("osm_blocked:1", b"%d" % number, ttl=LONG)
                state.copy("osm_blocked:2", b"x" if number % 2 == 0 else None, ttl=LONG)
                await state.publish("topic", "hello")
            server.thaw()
            with server.client() as client:
                await until(lambda: client.get("osm_blocked:1") == b"99")
                await until(lambda: client.get("osm_blocked:2") is None)
                assert 0 < client.ttl("osm_blocked:1") <= LONG

    run(story())


def test_what_waits_for_a_slow_redis_is_bounded(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick.state.beside.MOST_DUE", 10)

    async def story() -> None:
        async with replica(path, RedisServer(server.url, timeout=30), time) as state:
            server.freeze()
            for number in range(100):
                state.copy(f"k{number}", b"1", ttl=LONG)
            assert state._beside is not None
            assert len(state._beside._due) == 10
            server.thaw()
            with server.client() as client:
                await until(lambda: client.get("k99") == b"1")

    run(story())


def test_a_redis_that_cannot_be_written_to_is_degraded(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        with server.client() as client:
            client.config_set("maxmemory", "1")
            async with replica(path, RedisServer(server.url), time) as state:
                assert (await state.look()).degraded
                assert "maxmemory" in state.health.problem
                assert (await state.increment("hits", ttl=LONG)).sum == 1
                client.config_set("maxmemory", "0")
                assert not (await state.look()).degraded
                assert state.health.errors == 1

    run(story())


def test_that_redis_goes_and_comes_back_is_logged_once(
    path: Path, time: Time, server: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.look()
            server.kill()
            await asyncio.gather(*(state.increment("hits", ttl=LONG) for _ in range(5)))
            await state.look()
            server.start()
            await state.look()
            await state.look()

    with caplog.at_level(logging.INFO, "carrick.state"):
        run(story())
    assert [record.message for record in caplog.records] == ["state.redis_failed", "state.redis_back"]
