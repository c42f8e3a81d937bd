"""What Redis or Valkey does beside the database: copies, messages, counters. One server at a time: no cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from carrick.errors import StoreUnavailable
from carrick.state.kv import Count

TIMEOUT_SECONDS = 1.0
"""Nobody waits longer for a command, connecting included."""
PING_SECONDS = 15.0
"""A subscription that hears nothing asks whether the server is still there."""
MOST_CONNECTIONS = 32

INCREMENT = """
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SET', KEYS[1], 0, 'PX', ARGV[2]) end
return {redis.call('INCRBY', KEYS[1], ARGV[1]), redis.call('PTTL', KEYS[1])}
"""


class RedisServer:
    """The server behind one URL. Every key and topic begins with the prefix. All raise StoreUnavailable."""

    def __init__(self, url: str, prefix: str = "", *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._url = url
        self._prefix = prefix
        self._timeout = timeout
        self._client = client(url, timeout)
        self._under_way: set[asyncio.Task[Any]] = set()

    async def probe(self) -> None:
        """Whether it answers and can be written to."""
        await self._command("SET", f"{self._prefix}carrick:probe", b"1", "PX", 1000)

    async def increment(self, key: str, ttl: float, by: int) -> Count:
        total, left = await self._command("EVAL", INCREMENT, 1, f"{self._prefix}{key}", by, milliseconds(ttl))
        return Count(total, left / 1000)

    async def copy(self, key: str, value: bytes | None, ttl: float) -> None:
        name = f"{self._prefix}{key}"
        await self._command(*(("DEL", name) if value is None else ("SET", name, value, "PX", milliseconds(ttl))))

    async def publish(self, topic: str, text: str) -> None:
        await self._command("PUBLISH", f"{self._prefix}{topic}", text)

    async def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        """None once it listens, then the topic's messages. Raises StoreUnavailable when the connection is lost."""
        with map_errors():
            async with client(self._url, None) as connected, connected.pubsub() as subscription:
                async with asyncio.timeout(self._timeout):
                    await subscription.subscribe(f"{self._prefix}{topic}")
                asked = False
                while True:
                    heard = await subscription.get_message(timeout=PING_SECONDS)
                    if heard is None and asked:
                        raise StoreUnavailable("Redis does not answer any more")
                    asked = heard is None
                    if heard is None:
                        await subscription.ping()
                    elif heard["type"] == "subscribe":
                        yield None
                    elif heard["type"] == "message":
                        yield heard["data"].decode()

    async def aclose(self) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._client.aclose()

    async def _command(self, *words: Any) -> Any:
        """The answer to one command, in time. (`Any`: redis-py has no types for this.)

        The command is never cancelled, because redis-py may swallow that or lose the connection: it ends by the time
        limits of its connection.
        """
        command = asyncio.ensure_future(self._client.execute_command(*words))  # type: ignore[no-untyped-call]
        self._under_way.add(command)
        command.add_done_callback(self._through)
        with map_errors():
            async with asyncio.timeout(self._timeout):
                return await asyncio.shield(command)

    def _through(self, command: asyncio.Task[Any]) -> None:
        self._under_way.discard(command)
        if not command.cancelled():
            command.exception()  # whoever waited has it


def client(url: str, timeout: float | None) -> redis.Redis:
    """A client that never sends a command twice.

    What may be cancelled must have no time limit here: redis-py keeps it by `asyncio.wait_for`, which may swallow a
    cancellation before Python 3.12.
    """
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=MOST_CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        client_name="carrick",
    )
    return redis.Redis.from_pool(pool)


def milliseconds(seconds: float) -> int:
    """A time to live as Redis takes it."""
    return max(1, round(seconds * 1000))


@contextmanager
def map_errors() -> Iterator[None]:
    """Raise StoreUnavailable whatever goes wrong with Redis: the database can do the work in any case."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"Redis cannot be used: {str(error) or type(error).__name__}") from error
