"""Shared state in Redis or Valkey, and messages through it. One server at a time: no cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import RedisError, ResponseError

from carrick.errors import StoreUnavailable
from carrick.state.epoch import Epoch
from carrick.state.kv import Item
from carrick.state.place import EpochOver

TIMEOUT_SECONDS = 2.0
PING_SECONDS = 15.0
"""A subscription that hears nothing asks whether the server is still there."""
MOST_CONNECTIONS = 32

NO_NUMBER = "not an integer"

COMPARE_AND_SET = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
COMPARE_AND_DELETE = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])"
INCREMENT = """
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('INCRBY', KEYS[1], ARGV[1]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return tonumber(ARGV[1])
"""


class RedisServer:
    """The server behind one URL: its place in the current epoch, and its messages."""

    def __init__(self, url: str, prefix: str = "", *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._url = url
        self._prefix = prefix
        self._timeout = timeout
        self._place: RedisPlace | None = None
        self._epoch = 0

    async def at(self, epoch: Epoch) -> RedisPlace:
        """Its place in that epoch. Raises EpochOver for one before the last that was asked for."""
        if epoch.number < self._epoch:
            raise EpochOver(f"epoch {epoch.number} is over")
        if epoch.number > self._epoch or self._place is None:
            before = self._place
            self._epoch = epoch.number
            self._place = RedisPlace(client(self._url, self._timeout, epoch.run), self._prefix, epoch.name)
            if before is not None:
                await before.close()
        return self._place

    async def probe(self) -> str:
        """Whether it can be written to; which run of the server it is. Raises StoreUnavailable."""
        with map_errors():
            async with client(self._url, self._timeout) as connected:
                await command(connected, "SET", f"{self._prefix}carrick:probe", b"1", "PX", 1000)
                return run_of(await command(connected, "INFO", "server"))

    async def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        """None once it listens, then the topic's messages. Raises StoreUnavailable when the connection is lost."""
        with map_errors():
            async with client(self._url, self._timeout) as connected, connected.pubsub() as subscription:
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

    async def close(self) -> None:
        if self._place is not None:
            await self._place.close()


class RedisPlace:
    """Redis in one epoch: every key ends with the epoch's name."""

    def __init__(self, connected: redis.Redis, prefix: str, epoch: str) -> None:
        self._client = connected
        self._prefix = prefix
        self._suffix = f"#{epoch}"

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        if not keys:
            return {}
        values = await self._command("MGET", *map(self._key, keys))
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    async def set(self, key: str, value: bytes, ttl: float) -> None:
        await self._command("SET", self._key(key), value, "PX", milliseconds(ttl))

    async def set_if_absent(self, key: str, value: bytes, ttl: float) -> bool:
        return bool(await self._command("SET", self._key(key), value, "PX", milliseconds(ttl), "NX"))

    async def compare_and_set(self, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        script = COMPARE_AND_SET
        return bool(await self._command("EVAL", script, 1, self._key(key), expected, value, milliseconds(ttl)))

    async def delete(self, key: str, expected: bytes | None = None) -> bool:
        if expected is None:
            return bool(await self._command("DEL", self._key(key)))
        return bool(await self._command("EVAL", COMPARE_AND_DELETE, 1, self._key(key), expected))

    async def increment(self, key: str, ttl: float, by: int) -> int | None:
        try:
            return int(await self._command("EVAL", INCREMENT, 1, self._key(key), by, milliseconds(ttl)))
        except StoreUnavailable as error:
            if isinstance(error.__cause__, ResponseError) and NO_NUMBER in str(error):
                return None
            raise

    async def scan(self, prefix: str, limit: int) -> list[Item]:
        """As many as are found first: Redis keeps no order."""
        pattern = f"{escaped(self._prefix + prefix)}*{escaped(self._suffix)}"
        with map_errors():
            names: list[bytes] = []
            async for name in self._client.scan_iter(match=pattern, count=500):
                if name not in names:
                    names.append(name)
                if len(names) == limit:
                    break
            async with self._client.pipeline(transaction=True) as pipeline:
                for name in names:
                    pipeline.execute_command("GET", name)
                    pipeline.execute_command("PTTL", name)
                answers = await pipeline.execute()
        found = zip(names, answers[::2], answers[1::2], strict=True)
        return [Item(self._own(name), value, left / 1000) for name, value, left in found if value is not None]

    async def publish(self, topic: str, text: str) -> None:
        await self._command("PUBLISH", f"{self._prefix}{topic}", text)

    async def close(self) -> None:
        """Close every connection, also those in use: their calls fail."""
        await self._client.aclose()

    async def _command(self, *words: Any) -> Any:
        with map_errors():
            return await command(self._client, *words)

    def _key(self, key: str) -> str:
        return f"{self._prefix}{key}{self._suffix}"

    def _own(self, name: bytes) -> str:
        return name.decode().removeprefix(self._prefix).removesuffix(self._suffix)


def client(url: str, timeout: float, run: str | None = None) -> redis.Redis:
    """A client that never sends a command twice. With `run`, it talks to that run of the server and to no other."""

    async def greet(connection: Any) -> None:
        await connection.on_connect()
        if run is None:
            return
        await connection.send_command("INFO", "server")
        if run_of(await connection.read_response()) != run:
            raise NotConnected("Redis was restarted, or another server has taken its place")

    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=MOST_CONNECTIONS,
        timeout=None,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        redis_connect_func=greet,
        protocol=2,
        client_name="carrick",
    )
    return redis.Redis.from_pool(pool)


async def command(connected: Any, *words: Any) -> Any:
    """The answer to one command. (`Any`: redis-py has no types for this.)"""
    return await connected.execute_command(*words)


def run_of(information: Any) -> str:
    """The run id in the answer to INFO: another one after every restart, and on every other server."""
    if isinstance(information, dict):
        found = information.get("run_id")
    else:
        lines = dict(line.partition(":")[::2] for line in bytes(information).decode().split("\r\n"))
        found = lines.get("run_id")
    if not found:
        raise StoreUnavailable("this Redis does not tell its run_id")
    return str(found)


def milliseconds(seconds: float) -> int:
    """A time to live as Redis takes it."""
    return max(1, round(seconds * 1000))


def escaped(text: str) -> str:
    """Text as a pattern of SCAN that matches itself only."""
    return "".join(f"\\{letter}" if letter in "*?[]^-\\" else letter for letter in text)


@contextmanager
def map_errors() -> Iterator[None]:
    """Raise StoreUnavailable whatever goes wrong with Redis: the database can do the work in any case."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"Redis cannot be used: {str(error) or type(error).__name__}") from error
