"""The evening of `carrick demo`: patrols with colours, points given over the last half hour, a link to the live board.

All of it goes the way that leaders go: they sign in at the simulated OSM and use the leaders' API. Only the times of
the points are put back afterwards, so that it looks like an evening.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin
from uuid import uuid4

import aiohttp

from carrick.errors import CarrickError

SECTION = 40104
ROBIN, HAZEL = "100001", "100002"
EAGLES, LIONS, WOLVES = "72699", "72700", "132322"
COLOURS = {EAGLES: "red", LIONS: "yellow", WOLVES: "blue"}
FORM = re.compile(r'<form method="post" action="(?P<action>[^"]*)">')
HIDDEN = re.compile(r'<input type="hidden" name="(?P<name>[^"]*)" value="(?P<value>[^"]*)">')

Backdate = Callable[[Mapping[int, int]], None]
"""Makes points look that many seconds older, by their number in the history."""


class Given(NamedTuple):
    """Points that a leader gave so many minutes ago."""

    minutes_ago: int
    leader: str
    points: Mapping[str, int]


EVENING = (
    Given(31, ROBIN, {EAGLES: 5, LIONS: 5, WOLVES: 5}),
    Given(24, HAZEL, {LIONS: 3}),
    Given(17, ROBIN, {WOLVES: -1}),
    Given(11, HAZEL, {EAGLES: 10, LIONS: 5}),
    Given(4, ROBIN, {LIONS: 3, WOLVES: 1}),
)


class Evening:
    """Makes it, once: a database with a history has had its evening. `folder` keeps the link to the board."""

    def __init__(self, address: str, folder: Path, backdate: Backdate) -> None:
        self._address = address
        self._link = folder / "board-link"
        self._backdate = backdate

    async def board(self) -> str:
        """The address of the live board: that of the last time if it still works, else a new one."""
        async with _Leader(self._address) as robin:
            kept = self._link.read_text().strip() if self._link.exists() else ""
            if kept and await robin.status(f"/api/board/{kept}") == 200:
                return f"{self._address}/board/{kept}"
            await robin.sign_in(ROBIN)
            await robin.ask("PUT", f"/api/admin/sections/{SECTION}/settings", {"patrolColors": COLOURS})
            made = await robin.ask("POST", f"/api/admin/sections/{SECTION}/boards")
            self._link.write_text(made["token"])
            return str(made["url"])

    async def happen(self) -> None:
        """Leaders give their points, unless they have done so before."""
        async with _Leader(self._address) as robin, _Leader(self._address) as hazel:
            await robin.sign_in(ROBIN)
            if await self._history(robin):
                return
            await hazel.sign_in(HAZEL)
            for given in EVENING:
                await (robin if given.leader == ROBIN else hazel).give(given.points)
            ages = [given.minutes_ago * 60 for given in EVENING for _ in given.points]
            numbers = sorted(line["id"] for line in await self._history(robin))
            await asyncio.to_thread(self._backdate, dict(zip(numbers, ages, strict=False)))

    async def _history(self, leader: _Leader) -> list[dict[str, Any]]:
        found = await leader.ask("GET", f"/api/admin/sections/{SECTION}/history")
        history: list[dict[str, Any]] = found["history"]
        return history


class _Leader:
    """A leader with a browser."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self._mark = ""

    async def __aenter__(self) -> _Leader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def sign_in(self, person: str) -> None:
        """Through the pages of the simulated OSM."""
        async with self._session.get(f"{self._address}/admin/login") as answer:
            place, page = answer.url, await answer.text()
        for filled in ({"pick": person}, {"decision": "allow"}):
            action = FORM.search(page)
            if action is None:
                raise CarrickError(f"the simulated OSM did not let the demo's leaders in: no form at {place}")
            fields = {unescape(found["name"]): unescape(found["value"]) for found in HIDDEN.finditer(page)}
            address = urljoin(str(place), unescape(action["action"]))
            async with self._session.post(address, data={**fields, **filled}) as answer:
                place, page = answer.url, await answer.text()
        self._mark = (await self.ask("GET", "/api/admin/session"))["csrfToken"]

    async def give(self, points: Mapping[str, int]) -> None:
        updates = [{"patrolId": patrol, "points": number} for patrol, number in points.items()]
        await self.ask("POST", f"/api/admin/sections/{SECTION}/scores", {"updates": updates})

    async def status(self, path: str) -> int:
        async with self._session.get(self._address + path) as answer:
            return answer.status

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer. Raises CarrickError with what the scoreboard said, if it refuses."""
        headers = {"X-CSRF-Token": self._mark, "X-Idempotency-Key": str(uuid4())}
        async with self._session.request(method, self._address + path, json=body, headers=headers) as answer:
            text = await answer.text()
            if answer.status >= 400:
                raise CarrickError(f"the demo's evening did not work: {method} {path}: {text[:200]}")
            return json.loads(text) if text else None
