"""WebSocket /ws/device: a device is told when the scores of its section have changed.

One connection per device: the newest wins, on every replica as soon as it hears of it. A device that was revoked or
moved is disconnected at the next ping, or when there would be something to tell.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any, Protocol

import aiohttp
from aiohttp import WSCloseCode, web

from carrick.errors import StoreError
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick_scoreboard.admission import Admission, unauthorized
from carrick_scoreboard.patrols.patrols import LOOK_SECONDS
from carrick_scoreboard.refreshes import Refreshes
from carrick_scoreboard.routes.patrols import too_often
from carrick_scoreboard.store.devices import Device

log = logging.getLogger("carrick.scoreboard")

PATH = "/ws/device"
PING_SECONDS = 30.0
READY_SECONDS = 10.0
"""How long it may take until nothing can be missed any more."""
CLOSE_SECONDS = 2.0
"""How long the other end may take to say goodbye."""
MAX_MESSAGE_BYTES = 1024
MOST_MESSAGES = 100
"""Devices have nothing to say; one that goes on is disconnected."""
REFRESH = '{"type":"refresh-scores"}'


class Meter(Protocol):
    """Counts."""

    def connected(self, devices: int) -> None:
        """So many devices listen now."""
        ...


class _Connection:
    """One device that listens. `due`: it has to be told; `replaced`: it has connected again since."""

    def __init__(self, device: Device, authorization: str | None, socket: web.WebSocketResponse) -> None:
        self.device = device
        self.authorization = authorization
        self.socket = socket
        self.due = asyncio.Event()
        self.replaced = asyncio.Event()

    async def close(self, reason: str) -> None:
        log.info("device_socket.closed", extra={"device_id": self.device.id, "reason": reason})
        await self.socket.close(code=WSCloseCode.POLICY_VIOLATION, message=reason.encode())


class Sockets:
    """The devices that are connected to this process. `origin` is EXPOSED_DOMAIN; `look_seconds` is that of Patrols."""

    def __init__(
        self,
        admission: Admission,
        refreshes: Refreshes,
        meter: Meter,
        *,
        origin: str,
        ping_seconds: float = PING_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._admission = admission
        self._meter = meter
        self._origin = origin
        self._ping_seconds = ping_seconds
        self._look_seconds = look_seconds
        self._refreshes = refreshes
        self._connections: set[_Connection] = set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One connection, from its first request to its end."""
        origin = request.headers.get("Origin")
        if origin is not None and origin != self._origin:
            raise Problem(403, "wrong_origin", f"pages of {origin[:100]!r} may not connect; accepted: {self._origin}")
        authorization = request.headers.get("Authorization")
        device = await self._admission.device(authorization)
        if device is None:
            return too_often(self._admission, request, datetime.now(UTC)) or unauthorized()
        socket = web.WebSocketResponse(
            timeout=CLOSE_SECONDS, heartbeat=PING_SECONDS, max_msg_size=MAX_MESSAGE_BYTES, compress=False
        )
        if not socket.can_prepare(request).ok:
            raise Problem(426, "upgrade_required", "this is a WebSocket; accepted: an upgrade to it")
        await self._connected(request, _Connection(device, authorization, socket))
        return socket

    async def close(self) -> None:
        """End all connections: the service stops."""
        sockets = [connection.socket for connection in self._connections]
        await asyncio.gather(*(socket.close(code=WSCloseCode.GOING_AWAY) for socket in sockets))

    async def _connected(self, request: web.Request, connection: _Connection) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS) as ready:
                async with (
                    self._refreshes.listening(connection.device.section_id, connection.due.set),
                    self._refreshes.connected(connection.device.id, connection.replaced.set),
                ):
                    ready.reschedule(None)
                    await connection.socket.prepare(request)
                    await self._serve(connection)
        except TimeoutError:
            if connection.socket.prepared:
                raise
            raise Problem(503, "not_ready", "changes cannot be heard now; try again", retry_after=30) from None

    async def _serve(self, connection: _Connection) -> None:
        self._connections.add(connection)
        self._meter.connected(len(self._connections))
        try:
            await self._work(connection)
        finally:
            self._connections.discard(connection)
            self._meter.connected(len(self._connections))

    async def _work(self, connection: _Connection) -> None:
        """Hear, tell and watch, until one of them comes to its end."""
        parts = (_drain(connection), _replaced(connection), self._tell(connection), self._watch(connection))
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ends:
            if isinstance(error, Exception) and not isinstance(error, ConnectionError):
                log.error("device_socket.failed", exc_info=error, extra={"device_id": connection.device.id})
        await connection.socket.close()

    async def _tell(self, connection: _Connection) -> None:
        """Tell the device, when it can only be shown what is new; what happens meanwhile is told once."""
        while True:
            await connection.due.wait()
            await asyncio.sleep(self._look_seconds)
            connection.due.clear()
            if not await self._may_stay(connection):
                return
            await connection.socket.send_str(REFRESH)

    async def _watch(self, connection: _Connection) -> None:
        """At every ping: whether the device may stay."""
        while True:
            await asyncio.sleep(self._ping_seconds)
            if not await self._may_stay(connection):
                return

    async def _may_stay(self, connection: _Connection) -> bool:
        """Whether it is still the device that it was, for the same section; it is disconnected otherwise."""
        try:
            device = await self._admission.device(connection.authorization)
        except StoreError as error:
            log.warning("device_socket.not_checked", extra={"device_id": connection.device.id, "error": str(error)})
            return True  # it gets no scores from here; who reads them is asked again
        if device is not None and device.section_id == connection.device.section_id:
            return True
        await connection.close("the device was revoked" if device is None else "the device shows another section")
        return False


async def _drain(connection: _Connection) -> None:
    """Until it ends. Nothing that a device says matters."""
    said = 0
    async for message in connection.socket:
        said += 1
        if message.type is aiohttp.WSMsgType.ERROR:
            return
        if said > MOST_MESSAGES:
            await connection.close("too many messages")
            return


async def _replaced(connection: _Connection) -> None:
    """The newest connection of a device is the one that counts."""
    await connection.replaced.wait()
    await connection.close("the device has connected again")


def routes(sockets: Sockets) -> list[Route]:
    """The route."""

    async def device_socket(call: Call[Any, Any]) -> web.StreamResponse:
        return await sockets.serve(call.request)

    return [
        Route(
            method="GET",
            path=PATH,
            summary="WebSocket: tells a device to read its scores again",
            handle=device_socket,
            gives=None,
            status=101,
            problems=[401, 403, 426, 429, 503],
        )
    ]
