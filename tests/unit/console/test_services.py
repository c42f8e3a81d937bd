"""Every service has the console, closed unless it is asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from carrick import wiring
from carrick.settings import read_settings

TOKEN = {"INTERNAL_ADMIN_ENABLED": "true", "ADMIN_TOKEN": "t"}


async def asked(built: Any) -> list[tuple[int, str | None]]:
    """What a service answers: its page, and its overview with the token."""
    stopping, ports = asyncio.Event(), asyncio.Queue[int]()
    working = asyncio.create_task(built.run(stopping, lambda at, _: ports.put_nowait(at)))
    found = []
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{await ports.get()}"
        for path in ("/console/", "/api/console/overview", "/api/health"):
            async with session.get(url + path, headers={"Authorization": "Bearer t"}) as answer:
                found.append((answer.status, answer.headers.get("X-Content-Type-Options")))
    stopping.set()
    await working
    return found


@pytest.mark.parametrize("service", ["forward", "ingest"])
@pytest.mark.parametrize(("changed", "status"), [({}, 404), (TOKEN, 200)], ids=["by default", "with a token"])
def test_a_service_has_the_console(tmp_path: Path, service: str, changed: dict[str, str], status: int) -> None:
    environment = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/a.db",
        "CLOUD_INGESTION_URL": "http://127.0.0.1:9/",
        "PORT": "0",
        "METRICS_PORT": "0",
        **changed,
    }
    settings = read_settings(environment, tmp_path / "none")
    built = wiring.forwarder(settings) if service == "forward" else wiring.ingest(settings)
    assert asyncio.run(asked(built)) == [(status, "nosniff"), (status, "nosniff"), (200, "nosniff")]
