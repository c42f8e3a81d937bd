"""Asks the cloud whether it is there, what it says of itself, and what time it has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import msgspec

from carrick.forward.answers import Handshake


class Greeting(Protocol):
    """What a destination says when it is greeted."""

    @property
    def status(self) -> int | None: ...
    @property
    def date(self) -> str | None: ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def error(self) -> str | None: ...


class Greeted(Protocol):
    """A sink that can be greeted."""

    async def greet(self) -> Greeting: ...


def handshake_of(sink: Greeted) -> Callable[[], Awaitable[Handshake]]:
    """A function that greets the destination of this sink."""

    async def handshake() -> Handshake:
        greeting = await sink.greet()
        return Handshake(
            reachable=greeting.status is not None,
            status=greeting.status,
            error=greeting.error,
            clock_difference_seconds=clock_difference(greeting.date, datetime.now(UTC)),
            answer=readable(greeting.text) if greeting.status == 200 else None,
        )

    return handshake


def clock_difference(date: str | None, now: datetime) -> float | None:
    """The other clock minus this one, in seconds, by an HTTP date; None when there is none to read."""
    if date is None:
        return None
    try:
        said = parsedate_to_datetime(date)
    except ValueError:
        return None
    return round((said.replace(tzinfo=said.tzinfo or UTC) - now).total_seconds(), 1)


def readable(text: bytes | None) -> Any:
    """The JSON that came; None when it is none."""
    try:
        return msgspec.json.decode(text or b"")
    except msgspec.DecodeError:
        return None
