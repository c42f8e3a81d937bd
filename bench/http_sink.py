"""The HTTP sink beside a bare aiohttp client that posts the same bytes: `python -m bench.http_sink`.

The receiver is a process of its own that unpacks each batch, counts its events and answers. Batches of 100 entries with payloads
of 200 bytes. The bare client has the JSON ready, compresses it as the sink does, and does not look at the answers.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Literal

import aiohttp
import msgspec
import zstandard

from carrick.entry import Entry
from carrick.settings import CloudSettings
from carrick.sinks.envelope import body_of
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Delivery, Results
from carrick.steady import steady_seconds
from carrick.testing.samples import claimed

ENTRIES = 100
BATCHES = 300
ROUNDS = 7
ANSWER = b'{"accepted":%d,"duplicated":0,"rejected":0,"errors":[]}'
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
UNPACK: dict[bytes, Callable[[bytes], bytes]] = {b"gzip": gzip.decompress, b"zstd": zstandard.decompress}

Compression = Literal["none", "gzip", "zstd"]
Send = Callable[[], Awaitable[None]]


class Received(msgspec.Struct):
    """The least that a receiver must read to answer honestly."""

    events: list[msgspec.Raw]


class Answering(asyncio.Protocol):
    """Reads each batch and takes all its events."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(_header(head, b"content-length"))
        if len(body) >= length:
            self._buffer = body[length:]
            unpack = UNPACK.get(_header(head, b"content-encoding"), bytes)
            answer = ANSWER % len(_decoder.decode(unpack(body[:length])).events)
            self._transport.write(REPLY % (len(answer), answer))


_decoder = msgspec.json.Decoder(Received)


def _header(head: bytes, name: bytes) -> bytes:
    return head.lower().partition(b"\r\n%b: " % name)[2].partition(b"\r\n")[0]


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def entry(number: int) -> Entry:
    """A payload of 200 bytes, half of it repeated in the next one, half of it not."""
    digits = hashlib.sha512(b"%d" % number).hexdigest()[:104]
    payload = b'{"device":"barn-%04d","unit":"celsius","reading":%.4f,"status":"ok","raw":"%b"}'
    return claimed(
        number,
        payload=(payload % (number % 7, 100 + number / 7, digits.encode())).ljust(200),
        event_type="reading.taken",
    )


ENTRY_LIST = [entry(number) for number in range(ENTRIES)]


def sink_sender(sink: HttpSink) -> Send:
    async def send() -> None:
        report = await sink.deliver(Delivery(entries=ENTRY_LIST, deadline=steady_seconds() + 60))
        assert isinstance(report, Results), report

    return send


def bare_sender(
    session: aiohttp.ClientSession, url: str, body: bytes, pack: Callable[[bytes], bytes], headers: dict[str, str]
) -> Send:
    async def send() -> None:
        async with session.post(url, data=pack(body), headers=headers) as response:
            await response.read()

    return send


async def rate(send: Send, in_flight: int) -> float:
    """Events per second."""

    async def worker(count: int) -> None:
        for _ in range(count):
            await send()

    started = time.perf_counter()
    await asyncio.gather(*(worker(BATCHES // in_flight) for _ in range(in_flight)))
    return BATCHES // in_flight * in_flight * ENTRIES / (time.perf_counter() - started)


async def compare(port: int, compression: Compression, in_flight: int) -> None:
    url = f"http://127.0.0.1:{port}/api/v1/edge/batch"
    sink = HttpSink(CloudSettings(url=url, compression=compression), edge_id="edge-1")
    body = body_of(ENTRY_LIST, edge_id="edge-1", sent_at=datetime.now(UTC))
    headers = {"content-type": "application/json", "content-encoding": compression, "x-tenant-id": "acme"}
    pairs = []
    async with aiohttp.ClientSession() as session:
        sends = bare_sender(session, url, body, sink._pack, headers), sink_sender(sink)
        for send in sends:
            await rate(send, in_flight)
        for _ in range(ROUNDS):
            pairs += [(await rate(sends[0], in_flight), await rate(sends[1], in_flight))]
    await sink.close()
    bare, sunk = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(mine / theirs for theirs, mine in pairs)
    print(f"| {compression} | {in_flight} | {len(sink._pack(body))} | {bare:,.0f} | {sunk:,.0f} | {ratio:.2f} |")


async def compare_all(port: int) -> None:
    print("| compression | in flight | bytes | bare events/s | sink events/s | ratio |\n|---|---|---|---|---|---|")
    compressions: tuple[Compression, ...] = ("none", "gzip", "zstd")
    for compression in compressions:
        for in_flight in (1, 4):
            await compare(port, compression, in_flight)


def main() -> None:
    command = [sys.executable, "-m", "bench.http_sink", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            asyncio.run(compare_all(int(server.stdout.readline())))
        finally:
            server.terminate()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main()
