"""A server on a real socket that plays the answers it was given, and a clock that stands still until it is told."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from carrick_device.client import Server
from carrick_device.device import Device
from carrick_device.kept import Kept
from carrick_device.screen import Screen
from carrick_device.stage import Stage

DATE = "Thu, 08 Jan 2026 14:30:00 GMT"
AUTHORIZE, TOKEN, PATROLS, SOCKET = "/device/authorize", "/device/token", "/api/v1/patrols", "/ws/device"
CODE = {
    "device_code": "secret-device-code",
    "user_code": "BCDF-GHJK",
    "verification_uri": "https://scores.example.org/device",
    "verification_uri_complete": "https://scores.example.org/device?user_code=BCDF-GHJK",
    "verification_uri_short": "https://scores.example.org/d/BCDFGHJK",
    "expires_in": 300,
    "interval": 5,
}
GRANTED = {"access_token": "secret-access-token", "token_type": "Bearer", "expires_in": 3600}


def scores(*totals: int, **changed: Any) -> dict[str, Any]:
    """An answer with patrols of these scores, fresh for five minutes after DATE."""
    patrols = [{"id": str(n), "name": f"Patrol {n}", "score": total} for n, total in enumerate(totals)]
    return {
        "patrols": [{**patrol, "pendingDelta": 0, "hasPending": False} for patrol in patrols],
        "from_cache": True,
        "cached_at": "2026-01-08T14:29:00Z",
        "cache_expires_at": "2026-01-08T14:35:00Z",
        "rate_limit_state": "NONE",
        "stale": False,
        "settings": {"patrolColors": {"0": "red"}},
        "websocket": {"requested": False},
        **changed,
    }


@dataclass(frozen=True)
class Answer:
    """What to answer; a body that is no text becomes JSON. Status 0 hangs up instead."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return web.Response(text=text, status=self.status, headers={"Date": DATE, **self.headers})


def refused(status: int, error: str, **headers: str) -> Answer:
    body = {"error": error, "message": f"about {error}"}
    return Answer(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


async def until(happened: Callable[[], bool]) -> None:
    """Return when it has happened; the time limit of the test is the only other end."""
    while not happened():  # noqa: ASYNC110  (nothing tells of it)
        await asyncio.sleep(0)


class Script:
    """The answers for each path, the last of them again and again, and what was asked."""

    def __init__(self, **answers: Any) -> None:
        named = {"authorize": AUTHORIZE, "token": TOKEN, "patrols": PATROLS}
        self._answers = {
            named[name]: deque(each if isinstance(each, Answer) else Answer(each) for each in given)
            for name, given in answers.items()
        }
        self.asked: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.sockets: asyncio.Queue[web.WebSocketResponse] = asyncio.Queue()
        self.socket_refusals: deque[int] = deque()
        self._pongs: asyncio.Queue[None] = asyncio.Queue()
        self.in_flight = 0
        self.most_in_flight = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    def now_scores(self, *answers: dict[str, Any]) -> None:
        """From now on other scores."""
        self._answers[PATROLS] = deque(Answer(answer) for answer in answers)

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append((request.method, request.path, form, dict(request.headers)))
        if request.path == SOCKET:
            return await self._socket(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await self.go_on.wait()
        self.in_flight -= 1
        waiting = self._answers[request.path]
        answer = waiting.popleft() if len(waiting) > 1 else waiting[0]
        if answer.status == 0 and request.transport is not None:
            request.transport.abort()
            return web.Response()
        return answer.response()

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self.socket_refusals:
            return web.Response(status=self.socket_refusals.popleft())
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self.sockets.put_nowait(socket)
        async for message in socket:
            assert message.type is WSMsgType.PONG
            self._pongs.put_nowait(None)
        return socket

    async def heard(self, socket: web.WebSocketResponse) -> None:
        """Return when the device has heard all that was sent so far: it answers pings in their turn."""
        await socket.ping()
        await self._pongs.get()


class StandingClock:
    """Time passes only when a test says so. Chance is always 0: no jitter but the least."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._more = asyncio.Event()

    def seconds(self) -> float:
        return self.now

    def chance(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        sleeper = (self.now + seconds, asyncio.get_running_loop().create_future())
        self.sleepers.append(sleeper)
        self._more.set()
        try:
            await sleeper[1]
        finally:
            self.sleepers.remove(sleeper)

    async def waits(self, count: int = 1) -> list[float]:
        """When so many sleep: how long each has still to sleep, shortest first."""
        while len(waits := self.remaining()) < count:
            self._more.clear()
            await self._more.wait()
        return waits

    def remaining(self) -> list[float]:
        """How long each that sleeps now has still to sleep, shortest first."""
        return sorted(end - self.now for end, sleeper in self.sleepers if not sleeper.done())

    async def wait(self) -> float:
        """When one sleeps: how long it has still to sleep."""
        (seconds,) = await self.waits()
        return seconds

    def go(self, seconds: float) -> None:
        """So much time passes; those who are due wake up."""
        self.now += seconds
        for end, sleeper in self.sleepers:
            if end <= self.now and not sleeper.done():
                sleeper.set_result(None)

    async def wake(self) -> float:
        """Let the one that sleeps sleep out; how long that was."""
        seconds = await self.wait()
        self.go(seconds)
        return seconds


class Shown:
    """A display that writes down what it is shown. Everything is one page."""

    def __init__(self) -> None:
        self.screens: list[Screen] = []
        self._more = asyncio.Event()

    def pages(self, _: Screen) -> int:
        return 1

    def show(self, screen: Screen, _: int) -> None:
        self.screens.append(screen)
        self._more.set()

    async def until(self, count: int) -> None:
        """Return when so many screens have been shown."""
        while len(self.screens) < count:
            self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        pass


@dataclass
class Bench:
    """A device at a scripted server."""

    script: Script
    clock: StandingClock
    shown: Shown
    kept: Kept
    device: Device
    server: Server

    @property
    def screen(self) -> Screen:
        return self.shown.screens[-1]

    @contextmanager
    def running(self) -> Iterator[None]:
        """The device at work inside."""
        task = asyncio.create_task(self.device.run())
        try:
            yield
        finally:
            assert not task.done(), task.result()
            task.cancel()


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[str]:
    """The script on a socket; its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.answer)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


@asynccontextmanager
async def bench(folder: Path, script: Script, *, token: str | None = "secret-access-token") -> AsyncIterator[Bench]:
    """A device that is signed in, or not, at a server with this script."""
    async with serving(script) as url:
        clock, shown = StandingClock(), Shown()
        server = Server(url, "carrick-device")
        kept = Kept(folder / "kept" / "token.json", server.url, server.client_id)
        kept.prepare()
        if token is not None:
            kept.save_token(token)
        try:
            yield Bench(script, clock, shown, kept, Device(server, kept, Stage(shown, clock), clock), server)
        finally:
            await server.close()
