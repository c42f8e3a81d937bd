"""A whole scoreboard in this process, as `carrick scoreboard` runs it, against a simulator with the real clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from carrick.settings import read_settings
from carrick_scoreboard import wiring
from carrick_scoreboard.settings import read_scoreboard_settings
from tests.osm import Osm, simulated
from tests.ports import free_port
from tests.scoreboard import CLIENT, Browser, Device

NOWHERE = Path("no .env file")
PATIENCE_SECONDS = 60.0


@dataclass
class Service:
    """One that is running. `stopping` asks it to end, `ended` is set when it has."""

    osm: Osm
    url: str
    metrics_url: str
    stopping: asyncio.Event
    running: asyncio.Task[None]
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or text) and headers."""
        async with self.session.get(self.url + path, headers=headers) as answer:
            text = await answer.text()
            value = json.loads(text) if answer.content_type == "application/json" else text
            return answer.status, value, dict(answer.headers)

    async def metrics(self) -> str:
        async with self.session.get(self.metrics_url) as answer:
            return await answer.text()

    async def device_token(self, section: str = "40104") -> str:
        """A display is signed in by a person with a browser, all the way; its token."""
        return await sign_in(self.url, section)


async def sign_in(url: str, section: str = "40104", client_id: str = CLIENT) -> str:
    """The whole flow at the scoreboard of that address; the token of the display."""
    device = Device(url, client_id)
    user_code = await device.begin()
    async with Browser(url) as browser:
        page = await browser.signed_in(user_code)
        assert "Which section" in page.text or page.status == 200, page.text
        done = await browser.send(page, section_id=section, name="Hall")
        assert done.status == 200, done.text
    status, answer = await device.poll()
    assert status == 200, answer
    token: str = answer["access_token"]
    return token


def environment(database_url: str, osm: Osm, port: int, **changed: str) -> dict[str, str]:
    """The variables of a scoreboard on that port."""
    return {
        "DATABASE_URL": database_url,
        "OSM_DOMAIN": osm.url,
        "OSM_CLIENT_ID": "carrick-demo",
        "OSM_CLIENT_SECRET": "not-a-secret",
        "EXPOSED_DOMAIN": f"http://127.0.0.1:{port}",
        "PORT": str(port),
        "METRICS_PORT": "0",
        "DEVICE_ENTRY_RATE_LIMIT": "1000/1",
        **changed,
    }


async def register(osm: Osm, *ports: int) -> None:
    """Let OSM send people back to these ports."""
    uris = [f"http://127.0.0.1:{port}{path}" for port in ports for path in ("/oauth/callback", "/admin/callback")]
    await osm.control("app", client_id="carrick-demo", client_secret="not-a-secret", redirect_uris=uris)


@asynccontextmanager
async def service(database_url: str, *, state: Path | None = None, **changed: str) -> AsyncIterator[Service]:
    """A scoreboard with one application that is let in, and its simulator."""
    port = free_port()
    async with asyncio.timeout(PATIENCE_SECONDS), simulated(state, start=None) as osm:
        await register(osm, port)
        async with serving(osm, database_url, port, **changed) as running:
            yield running


@asynccontextmanager
async def serving(osm: Osm, database_url: str, port: int, **changed: str) -> AsyncIterator[Service]:
    """A scoreboard on that port for that OSM, which knows it already."""
    environ = environment(database_url, osm, port, **changed)
    built = wiring.scoreboard(read_settings(environ, NOWHERE), read_scoreboard_settings(environ, NOWHERE))
    allow_displays(database_url)
    stopping, ports = asyncio.Event(), asyncio.Queue[int]()
    running = asyncio.create_task(built.run(stopping, lambda _, metrics: ports.put_nowait(metrics)))
    starting = asyncio.create_task(ports.get())
    await asyncio.wait([running, starting], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        starting.cancel()
        await running
    metrics_url = f"http://127.0.0.1:{starting.result()}/metrics"
    async with aiohttp.ClientSession() as session:
        yield Service(osm, f"http://127.0.0.1:{port}", metrics_url, stopping, running, session)
        stopping.set()
        await running


def allow_displays(database_url: str) -> None:
    """The application of the tests' displays may ask for codes."""
    with wiring.opened_clients(database_url) as clients:
        if clients.get(CLIENT) is None:
            clients.add(CLIENT, "Wall display", "", actor="test")
