"""Connections that say nothing, and too many of them: they end, and nobody who works is refused for them."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from ipaddress import ip_network
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from carrick.settings import WebSettings
from carrick.variables import Network
from carrick.web import connections, figures
from carrick.web.routes import Call, Route, application
from carrick.web.server import serving

GET = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
HALF_A_HEAD = b"GET /hello HTTP/1.1\r\nHost:"
HALF_A_BODY = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n[1,"
HALVES = [b"", HALF_A_HEAD, HALF_A_BODY]


async def hello(_: Call[Any, Any]) -> dict[str, str]:
    return {}


async def echo(call: Call[None, None]) -> web.StreamResponse:
    answer = web.WebSocketResponse()
    await answer.prepare(call.request)
    async for message in answer:
        await answer.send_str(message.data)
    return answer


ROUTES = [
    Route(method="GET", path="/hello", summary="Hello", handle=hello, gives=dict[str, str]),
    Route(method="POST", path="/take", summary="Take", handle=hello, takes=Any, gives=dict[str, str]),
    Route(method="GET", path="/echo", summary="Echo", handle=echo, gives=None),
]


class Line:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def say(self, words: bytes) -> None:
        self._writer.write(words)

    async def is_answered(self) -> bool:
        """Whether a request is; one after the other."""
        self.say(GET)
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            await self._reader.readexactly(2)  # {}
        except (ConnectionError, asyncio.IncompleteReadError):
            return False
        return head.startswith(b"HTTP/1.1 200")

    async def ends(self) -> bool:
        """Whether the server hangs up, without a word."""
        try:
            return await self._reader.read() == b""
        except ConnectionError:
            return True


Connect = Callable[..., Awaitable[Line]]
"""A new line, from an address of this machine."""


def served(
    story: Callable[[Connect, str], Awaitable[None]], limits: WebSettings, trusted: Sequence[Network] = ()
) -> None:
    async def main() -> None:
        app = application(ROUTES, max_body_bytes=1000)
        async with (
            asyncio.timeout(30),
            serving(app, "127.0.0.1", 0, limits=limits, trusted=trusted) as port,
            AsyncExitStack() as lines,
        ):

            async def connect(address: str = "127.0.0.1") -> Line:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
                lines.callback(writer.close)
                return Line(reader, writer)

            await story(connect, f"http://127.0.0.1:{port}")

    asyncio.run(main())


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for connections that have waited too long all the time."""
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.01)


@pytest.mark.usefixtures("often")
def test_a_connection_that_says_nothing_ends() -> None:
    async def story(connect: Connect, _: str) -> None:
        silent, resting = await connect(), await connect()
        assert await resting.is_answered()
        assert await silent.ends()
        assert await resting.ends()

    served(story, WebSettings(idle_seconds=0.05))


@pytest.mark.usefixtures("often")
def test_half_a_head_ends_before_silence_does() -> None:
    async def story(connect: Connect, _: str) -> None:
        silent, half, later = await connect(), await connect(), await connect()
        assert await later.is_answered()
        half.say(HALF_A_HEAD)
        later.say(HALF_A_HEAD)
        assert await half.ends()
        assert await later.ends()
        assert await silent.is_answered()

    served(story, WebSettings(head_seconds=0.05))


def test_for_a_newcomer_the_connection_goes_that_was_silent_longest(caplog: pytest.LogCaptureFixture) -> None:
    async def story(connect: Connect, _: str) -> None:
        lines = [await connect() for _ in range(4)]
        assert all([await line.is_answered() for line in lines])
        assert await lines[0].is_answered()
        newcomer = await connect()
        assert await newcomer.is_answered()
        assert await lines[1].ends()
        assert all([await line.is_answered() for line in (lines[0], *lines[2:], newcomer)])

    with caplog.at_level(logging.WARNING, logger="carrick.web"):
        served(story, WebSettings(max_connections=4))
    (told,) = [record.__dict__ for record in caplog.records if record.getMessage() == "web.connections_closed"]
    assert told["closed"] == {"full": 1}
    assert b'carrick_web_connections_closed_total{reason="full"}' in figures.text()


def test_an_address_with_too_many_loses_its_own() -> None:
    async def story(connect: Connect, _: str) -> None:
        other = await connect("127.0.0.2")
        assert await other.is_answered()
        lines = [await connect() for _ in range(2)]
        assert all([await line.is_answered() for line in lines])
        newcomer = await connect()
        assert await newcomer.is_answered()
        assert await lines[0].ends()
        assert all([await line.is_answered() for line in (other, lines[1], newcomer)])

    served(story, WebSettings(max_connections_per_address=2))


def test_a_trusted_proxy_may_have_as_many_as_there_are() -> None:
    async def story(connect: Connect, _: str) -> None:
        lines = [await connect() for _ in range(5)]
        assert all([await line.is_answered() for line in lines])
        assert all([await line.is_answered() for line in lines])

    served(story, WebSettings(max_connections_per_address=2), [ip_network("127.0.0.1")])


def test_who_does_not_send_the_rest_of_a_body_goes_for_a_newcomer() -> None:
    async def story(connect: Connect, _: str) -> None:
        lines = [await connect() for _ in range(2)]
        assert all([await line.is_answered() for line in lines])
        lines[0].say(HALF_A_BODY)
        assert await lines[1].is_answered()
        lines[1].say(HALF_A_BODY)
        newcomer = await connect()
        assert await newcomer.is_answered()
        assert await lines[0].ends()

    served(story, WebSettings(max_connections=2))


@pytest.mark.parametrize(("files", "most"), [(4, 3), (resource.RLIM_INFINITY, 5)], ids=["few", "any number"])
def test_there_are_never_more_than_the_process_may_have_files(
    files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))

    async def story(connect: Connect, _: str) -> None:
        lines = [await connect() for _ in range(most)]
        assert all([await line.is_answered() for line in lines])
        assert await (await connect()).is_answered()
        assert await lines[0].ends()
        assert all([await line.is_answered() for line in lines[1:]])

    served(story, WebSettings(max_connections=5))


def test_a_websocket_is_never_idle() -> None:
    async def story(connect: Connect, url: str) -> None:
        async with aiohttp.ClientSession() as session:
            sockets = [await session.ws_connect(f"{url}/echo") for _ in range(2)]
            refused = await connect()
            assert not await refused.is_answered()
            for socket in sockets:
                await socket.send_str("still there")
                assert (await socket.receive()).data == "still there"
            await sockets[0].close()
            while not await (await connect()).is_answered():
                pass  # the server has not heard the goodbye yet

    served(story, WebSettings(max_connections=2))


def test_beside_many_more_idle_and_half_open_connections_than_there_may_be_everybody_is_answered() -> None:
    async def story(connect: Connect, _: str) -> None:
        at_work = await connect()
        for number in range(300):
            (await connect()).say(HALVES[number % 3])
            if number % 10 == 0:
                assert await (await connect()).is_answered()
                assert await at_work.is_answered()

    served(story, WebSettings(max_connections=100, max_connections_per_address=50))
