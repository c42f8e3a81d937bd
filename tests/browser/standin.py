"""A stand-in for the scoreboard's server: the leaders' API over a hall in memory.

Tests use `url` and what `Hall` tells; the real server can take its place behind the same names.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from aiohttp import WSMsgType, web

from tests.browser import PAGES
from tests.browser.hall import Hall, Seen, stamp

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
COOKIE = "osm_admin_session"
SECTIONS = [
    {"id": 40104, "name": "Scouts", "groupName": "1st Carrick"},
    {"id": 40105, "name": "Explorers", "groupName": "1st Carrick"},
]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """The routes over a hall."""

    def __init__(self, hall: Hall) -> None:
        self.hall = hall
        self.sockets: set[web.WebSocketResponse] = set()

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.door])
        section = "/api/admin/sections/{section}"
        app.add_routes(
            [
                web.get("/admin/login", self.login),
                web.post("/admin/logout", self.logout),
                web.get("/api/admin/session", self.session),
                web.get("/api/admin/sections", self.sections),
                web.get(f"{section}/scores", self.scores),
                web.post(f"{section}/scores", self.submit),
                web.get(f"{section}/settings", self.settings),
                web.put(f"{section}/settings", self.save_settings),
                web.post(f"{section}/refresh", self.refresh),
                web.post(f"{section}/boards", self.make_board),
                web.delete(f"{section}/boards/{{token}}", self.end_board),
                web.get(f"{section}/history", self.read_history),
                web.post("/api/admin/history/{id}/undo", self.undo),
                web.get("/api/admin/pending", self.read_pending),
                web.post("/api/admin/pending/{id}/{action}", self.settle),
                web.get("/api/admin/scoreboards", self.read_displays),
                web.put("/api/admin/scoreboards/{id}/{part}", self.change_display),
                web.delete("/api/admin/scoreboards/{id}", self.end_display),
                web.get("/api/board/{token}", self.board),
                web.get("/ws/board/{token}", self.watch),
                web.get("/admin/{file:.*}", self.file("score")),
                web.get("/board/{file:assets/.*}", self.file("board")),
                web.get("/board/{token}", self.file("board")),
            ]
        )
        return app

    @web.middleware
    async def door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Notes the call, plays the faults that hit every call, and lets nobody in who is not signed in."""
        if self.hall.away:
            return hang_up(request)
        if request.path.startswith("/api/"):
            body = await request.text()
            self.hall.calls.append(
                Seen(request.method, request.path, request.headers.copy(), json.loads(body or "null"))
            )
        hold = self.hall.held(request.method, request.path)
        if hold is not None:
            await asyncio.to_thread(hold.wait)
        if request.path.startswith("/api/admin/") and not request.path.endswith("/session"):
            if self.token(request) is None:
                return problem(401, "unauthorized", "Please sign in.")
            if request.method != "GET" and request.headers.get("X-CSRF-Token") != self.token(request):
                return problem(403, "csrf_invalid", "The token is not that of your session.")
        return await handler(request)

    def token(self, request: web.Request) -> str | None:
        return self.hall.sessions.get(request.cookies.get(COOKIE, ""))

    def file(self, part: str) -> Handler:
        async def give(request: web.Request) -> web.StreamResponse:
            path = (PAGES / part / request.match_info.get("file", "")).resolve()
            path = path / "index.html" if path.is_dir() else path
            if not path.is_relative_to(PAGES) or not path.is_file():
                return web.Response(status=404)
            return web.FileResponse(path, headers={"Content-Security-Policy": CSP, "Cache-Control": "no-cache"})

        return give

    async def login(self, request: web.Request) -> web.StreamResponse:
        session = uuid4().hex
        self.hall.sessions[session] = f"csrf-{session}"
        answer = web.Response(status=302, headers={"Location": request.query["return"]})
        answer.set_cookie(COOKIE, session, httponly=True, samesite="Lax")
        return answer

    async def logout(self, request: web.Request) -> web.StreamResponse:
        self.hall.sessions.pop(request.cookies.get(COOKIE, ""), None)
        return web.Response(status=204)

    async def session(self, request: web.Request) -> web.StreamResponse:
        token = self.token(request)
        if token is None:
            return web.json_response({"authenticated": False, "pendingWrites": 0})
        waiting = len([entry for entry in self.hall.pending if entry["state"] != "dead"])
        return web.json_response(
            {"authenticated": True, "user": self.hall.user, "csrfToken": token, "pendingWrites": waiting}
        )

    async def sections(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"sections": SECTIONS})

    def patrols(self) -> list[dict[str, Any]]:
        waiting = [entry for entry in self.hall.pending if entry["state"] != "dead"]
        delta = {key: sum(e["points"] for e in waiting if e["patrolId"] == key) for key in self.hall.names}
        return [
            {
                "id": key,
                "name": name,
                "score": self.hall.scores[key],
                "pendingDelta": delta[key],
                "hasPending": any(entry["patrolId"] == key for entry in waiting),
            }
            for key, name in self.hall.names.items()
        ]

    async def scores(self, request: web.Request) -> web.StreamResponse:
        patrols = self.patrols() if request.match_info["section"] == "40104" else []
        return web.json_response({"section": SECTIONS[0], "termId": 1, "patrols": patrols, "fetchedAt": stamp()})

    async def submit(self, request: web.Request) -> web.StreamResponse:
        if self.hall.refusals:
            status, said, headers = self.hall.refusals.pop(0)
            return web.json_response(said, status=status, headers=headers)
        body = json.loads(await request.text())
        key = (self.hall.user["osmUserId"], request.headers["X-Idempotency-Key"])
        if key not in self.hall.answers:
            self.hall.answers[key] = (body, *self.take(body["updates"]))
            await self.tell()
        known, status, said = self.hall.answers[key]
        if known != body:
            return problem(409, "idempotency_conflict", "The same key came with another body.")
        if self.hall.drop_answers:
            return hang_up(request)
        return web.json_response(said, status=status)

    def take(self, updates: list[dict[str, Any]]) -> tuple[int, Any]:
        until = self.hall.limited_until
        for update in updates:
            if until is None:
                self.hall.apply(update["patrolId"], update["points"])
            else:
                self.hall.wait(update["patrolId"], update["points"], retryAt=stamp(until))
        said: dict[str, Any] = {"success": True, "batchId": uuid4().hex, "entriesCreated": len(updates), "patrols": []}
        if until is None:
            return 200, said | {"status": "applied"}
        message = "Online Scout Manager asked us to slow down. The points are applied at 20:15."
        return 202, said | {"status": "accepted", "pending": {"count": len(updates), "message": message}}

    async def settings(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"patrolColors": self.hall.colours})

    async def save_settings(self, request: web.Request) -> web.StreamResponse:
        self.hall.colours = (await request.json())["patrolColors"]
        return web.json_response({"patrolColors": self.hall.colours})

    async def refresh(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    async def make_board(self, request: web.Request) -> web.StreamResponse:
        self.hall.boards.append(f"board-{len(self.hall.boards) + 1}")
        token = self.hall.boards[-1]
        return web.json_response({"token": token, "url": f"http://{request.host}/board/{token}"}, status=201)

    async def end_board(self, request: web.Request) -> web.StreamResponse:
        self.hall.boards.remove(request.match_info["token"])
        return web.Response(status=204)

    async def read_history(self, request: web.Request) -> web.StreamResponse:
        limit, before = int(request.query["limit"]), int(request.query.get("before", 1_000_000))
        older = [line for line in self.hall.history if line["id"] < before]
        page: dict[str, Any] = {"history": older[:limit]}
        return web.json_response(page | ({"next": str(older[limit - 1]["id"])} if len(older) > limit else {}))

    async def undo(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["X-Idempotency-Key"]
        line = next(one for one in self.hall.history if str(one["id"]) == request.match_info["id"])
        if "undoneBy" not in line:
            line["undoneBy"] = self.hall.apply(line["patrolId"], -line["points"])["id"]
        return web.json_response({"success": True, "status": "applied"})

    async def read_pending(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"pending": self.hall.pending})

    async def settle(self, request: web.Request) -> web.StreamResponse:
        entry = next(one for one in self.hall.pending if one["id"] == request.match_info["id"])
        self.hall.pending.remove(entry)
        if request.match_info["action"] == "retry":
            self.hall.apply(entry["patrolId"], entry["points"])
        return web.Response(status=204)

    async def read_displays(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"scoreboards": self.hall.displays})

    async def change_display(self, request: web.Request) -> web.StreamResponse:
        display = next(one for one in self.hall.displays if str(one["id"]) == request.match_info["id"])
        display.update(await request.json())
        return web.json_response(display)

    async def end_display(self, request: web.Request) -> web.StreamResponse:
        self.hall.displays = [one for one in self.hall.displays if str(one["id"]) != request.match_info["id"]]
        return web.Response(status=204)

    async def board(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] not in self.hall.boards:
            return problem(404, "not_found", "There is no such board.")
        now = datetime.now(UTC)
        return web.json_response(
            {
                "patrols": self.patrols(),
                "cached_at": stamp(now),
                "cache_expires_at": stamp(now + timedelta(minutes=5)),
                "stale": self.hall.stale,
                "settings": {"patrolColors": self.hall.colours},
                "section": {"name": "Scouts", "groupName": "1st Carrick"},
            }
        )

    async def watch(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.add(socket)
        async for message in socket:
            assert message.type is WSMsgType.TEXT
        self.sockets.discard(socket)
        return socket

    async def tell(self) -> None:
        """Tell every board that scores have changed."""
        for socket in list(self.sockets):
            await socket.send_json({"type": "refresh-scores"})


def problem(status: int, error: str, message: str) -> web.Response:
    return web.json_response({"error": error, "message": message}, status=status)


def hang_up(request: web.Request) -> web.StreamResponse:
    """The connection ends without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


class StandIn:
    """The server in a thread of its own, on a port of its own."""

    def __init__(self) -> None:
        self.hall = Hall()
        self._api = Api(self.hall)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._run(self._start())}"

    async def _start(self) -> int:
        self._runner = web.AppRunner(self._api.app(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def tell_boards(self) -> None:
        self._run(self._api.tell())

    def watchers(self) -> int:
        """How many boards listen."""
        return len(self._api.sockets)

    def hang_up_on_boards(self) -> None:
        """End every board's connection."""

        async def end() -> None:
            for socket in list(self._api.sockets):
                await socket.close()

        self._run(end())

    def close(self) -> None:
        for event in self.hall.holds.values():
            event.set()
        self._run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
