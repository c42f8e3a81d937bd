"""A body on its way: in pieces where there is a limit, and telling how far it came."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet

from carrick.sinks.bandwidth import Bandwidth
from carrick.sinks.body import Body


class Connection:
    """Something that can be used again."""


class Writer:
    """Keeps what is written."""

    def __init__(self, connection: Connection) -> None:
        self.transport = connection
        self.pieces: list[bytes] = []

    async def write(self, piece: bytes) -> None:
        self.pieces.append(bytes(piece))


async def no_sleep(seconds: float) -> None:
    pass


def write(body: Body, connection: Connection) -> list[bytes]:
    writer: Any = Writer(connection)
    asyncio.run(body.write(writer))
    pieces: list[bytes] = writer.pieces
    return pieces


def test_without_a_limit_a_body_goes_in_one_piece() -> None:
    assert write(Body(b"0123456789", None, WeakSet()), Connection()) == [b"0123456789"]


def test_with_a_limit_a_body_goes_in_pieces() -> None:
    bandwidth = Bandwidth(32, clock=lambda: 0.0, sleep=no_sleep)
    assert write(Body(b"0123456789", bandwidth, WeakSet()), Connection()) == [b"0123", b"4567", b"89"]


def test_every_byte_is_taken_from_the_bandwidth() -> None:
    bandwidth = Bandwidth(32, clock=lambda: 0.0, sleep=no_sleep)
    write(Body(b"0123456789", bandwidth, WeakSet()), Connection())
    assert bandwidth.seconds_for(0) == 10 / 32


def test_a_body_has_begun_once_it_is_written() -> None:
    body = Body(b"x", None, WeakSet())
    assert not body.begun
    write(body, Connection())
    assert body.begun


def test_a_body_knows_a_connection_that_was_used_before() -> None:
    connections: WeakSet[Any] = WeakSet()
    connection = Connection()
    bodies = [Body(b"x", None, connections) for _ in range(2)]
    for body in bodies:
        write(body, connection)
    assert [body.reused for body in bodies] == [False, True]
