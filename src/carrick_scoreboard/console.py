"""The scoreboard's part of the console: how it stands with OSM, the end of a block, displays; and its audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from carrick.console.actions import act_of, log_act
from carrick.console.answers import Act, Changed
from carrick.console.door import Door
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick_scoreboard.look import OsmLook, look_at_osm
from carrick_scoreboard.parts import Parts
from carrick_scoreboard.routes.admin_scores import whole
from carrick_scoreboard.store.audit import write_audit
from carrick_scoreboard.store.blocks import MAX_REASON, Blocks
from carrick_scoreboard.store.devices import Device
from carrick_scoreboard.store.tables import Tables

MOST_DEVICES = 500


class Unblock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why OSM's block may end: what was wrong and what was done about it."""

    reason: Annotated[str, Meta(min_length=1, max_length=MAX_REASON)]


class DeviceList(msgspec.Struct, frozen=True, kw_only=True):
    """The newest displays."""

    devices: Sequence[Device]


class ScoreboardPlug:
    """Two panels. What is done in the console stands in the audit table, whoever asks later."""

    panels: Sequence[str] = ("osm", "devices")

    def __init__(self, tables: Tables, parts: Parts) -> None:
        self._tables = tables
        self._parts = parts
        self._threads = parts.threads

    async def audit(self, act: Act) -> None:
        await self._threads.call(self._write, act)

    def _write(self, act: Act) -> None:
        """In a thread."""
        with self._tables.writing() as ask:
            detail = {**act.detail, "address": act.address}
            write_audit(ask, f"console:{act.actor}", f"console.{act.action}", act.subject, detail)

    def routes(self, door: Door) -> list[Route]:
        async def osm(_: Call[Any, Any]) -> OsmLook:
            return await look_at_osm(self._tables, self._parts.state, self._threads)

        async def unblock(call: Call[None, Unblock]) -> Changed:
            act = act_of(door, call, "osm.unblock", "osm", {"reason": call.body.reason})
            block = await self._threads.call(Blocks(self._tables).clear, f"console:{act.actor}", call.body.reason)
            if block is None:
                raise Problem(409, "not_blocked", "OSM has not blocked the application; there is nothing to end")
            log_act(act)
            return Changed(count=1)

        async def devices(_: Call[Any, Any]) -> DeviceList:
            return DeviceList(devices=await self._threads.call(self._parts.devices.all, MOST_DEVICES))

        async def revoke(call: Call[Any, Any]) -> Changed:
            device_id = whole(call.request, "id")
            act = act_of(door, call, "device.revoke", f"device:{device_id}", {})
            found = await self._threads.call(self._parts.devices.revoke, device_id, None, actor=f"console:{act.actor}")
            if found is None:
                raise Problem(404, "not_found", "there is no such display, or it was shut out before")
            log_act(act)
            return Changed(count=1)

        look, act = [door.look], [door.act]
        path = "/api/console"
        return [
            Route(method="GET", path=f"{path}/osm", summary="How it stands with OSM", handle=osm, gives=OsmLook,
                  guards=look),
            Route(method="POST", path=f"{path}/osm/unblock", summary="End OSM's block", handle=unblock, takes=Unblock,
                  gives=Changed, guards=act),
            Route(method="GET", path=f"{path}/devices", summary="The displays", handle=devices, gives=DeviceList,
                  guards=look),
            Route(method="POST", path=f"{path}/devices/{{id}}/revoke", summary="Shut a display out", handle=revoke,
                  gives=Changed, guards=act),
        ]  # fmt: skip
