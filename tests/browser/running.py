"""Real services for tests that drive a browser: each runs in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from aiohttp import web

from carrick import wiring
from carrick.settings import read_settings
from carrick.web.server import serving

T = TypeVar("T")
PATIENCE_SECONDS = 60.0


@dataclass
class Running(Generic[T]):
    """What is open in the other thread, and a way to ask it for something there."""

    opened: T
    loop: asyncio.AbstractEventLoop

    def ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(question, self.loop).result(PATIENCE_SECONDS)


@contextmanager
def running(opening: AbstractAsyncContextManager[T]) -> Iterator[Running[T]]:
    """Keep it open in a thread; what goes wrong there is raised here."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    stopping, found, failed = asyncio.Event(), [], []

    async def keep_open() -> None:
        async with opening as opened:
            found.append(opened)
            started.set()
            await stopping.wait()

    def work() -> None:
        try:
            loop.run_until_complete(keep_open())
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            loop.close()
            started.set()

    thread = threading.Thread(target=work, name="browser-service")
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    try:
        if failed:
            raise failed[0]
        yield Running(found[0], loop)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stopping.set)
        thread.join(PATIENCE_SECONDS)
    assert failed == []


@dataclass
class Edge:
    """A forwarder and its cloud, which refuses what is marked as bad until it is put right."""

    url: str = ""
    strict: bool = True

    async def batch(self, request: web.Request) -> web.Response:
        events = (await request.json())["events"]
        if self.strict and any("bad" in event["payload"] for event in events):
            return web.json_response({"error": "unit is missing"}, status=422)
        return web.json_response({"accepted": len(events), "duplicated": 0, "rejected": 0, "errors": []})


@asynccontextmanager
async def forwarder(path: Path, **changed: str) -> AsyncIterator[Edge]:
    """A forwarder on that file, with the admin token `secret`."""
    edge = Edge()
    cloud = web.Application()
    cloud.router.add_post("/batch", edge.batch)
    async with serving(cloud, "127.0.0.1", 0) as port:
        environment = {
            "DATABASE_URL": f"sqlite:///{path}",
            "CLOUD_INGESTION_URL": f"http://127.0.0.1:{port}/batch",
            "PORT": "0",
            "METRICS_PORT": "0",
            "INSTANCE_ID": "gateway-1",
            "INTERNAL_ADMIN_ENABLED": "true",
            "ADMIN_TOKEN": "secret",
            **changed,
        }
        built = wiring.forwarder(read_settings(environment, Path("no .env file")))
        stopping, ports = asyncio.Event(), asyncio.Queue[int]()
        working = asyncio.create_task(built.run(stopping, lambda at, _: ports.put_nowait(at)))
        edge.url = f"http://127.0.0.1:{await ports.get()}"
        yield edge
        stopping.set()
        await working
