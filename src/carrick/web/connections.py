"""The connections of one port: how long they may say nothing, how many there may be, and which goes for a newcomer.

aiohttp closes a connection an hour after its last word and takes as many as come. Here one that waits for its other
end (for a head, or for the rest of a body) is closed after a while; and where there are too many, the one that has
been silent longest goes, so that nobody is refused for the idle. A request that is being answered, a WebSocket and a
stream of events wait for nothing.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web

from carrick.settings import WebSettings
from carrick.variables import Network
from carrick.web import figures
from carrick.web.addresses import UNKNOWN, Visitor, among, parsed

log = logging.getLogger("carrick.web")

SWEEP_SECONDS = 1.0
ROUTINE = frozenset({"idle", "head"})


class Connection(asyncio.Protocol):
    """One connection: tells aiohttp's protocol everything, and remembers when it was heard last."""

    def __init__(self, port: Connections, inner: asyncio.Protocol) -> None:
        self._port = port
        self._inner = inner
        self.transport: asyncio.Transport | None = None
        self.request: web.BaseRequest | None = None
        """The one that is being answered."""
        self.peer = self.address = UNKNOWN
        self.heard = 0.0
        self.began: float | None = None
        """When the first byte of a head came that has no end yet."""

    @property
    def waits(self) -> bool:
        """Whether its other end has to say something before anything can happen."""
        return self.request is None or not self.request.content.is_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else UNKNOWN
        self.address = Visitor(self.peer).neighbourhood
        if not self._port.let_in(self):
            transport.abort()
            return
        self.transport = transport
        self._inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._port.forget(self)
        self._port.by_protocol.pop(self._inner, None)
        if self.transport is not None:
            self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self.heard = self._port.clock()
        if self.request is None and self.began is None:
            self.began = self.heard
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def close(self) -> None:
        """Hang up; what the other end does not take is thrown away."""
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self.transport is not None:
            self.transport.close()


class Connections:
    """All of one port. Made once the server is; call it for the protocol of a new connection."""

    def __init__(self, server: web.Server, limits: WebSettings, trusted: Sequence[Network] = ()) -> None:
        self._server = server
        self._answer = server.request_handler
        server.request_handler = self._handle
        self._limits = limits
        self._most = min(limits.max_connections, _most_files() * 3 // 4)
        self._trusted = trusted
        self._loop = asyncio.get_running_loop()
        self.clock = self._loop.time
        self.by_protocol: dict[Any, Connection] = {}
        self._all: dict[Connection, None] = {}
        self._by_address: dict[str, dict[Connection, None]] = {}
        self._closed: Counter[str] = Counter()
        self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def __call__(self) -> Connection:
        inner = self._server()
        connection = self.by_protocol[inner] = Connection(self, inner)
        return connection

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()
        self._tell()

    def let_in(self, newcomer: Connection) -> bool:
        """Whether there is room, or another could be made to go."""
        own = self._by_address.get(newcomer.address, {})
        newcomer.heard = self.clock()
        is_proxy = (peer := parsed(newcomer.peer)) is not None and among(peer, self._trusted)
        if not is_proxy and len(own) >= self._limits.max_connections_per_address and not self._go(own, "address"):
            return False
        if len(self._all) >= self._most and not self._go(self._all, "full"):
            return False
        self._all[newcomer] = None
        self._by_address.setdefault(newcomer.address, {})[newcomer] = None
        figures.CONNECTIONS.inc()
        return True

    def forget(self, connection: Connection) -> None:
        """It is closed, or will be soon."""
        if connection not in self._all:
            return
        del self._all[connection]
        figures.CONNECTIONS.dec()
        own = self._by_address[connection.address]
        del own[connection]
        if not own:
            del self._by_address[connection.address]

    def _go(self, some: Iterable[Connection], reason: str) -> bool:
        """Close the one of them that has been silent longest; whether there is one. A newcomer is refused otherwise."""
        silent = min((one for one in some if one.waits), key=lambda one: one.heard, default=None)
        if silent is None:
            self._count("refused")
            return False
        self._close(silent, reason)
        return True

    def _close(self, connection: Connection, reason: str) -> None:
        self._count(reason)
        self.forget(connection)
        connection.close()

    def _count(self, reason: str) -> None:
        self._closed[reason] += 1
        figures.CONNECTIONS_CLOSED.labels(reason).inc()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self.by_protocol.get(request.protocol)
        if connection is None:  # it is gone already
            return await self._answer(request)
        connection.request, connection.began = request, None
        try:
            return await self._answer(request)
        finally:
            connection.request, connection.heard = None, self.clock()

    def _sweep(self) -> None:
        """Close what has waited too long, and tell how many were closed since the last time."""
        self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        now = self.clock()
        for one in [one for one in self._all if one.request is None]:
            if one.began is not None and now - one.began >= self._limits.head_seconds:
                self._close(one, "head")
            elif now - one.heard >= self._limits.idle_seconds:
                self._close(one, "idle")
        self._tell()

    def _tell(self) -> None:
        if self._closed:
            level = logging.DEBUG if self._closed.keys() <= ROUTINE else logging.WARNING
            log.log(level, "web.connections_closed", extra={"open": len(self._all), "closed": dict(self._closed)})
            self._closed.clear()


def _most_files() -> int:
    """How many files and sockets this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
