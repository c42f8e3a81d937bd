"""The live board: the scores of a section for whoever has its link, and news of them by WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import msgspec
import segno
from aiohttp import WSCloseCode, web

from carrick.relay.threads import Threads
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick_scoreboard.patrols.known import Viewer
from carrick_scoreboard.patrols.patrols import Patrols, Refused, Scores
from carrick_scoreboard.refreshes import Refreshes
from carrick_scoreboard.routes.device_socket import MAX_MESSAGE_BYTES, PING_SECONDS, REFRESH
from carrick_scoreboard.routes.patrols import refusal
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.boards import BoardLink, Boards
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.web_security import is_secret

MOST_PER_LINK = 50
"""Screens that one link serves at once in one process."""


class BoardSection(msgspec.Struct, frozen=True, rename="camel"):
    """What the board is headed with."""

    name: str
    group_name: str


class BoardScores(Scores, frozen=True, kw_only=True):
    """The scores, as devices get them, and whose they are."""

    section: BoardSection


class BoardPages:
    """The handlers."""

    def __init__(
        self,
        boards: Boards,
        patrols: Patrols,
        stored: StoredCredentials,
        refreshes: Refreshes,
        threads: Threads,
        *,
        origin: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._boards = boards
        self._patrols = patrols
        self._stored = stored
        self._refreshes = refreshes
        self._threads = threads
        self._origin = origin
        self._now = now
        self._screens: dict[str, set[web.WebSocketResponse]] = {}

    async def scores(self, call: Call[Any, Any]) -> web.Response:
        """The same as for a display, with the section's name in front."""
        link = await self._link(call.request)
        try:
            served = await self._patrols.scores(Viewer(section_id=link.section_id, osm_user_id=link.osm_user_id))
        except Refused as refused:
            return refusal(refused, self._now())
        section = msgspec.json.encode(await self._section(link))
        body = b'{"section":' + section + b"," + served.body[1:]
        headers = {"X-Cache": "MISS" if served.waited else "HIT", "Cache-Control": "no-store"}
        return web.Response(body=body, content_type="application/json", headers=headers)

    async def qr(self, call: Call[Any, Any]) -> web.Response:
        """The link as a QR code, to be read from the leader's phone."""
        await self._link(call.request)
        link = f"{self._origin}/board/{call.request.match_info['token']}"
        return web.Response(body=qr_svg(link), content_type="image/svg+xml", headers={"Cache-Control": "no-store"})

    async def watch(self, call: Call[Any, Any]) -> web.StreamResponse:
        """Told of every change, until the link is ended or the screen goes."""
        request = call.request
        if request.headers.get("Origin", self._origin) != self._origin:
            raise Problem(403, "wrong_origin", f"accepted: pages of {self._origin}")
        link = await self._link(request)
        screens = self._screens.setdefault(request.match_info["token"], set())
        if len(screens) >= MOST_PER_LINK:
            raise Problem(429, "too_many", f"this link serves {MOST_PER_LINK} screens already", retry_after=60)
        socket = web.WebSocketResponse(heartbeat=PING_SECONDS, max_msg_size=MAX_MESSAGE_BYTES, compress=False)
        if not socket.can_prepare(request).ok:
            raise Problem(426, "upgrade_required", "this is a WebSocket; accepted: an upgrade to it")
        screens.add(socket)
        due = asyncio.Event()
        try:
            async with self._refreshes.listening(link.section_id, due.set):
                await socket.prepare(request)
                await self._serve(request, socket, due)
        finally:
            screens.discard(socket)
        return socket

    async def close(self) -> None:
        """End all connections: the service stops."""
        sockets = [socket for screens in self._screens.values() for socket in screens]
        await asyncio.gather(*(socket.close(code=WSCloseCode.GOING_AWAY) for socket in sockets))

    async def _serve(self, request: web.Request, socket: web.WebSocketResponse, due: asyncio.Event) -> None:
        telling = asyncio.create_task(self._tell(request, socket, due))
        try:
            async for _ in socket:
                break  # screens have nothing to say
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            await socket.close()

    async def _tell(self, request: web.Request, socket: web.WebSocketResponse, due: asyncio.Event) -> None:
        while True:
            await due.wait()
            try:
                await self._link(request)
            except Problem:
                await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"the link was ended")
                return
            due.clear()  # whatever was told by now is read after this
            await socket.send_str(REFRESH)

    async def _link(self, request: web.Request) -> BoardLink:
        token = request.match_info["token"]
        link = await self._threads.call(self._boards.get, digest(token)) if is_secret(token) else None
        if link is None:
            raise Problem(404, "not_found", "this link does not lead to a board, or no longer")
        return link

    async def _section(self, link: BoardLink) -> BoardSection:
        for section in await self._threads.call(self._stored.writable, link.osm_user_id):
            if section.id == link.section_id:
                return BoardSection(section.name, section.group_name)
        return BoardSection("", "")

    def routes(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path="/api/board/{token}",
                summary="The scores behind a board's link",
                handle=self.scores,
                gives=BoardScores,
                problems=[400, 403, 404, 409, 429, 500, 502, 503],
            ),
            Route(
                method="GET",
                path="/board/{token}/qr.svg",
                summary="A board's link as a QR code",
                handle=self.qr,
                gives=str,
                problems=[404],
            ),
            Route(
                method="GET",
                path="/ws/board/{token}",
                summary="WebSocket: tells a board to read its scores again",
                handle=self.watch,
                gives=None,
                status=101,
                problems=[403, 404, 426, 429],
            ),
        ]


def qr_svg(text: str) -> bytes:
    """The text as a picture that a phone's camera reads."""
    picture = BytesIO()
    segno.make(text, error="m", micro=False).save(picture, kind="svg", scale=4, border=3, light="#fff")
    return picture.getvalue()
