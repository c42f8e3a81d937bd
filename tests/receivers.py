"""A receiver of HTTP requests on a real socket that can be told to answer anything, also what no server should."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import zstandard

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What came in; `body` as it was sent, `target` as it stands in the first line."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> bytes:
        """The body without its encoding."""
        encoding = self.headers.get("content-encoding")
        if encoding == "gzip":
            return gzip.decompress(self.body)
        return zstandard.ZstdDecompressor().decompress(self.body) if encoding == "zstd" else self.body

    @property
    def batch(self) -> dict[str, Any]:
        batch: dict[str, Any] = json.loads(self.text)
        return batch

    @property
    def event_ids(self) -> list[str]:
        return [event["event_id"] for event in self.batch["events"]]


@dataclass(frozen=True)
class Line:
    """One connection while it is being answered."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def until_gone(self) -> None:
        """Wait for the other side to hang up."""
        try:
            while await self.reader.read(65536):
                pass
        except OSError:
            pass


Reply = Callable[[Request, Line], Awaitable[bool]]
"""Answers one request; whether the connection stays open for the next."""


def answering(
    status: int = 200,
    body: bytes = b"",
    *,
    headers: dict[str, str] | None = None,
    length: int | None = None,
    keep: bool = True,
) -> Reply:
    """That status and body; `length` is what Content-Length claims."""

    async def reply(request: Request, line: Line) -> bool:
        await line.send(
            head(status, {"content-length": str(len(body) if length is None else length), **(headers or {})})
        )
        await line.send(body)
        return keep

    return reply


def verdict(accepted: int, duplicated: int = 0, rejected: int = 0, errors: list[dict[str, Any]] | None = None) -> bytes:
    """An answer of the expected form."""
    counts = {"accepted": accepted, "duplicated": duplicated, "rejected": rejected}
    return json.dumps({**counts, "errors": errors or []}).encode()


async def accepting(request: Request, line: Line) -> bool:
    """Takes every event."""
    return await answering(body=verdict(len(request.event_ids)))(request, line)


def chunked(*pieces: bytes) -> Reply:
    """The pieces as chunks."""

    async def reply(request: Request, line: Line) -> bool:
        await line.send(head(200, {"transfer-encoding": "chunked"}))
        for piece in (*pieces, b""):
            await line.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        return True

    return reply


def silent(asked: asyncio.Event | None = None, gone: asyncio.Event | None = None, first: bytes = b"") -> Reply:
    """Sends `first`, then nothing more, until the sender hangs up."""

    async def reply(request: Request, line: Line) -> bool:
        await line.send(first)
        if asked is not None:
            asked.set()
        await line.until_gone()
        if gone is not None:
            gone.set()
        return False

    return reply


def endless(status: int = 200) -> Reply:
    """An answer that never ends, as fast as it is read."""

    async def reply(request: Request, line: Line) -> bool:
        await line.send(head(status, {}))
        while True:
            await line.send(b" " * 65536)

    return reply


def resetting(first: bytes = b"") -> Reply:
    """Sends `first`, then a TCP reset."""

    async def reply(request: Request, line: Line) -> bool:
        await line.send(first)
        connection = line.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.writer.transport.abort()
        return False

    return reply


def raw(data: bytes) -> Reply:
    """These bytes, then the end of the connection."""

    async def reply(request: Request, line: Line) -> bool:
        await line.send(data)
        return False

    return reply


def tunnelling(port: int) -> Reply:
    """As a proxy: grants a CONNECT and passes everything on to that port of this host."""

    async def reply(request: Request, line: Line) -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await line.send(b"HTTP/1.1 200 go ahead\r\n\r\n")
        try:
            await asyncio.gather(_pump(line.reader, writer), _pump(reader, line.writer))
        finally:
            writer.close()
        return False

    return reply


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def head(status: int, headers: dict[str, str]) -> bytes:
    """The first lines of an answer."""
    lines = [f"HTTP/1.1 {status} whatever", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


@dataclass
class Receiver:
    """Answers the first request with the first reply and so on; the last reply stays."""

    replies: list[Reply]
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    _lines: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            while (request := await _request(reader)) is not None:
                self.requests.append(request)
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if not await reply(request, Line(reader, writer)):
                    break
        except (OSError, asyncio.CancelledError):
            pass  # the sender hung up, or the test is over
        finally:
            writer.transport.abort()

    async def hang_up(self) -> None:
        """End all connections."""
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines)
        self._lines.clear()


@asynccontextmanager
async def receiving(*replies: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a free port of this host; without replies it accepts everything."""
    receiver = Receiver([*(replies or (accepting,))])
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await receiver.hang_up()
        await server.wait_closed()


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a story on a loop of its own. Fails when it leaves a task behind; sockets left open are warned about."""

    async def told() -> T:
        result = await story
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            _, left = await asyncio.wait(left, timeout=1)  # the loop's own, about to end
        assert not left, left
        return result

    result = asyncio.run(told())
    gc.collect()
    return result


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, target, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    assert "transfer-encoding" not in headers, "a signed body has a length"
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)
