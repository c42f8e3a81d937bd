"""Bodies on their way in: what they may be, how fast they must come, and what they may cost before anybody is known."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest

from carrick.web import bodies
from carrick.web.bodies import BODIES, Bodies
from carrick.web.routes import Call, Route, application
from carrick.web.server import serving
from carrick.web.unfolding import unfolded

HEAD = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Taken(msgspec.Struct):
    """What came."""

    length: int


async def take(call: Call[None, Any]) -> Taken:
    return Taken(len(call.raw))


TAKE = Route(method="POST", path="/take", summary="Take", handle=take, takes=Any, body_optional=True, gives=Taken)


class Server:
    """Takes bodies of 100 kB."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.url = f"http://127.0.0.1:{port}/take"
        self.port = port
        self.session = session

    async def post(self, data: bytes | None = None, **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.url, data=data, headers=named) as answer:
            return answer.status, await answer.text()

    @asynccontextmanager
    async def sender(self, size: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Somebody who has sent the head of a body so large."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(HEAD % size)
        yield reader, writer
        writer.close()


def served(story: Callable[[Server], Awaitable[None]], *, sum_bytes: int = bodies.SUM_BYTES) -> None:
    async def main() -> None:
        app = application([TAKE], max_body_bytes=100_000)
        app[BODIES] = Bodies(sum_bytes=sum_bytes)
        async with (
            asyncio.timeout(30),
            serving(app, "127.0.0.1", 0) as port,
            aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
        ):
            await story(Server(port, session))

    asyncio.run(main())


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"'],
)
def test_json_is_accepted(kind: str) -> None:
    async def story(server: Server) -> None:
        assert (await server.post(b"{}", Content_Type=kind))[0] == 200

    served(story)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "multipart/form-data"},
        {"Content_Type": "application/jsonp"},
        {"Content_Type": "application/json; charset=utf-16"},
    ],
)
def test_what_a_page_of_another_site_could_have_a_browser_send_is_not_read(headers: dict[str, str]) -> None:
    async def story(server: Server) -> None:
        status, said = await server.post(b"{}", **headers)
        assert status == 415
        assert "accepted: application/json" in said or "accepted: utf-8" in said

    served(story)


def test_a_request_without_a_body_needs_no_type() -> None:
    async def story(server: Server) -> None:
        assert (await server.post())[0] == 200

    served(story)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "null", "Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"},
    ],
)
def test_a_page_of_another_site_changes_nothing(headers: dict[str, str]) -> None:
    async def story(server: Server) -> None:
        assert (await server.post(None, **headers))[0] == 403

    served(story)


def test_an_own_page_is_let_through() -> None:
    async def story(server: Server) -> None:
        own = server.url.removesuffix("/take")
        for headers in ({"Origin": own}, {"Origin": own, "Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}):
            assert (await server.post(None, **headers))[0] == 200
        assert (await server.post(Origin="null", Sec_Fetch_Site="same-origin"))[0] == 200

    served(story)


def test_a_body_that_drips_is_given_up_long_before_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE_SECONDS", 0.1)

    async def story(server: Server) -> None:
        async with server.sender(100) as (reader, writer):
            writer.write(b"{")
            assert b" 408 " in await reader.readline()

    served(story)


def test_a_body_at_a_good_pace_has_all_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE_SECONDS", 0.0)

    async def story(server: Server) -> None:
        async with server.sender(60_000) as (reader, writer):
            writer.write(b'"' + b"x" * 50_000)
            await asyncio.sleep(0.05)
            writer.write(b"x" * 9_998 + b'"')
            assert b" 200 " in await reader.readline()

    served(story)


def test_of_too_many_bodies_the_one_that_began_first_gives_way() -> None:
    async def story(server: Server) -> None:
        async with server.sender(900) as (first, writer), server.sender(900) as (second, newer):
            writer.write(b'"' + b"x" * 600)
            newer.write(b'"' + b"x" * 600)
            assert b" 429 " in await first.readline()
            newer.write(b"x" * 298 + b'"')
            assert b" 200 " in await second.readline()
        assert (await server.post(b'"' + b"x" * 900 + b'"', Content_Type="application/json"))[0] == 200

    served(story, sum_bytes=1_000)


def test_what_bodies_become_counts_too() -> None:
    async def story(server: Server) -> None:
        headers = {"Content_Type": "application/json", "Content_Encoding": "gzip"}
        assert (await server.post(gzip.compress(b'"' + b"x" * 500 + b'"'), **headers))[0] == 200
        assert (await server.post(gzip.compress(b'"' + b"x" * 5_000 + b'"'), **headers))[0] == 429

    served(story, sum_bytes=1_000)


def test_the_loop_unfolds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(*sent: Any) -> bytes:
        seen.append(threading.current_thread().name)
        return unfolded(*sent)

    monkeypatch.setattr(bodies, "unfolded", noted)

    async def story(server: Server) -> None:
        status, _ = await server.post(gzip.compress(b"{}"), Content_Type="application/json", Content_Encoding="gzip")
        assert status == 200

    served(story)
    assert len(seen) == 1
    assert seen != [threading.main_thread().name]
