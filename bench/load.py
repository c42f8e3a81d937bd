"""A client that costs as little as it can: requests that are ready, sent as they are over connections that stay open.

Client and server share two cores here: what the client does not spend, both sides of a comparison have.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence


def request(path: str, headers: dict[str, str], body: bytes) -> bytes:
    """A POST as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Sender(asyncio.Protocol):
    """Sends the next request when the answer to the last one has come, until there is none."""

    def __init__(self, waiting: list[bytes], accepts: Callable[[bytes], bool]) -> None:
        self._waiting = waiting
        self._accepts = accepts
        self._answer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def start(self) -> None:
        if self._waiting:
            self._transport.write(self._waiting.pop())
        else:
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 200") or not self._accepts(body):
            self.done.set_exception(RuntimeError(self._answer.decode()))
            return
        self._answer = b""
        self.start()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server has ended the connection"))


def rate(port: int, requests: Sequence[bytes], in_flight: int, accepts: Callable[[bytes], bool]) -> float:
    """Requests per second with so many on their way. Raises RuntimeError with the first answer that is not accepted."""

    async def main() -> float:
        waiting = list(requests)
        loop = asyncio.get_running_loop()
        opened = [
            await loop.create_connection(lambda: Sender(waiting, accepts), "127.0.0.1", port) for _ in range(in_flight)
        ]
        started = time.perf_counter()
        for _, sender in opened:
            sender.start()
        await asyncio.gather(*[sender.done for _, sender in opened])
        seconds = time.perf_counter() - started
        for transport, _ in opened:
            transport.close()
        return len(requests) / seconds

    return asyncio.run(main())
