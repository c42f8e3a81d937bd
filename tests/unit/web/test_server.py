"""Serving on real sockets: what is no HTTP, who hangs up, and when to come again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

from carrick.web.problems import Problem
from carrick.web.routes import Call, Route, application
from carrick.web.server import serving


class Taken(msgspec.Struct):
    """What came."""

    length: int


async def take(call: Call[None, Any]) -> Taken:
    return Taken(len(call.raw))


async def busy(_: Call[None, None]) -> Taken:
    raise Problem(429, "busy", "later", retry_after=7)


ROUTES = [
    Route(method="POST", path="/take", summary="Take", handle=take, takes=Any, gives=Taken),
    Route(method="GET", path="/busy", summary="Busy", handle=busy, gives=Taken),
]


def served(story: Callable[[int], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving(application(ROUTES, max_body_bytes=1000), "127.0.0.1", 0) as port:
            await story(port)

    asyncio.run(main())


def test_bytes_that_are_no_http_are_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def story(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /take HTTP/1.1\r\nContent-Length: ten\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()

    with caplog.at_level(logging.WARNING):
        served(story)
    (record,) = caplog.records
    assert (record.getMessage(), record.levelname, record.exc_info) == ("web.unreadable", "WARNING", None)
    assert "Content-Length" in record.__dict__["said"]


class Heard(logging.Handler):
    """Knows when something was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.event = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.event.set()


def test_a_sender_that_hangs_up_is_no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        arrived, heard = asyncio.Event(), Heard()
        logging.getLogger("carrick.web").addHandler(heard)
        route = msgspec.structs.replace(ROUTES[0], guards=[lambda _: arrived.set()])
        async with serving(application([route], max_body_bytes=1000), "127.0.0.1", 0) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
            writer.write(head + b"\r\n{")
            await arrived.wait()
            writer.transport.abort()
            await heard.event.wait()
        logging.getLogger("carrick.web").removeHandler(heard)

    with caplog.at_level(logging.INFO, logger="carrick.web"):
        asyncio.run(main())
    assert [(record.getMessage(), record.levelname) for record in caplog.records] == [("web.gone", "INFO")]


def test_a_problem_can_say_when_to_come_again() -> None:
    async def story(port: int) -> None:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/busy") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "7")

    served(story)


@pytest.mark.parametrize("unfold", [True, False])
def test_a_route_that_reads_its_own_body_gets_it_as_it_was_sent(unfold: bool) -> None:
    async def read(call: Call[None, None]) -> Taken:
        return Taken(len(await call.request.read()))

    async def main() -> None:
        route = msgspec.structs.replace(ROUTES[0], handle=read, reads_itself=True)
        headers = {"Content-Encoding": "gzip"}
        async with (
            serving(application([route], max_body_bytes=1000), "127.0.0.1", 0, unfold=unfold) as port,
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{port}/take", data=b"[1]", headers=headers) as answer,
        ):
            assert await answer.json() == {"length": 3}

    asyncio.run(main())
