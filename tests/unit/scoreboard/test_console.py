"""The scoreboard's part of the console, on each database: acts are guarded, need a reason, and stand in the audit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from carrick import wiring
from carrick_scoreboard.sealing import key_text, new_key
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.wiring import opened_tables
from tests.service import Service, service

HEADERS = {"Authorization": "Bearer t"}


async def post(running: Service, path: str, body: Any = None, headers: dict[str, str] = HEADERS) -> tuple[int, Any]:
    async with running.session.post(f"{running.url}/api/console/{path}", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, sqlite_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{sqlite_path}"
    dsn: str = request.getfixturevalue("newest_postgres_dsn")
    return dsn


def test_blocks_and_displays_are_shown_ended_and_written_down(database_url: str) -> None:
    wiring.migrate(database_url)

    async def story() -> None:
        key = {} if database_url.startswith("sqlite") else {"CARRICK_SECRET_KEYS": key_text(*new_key())}
        token = {"INTERNAL_ADMIN_ENABLED": "true", "ADMIN_TOKEN": "t"}
        async with service(database_url, state=None, **token, **key) as running:
            await running.device_token()
            with opened_tables(database_url) as tables:
                await check(running, Blocks(tables), Audit(tables))

    asyncio.run(story())


async def check(running: Service, blocks: Blocks, audit: Audit) -> None:
    reason = {"reason": "the poller is stopped"}
    assert (await running.get("/api/console/session", **HEADERS))[1]["panels"] == ["osm", "devices"]
    assert (await post(running, "osm/unblock", reason))[0] == 409
    blocks.note("stop it")
    blocks.note_ending("patrols", "soon", None)
    _, osm, _ = await running.get("/api/console/osm", **HEADERS)
    assert (osm["block"]["header"], len(osm["users"])) == ("stop it", 1)
    assert [(ending["endpoint"], ending["ends_at"]) for ending in osm["endings"]] == [("patrols", None)]
    for path in ("osm", "devices"):
        assert (await running.get(f"/api/console/{path}"))[0] == 401
    assert (await post(running, "osm/unblock", reason, {}))[0] == 401
    assert (await post(running, "osm/unblock", {}))[0] == 400
    assert (await post(running, "osm/unblock", {"reason": " "}))[0] == 400
    assert blocks.standing() is not None
    assert (await post(running, "osm/unblock", reason))[0] == 200
    assert blocks.standing() is None

    _, listed, _ = await running.get("/api/console/devices", **HEADERS)
    (device,) = listed["devices"]
    assert "token" not in str(device)
    assert (await post(running, f"devices/{device['id']}/revoke", headers={}))[0] == 401
    assert (await post(running, f"devices/{device['id']}/revoke"))[0] == 200
    assert (await post(running, f"devices/{device['id']}/revoke"))[0] == 404
    assert (await post(running, "devices/x/revoke"))[0] == 404

    close = {"channel": "osm-scores", "scope": "*", "reason": "on call", "seconds": 60}
    assert (await post(running, "gates/close", close))[0] == 200
    acts = [(act.actor, act.action, act.subject) for act in audit.latest()]
    assert acts[:3] == [
        ("console:ADMIN_TOKEN", "console.gate.close", "channel:osm-scores"),
        ("console:ADMIN_TOKEN", "device.revoke", f"device:{device['id']}"),
        ("console:ADMIN_TOKEN", "osm.unblock", "osm"),
    ]
    assert audit.latest()[0].detail["address"] == "127.0.0.1"
