"""A subscriber that loses its connection gets it back, and is told that it may have missed something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import psycopg
import pytest

from carrick.errors import StoreUnavailable
from carrick.state import listening
from carrick.state.kv import Gap, Heard, Message
from carrick.state.listening import hear, merged
from carrick.state.redis import RedisServer
from carrick.state.sqlite.tables import KEPT_MESSAGES
from carrick.testing.state_contract import next_message, run
from tests.redis_server import RedisProcess
from tests.replicas import Time, replica, until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left waiting for a pause that spares a server."""
    monkeypatch.setattr(listening, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(listening, "LONGEST_PAUSE_SECONDS", 0.02)


async def until_gap(heard: AsyncGenerator[Heard, None], about: str) -> None:
    """Return when a gap was heard of that place."""
    while True:
        item = await anext(heard)
        if isinstance(item, Gap) and about in item.reason:
            return


def test_messages_are_heard_in_the_database_while_redis_is_away(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with (
            replica(path, RedisServer(server.url), time) as one,
            replica(path, RedisServer(server.url), time) as other,
            aclosing(other.subscribe("topic")) as heard,
        ):
            assert isinstance(await anext(heard), Gap)
            server.kill()
            await until_gap(heard, "Redis")
            await one.publish("topic", "in the database")
            assert await next_message(heard) == "in the database"
            server.start()
            await until_gap(heard, "Redis: listening")

    run(story())


def test_messages_are_heard_through_redis_where_the_database_cannot_be_heard(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf(_: str) -> AsyncGenerator[str | None, None]:
        yield None
        await asyncio.Event().wait()

    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as one, replica(path, None, time) as without:
            monkeypatch.setattr(one._tables, "listen", deaf)
            async with aclosing(one.subscribe("topic")) as heard:
                assert isinstance(await anext(heard), Gap)
                await without.publish("topic", "unheard")
                await one.publish("topic", "hello")
                assert await next_message(heard) == "hello"

    run(story())


def test_a_replica_that_alone_cannot_reach_redis_hears_the_others(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with (
            replica(path, RedisServer(server.url), time) as publisher,
            replica(path, RedisServer("unix:///no/such/socket"), time) as cut_off,
            aclosing(cut_off.subscribe("topic")) as heard,
        ):
            assert isinstance(await anext(heard), Gap)
            await publisher.publish("topic", "hello")
            assert await next_message(heard) == "hello"

    run(story())


def test_a_subscription_that_redis_drops_is_made_again(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state, aclosing(state.subscribe("topic")) as heard:
            assert isinstance(await anext(heard), Gap)
            with server.client() as client:
                client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            await until_gap(heard, "Redis: listening")
            await state.publish("topic", "hello")
            assert await next_message(heard) == "hello"

    run(story())


def test_a_silent_connection_is_asked_and_given_up_when_nobody_answers(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick.state.redis.PING_SECONDS", 0.1)

    async def story() -> None:
        redis = RedisServer(server.url, timeout=0.2)
        async with replica(path, redis, time) as state, aclosing(state.subscribe("topic")) as heard:
            assert isinstance(await anext(heard), Gap)
            with server.client() as client:
                client.config_resetstat()
                await until(lambda: "cmdstat_ping" in client.info("commandstats"))  # it is asked
            server.freeze()
            await until_gap(heard, "Redis")
            server.thaw()
            await until_gap(heard, "Redis: listening")

    run(story())


def test_a_subscription_that_postgresql_drops_is_made_again(postgres_dsn: str) -> None:
    async def story() -> None:
        async with replica(postgres_dsn, None) as state, aclosing(state.subscribe("topic")) as heard:
            assert isinstance(await anext(heard), Gap)
            with psycopg.connect(postgres_dsn, autocommit=True) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and query like 'listen%'"
                )
            await until_gap(heard, "listening")
            await state.publish("topic", "hello")
            assert await next_message(heard) == "hello"

    run(story())


def test_a_subscriber_of_a_file_that_is_too_far_behind_is_told_so(path: Path) -> None:
    async def story() -> None:
        async with replica(path, None) as state, aclosing(state.subscribe("topic")) as heard:
            assert isinstance(await anext(heard), Gap)
            await state.publish("topic", "lost")
            for _ in range(KEPT_MESSAGES):
                await state.publish("other", "x")
            await state.publish("topic", "kept")
            assert isinstance(await anext(heard), Gap)
            assert await anext(heard) == Message("kept")

    run(story())


def test_a_gap_is_told_once_for_an_outage_however_often_it_is_tried_again() -> None:
    tries = 0

    async def listen() -> AsyncGenerator[str | None, None]:
        nonlocal tries
        tries += 1
        if 2 <= tries < 6:
            raise StoreUnavailable("away")
        yield None
        yield str(tries)
        raise StoreUnavailable("lost")

    async def story() -> None:
        async with aclosing(hear(listen, "there")) as heard:
            said = [await anext(heard) for _ in range(5)]
        assert said == [
            Gap("there: listening from now on"),
            Message("1"),
            Gap("there: lost"),
            Gap("there: listening from now on"),
            Message("6"),
        ]

    run(story())


def test_an_unexpected_error_of_a_source_reaches_the_subscriber() -> None:
    async def broken() -> AsyncGenerator[Heard, None]:
        yield Gap("first")
        raise RuntimeError("a fault")

    async def story() -> None:
        async with aclosing(merged(broken(), broken())) as heard:
            assert isinstance(await anext(heard), Gap)
            with pytest.raises(RuntimeError, match="a fault"):
                await anext(heard)

    run(story())


def test_a_subscription_that_is_closed_leaves_nothing_behind(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            before = asyncio.all_tasks()
            async with aclosing(state.subscribe("topic")) as heard:
                await anext(heard)
            assert asyncio.all_tasks() == before
            with server.client() as client:
                await until(lambda: client.pubsub_numsub("topic") == [(b"topic", 0)])

    run(story())


def test_a_subscription_ends_at_whatever_step_of_connecting_it_is_closed(server: RedisProcess) -> None:
    async def hears(redis: RedisServer) -> None:
        async with aclosing(hear(lambda: redis.listen("topic"), "Redis")) as heard:
            async for _ in heard:
                pass

    async def story() -> None:
        redis = RedisServer(server.url)
        for step in range(30):
            hearing = asyncio.create_task(hears(redis))
            for _ in range(step):
                await asyncio.sleep(0)
            hearing.cancel()
            await asyncio.wait([hearing], timeout=10)
            assert hearing.cancelled(), step
        await redis.aclose()

    run(story())
