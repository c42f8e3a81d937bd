"""A leader's phone: signs in at the simulator with a browser, then speaks the leaders' API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from tests.osm import ROBIN, SCOUTS
from tests.scoreboard import Browser


class Phone:
    """One browser of one leader. Use it as a context manager."""

    def __init__(self, url: str, user_id: int = ROBIN) -> None:
        self._url = url
        self.user_id = user_id
        self.browser = Browser(url)
        self.csrf = ""

    async def __aenter__(self) -> Phone:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.browser.session.close()

    async def sign_in(self) -> None:
        """All the way: to OSM, through its pages, and back."""
        page = await self.browser.get("/admin/login")
        page = await self.browser.send(page, pick=str(self.user_id))
        await self.browser.send(page, decision="allow")
        _, session, _ = await self.ask("GET", "/api/admin/session")
        assert session["authenticated"], session
        self.csrf = session["csrfToken"]

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Mapping[str, str]]:
        """One request with the session's mark; status, JSON and headers. Names of headers with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"X-CSRF-Token": self.csrf, "Content-Type": "application/json", **named}
        data = None if body is None else json.dumps(body).encode()
        async with self.browser.session.request(method, self._url + path, data=data, headers=given) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else None, answer.headers.copy()

    async def give(
        self,
        points: Mapping[int, int] | list[tuple[int, int]],
        *,
        key: str | None = None,
        mode: str = "interactive",
        section: int = SCOUTS,
    ) -> tuple[int, Any]:
        """Give points to patrols."""
        pairs = points.items() if isinstance(points, Mapping) else points
        body = {"updates": [{"patrolId": str(patrol), "points": given} for patrol, given in pairs]}
        headers = {"X_Idempotency_Key": key or str(uuid4()), "X_Sync_Mode": mode}
        status, answer, _ = await self.ask("POST", f"/api/admin/sections/{section}/scores", body, **headers)
        return status, answer

    async def waiting(self) -> int:
        """The number in the page's header."""
        _, session, _ = await self.ask("GET", "/api/admin/session")
        waiting: int = session["pendingWrites"]
        return waiting

    async def pending(self) -> list[dict[str, Any]]:
        _, answer, _ = await self.ask("GET", "/api/admin/pending")
        lines: list[dict[str, Any]] = answer["pending"]
        return lines

    async def history(self, section: int = SCOUTS) -> list[dict[str, Any]]:
        _, answer, _ = await self.ask("GET", f"/api/admin/sections/{section}/history")
        lines: list[dict[str, Any]] = answer["history"]
        return lines
