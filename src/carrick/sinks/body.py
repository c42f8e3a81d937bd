"""The body of a request on its way: sent as fast as the bandwidth allows, and telling how far it came."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from carrick.sinks.bandwidth import Bandwidth


class Body(Payload):
    """One body for one try. `connections` remembers those that were used before."""

    def __init__(self, content: bytes, bandwidth: Bandwidth | None, connections: WeakSet[Any]) -> None:
        super().__init__(content, content_type="application/json")
        self._size = len(content)
        self._content = content
        self._bandwidth = bandwidth
        self._connections = connections
        self.begun = False
        """Whether a connection was there, so that something of the request may have arrived."""
        self.reused = False
        """Whether that connection had carried a request before, so that the other side may just have ended it."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._content.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._begin(writer)
        if self._bandwidth is None:
            await writer.write(self._content)
            return
        rest = memoryview(self._content)
        while rest:
            piece, rest = rest[: self._bandwidth.piece], rest[self._bandwidth.piece :]
            await self._bandwidth.take(len(piece))
            await writer.write(piece)

    def _begin(self, writer: AbstractStreamWriter) -> None:
        self.begun = True
        connection = getattr(writer, "transport", None)
        if connection is not None:
            self.reused = connection in self._connections
            self._connections.add(connection)
