"""The edge part of `carrick demo`: a gateway with a forwarder, a device that posts to it, a cloud often away."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import NamedTuple

import aiohttp
from aiohttp import web

from carrick.errors import SettingsError
from carrick.forward.service import Forwarder
from carrick.ops.background import Background
from carrick.web.server import serving

SECONDS_BETWEEN_EVENTS = 0.25
SECONDS_UP, SECONDS_DOWN = 9.0, 6.0

Build = Callable[[int, str], Forwarder]
"""Makes the forwarder for a port (0: any) and the cloud's address."""


class EdgeFigures(NamedTuple):
    """What the device posted, what the cloud took (each event once), and whether it is there now."""

    posted: int
    arrived: int
    again: int
    up: bool
    address: str


class SimulatedCloud:
    """An ingest endpoint that knows its events again."""

    def __init__(self) -> None:
        self.events: set[str] = set()
        self.again = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/batch", self._batch)
        return app

    async def _batch(self, request: web.Request) -> web.Response:
        ids = [event["event_id"] for event in (await request.json())["events"]]
        known = sum(event_id in self.events for event_id in ids)
        self.events.update(ids)
        self.again += known
        return web.json_response({"accepted": len(ids) - known, "duplicated": known, "rejected": 0, "errors": []})


class EdgeDemo(Background):
    """Runs in a thread of its own, with an event loop of its own, until told to stop."""

    def __init__(self, build: Build, port: int) -> None:
        super().__init__("carrick-demo-edge")
        self._build = build
        self._port = port
        self._cloud = SimulatedCloud()
        self._posted: list[str] = []
        self._up = False
        self._address = ""

    def figures(self) -> EdgeFigures:
        """How it stands now."""
        events = self._cloud.events
        arrived = sum(event_id in events for event_id in list(self._posted))
        return EdgeFigures(len(self._posted), arrived, self._cloud.again, self._up, self._address)

    async def work(self) -> None:
        async with serving(self._cloud.app(), "127.0.0.1", 0) as port:
            pass  # a port of its own, which is free again: the cloud is away at first
        try:
            await self._forward(self._port, port)
        except SettingsError:  # the usual port is taken: any will do
            await self._forward(0, port)

    async def _forward(self, port: int, cloud_port: int) -> None:
        forwarder = self._build(port, f"http://127.0.0.1:{cloud_port}/batch")
        started = asyncio.Event()

        def is_started(at: int, _metrics: int) -> None:
            self._address = f"http://127.0.0.1:{at}"
            started.set()

        running = asyncio.create_task(forwarder.run(self.stopping, is_started))
        ready = asyncio.create_task(started.wait())
        await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        world = (
            []
            if running.done()
            else [asyncio.create_task(self._weather(cloud_port)), asyncio.create_task(self._post())]
        )
        try:
            await running
        finally:
            for task in world:
                task.cancel()
            await asyncio.gather(*world, return_exceptions=True)

    async def _weather(self, port: int) -> None:
        while True:
            await asyncio.sleep(SECONDS_DOWN)
            async with serving(self._cloud.app(), "127.0.0.1", port):
                self._up = True
                await asyncio.sleep(SECONDS_UP)
            self._up = False

    async def _post(self) -> None:
        async with aiohttp.ClientSession() as session:
            for number in itertools.count():
                event = {
                    "tenant_id": "mill",
                    "event_type": "water.level",
                    "payload": {"centimetres": 40 + number % 7},
                    "group": "gauge-1",
                }
                async with session.post(f"{self._address}/api/v1/events", json=event) as answer:
                    self._posted += (await answer.json())["ids"]
                await asyncio.sleep(SECONDS_BETWEEN_EVENTS)
