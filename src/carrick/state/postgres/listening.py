"""Messages through LISTEN on a connection of its own."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator

from carrick.outbox.postgres.failures import map_errors
from carrick.outbox.postgres.hearing import Ears


def channel_of(topic: str) -> str:
    """PostgreSQL's name for a topic: its own names are short."""
    return "carrick_state_" + hashlib.sha256(topic.encode()).hexdigest()[:40]


async def listen(dsn: str, topic: str) -> AsyncGenerator[str | None, None]:
    """None once it hears, then the topic's messages.

    Raises StoreUnavailable when the connection is lost, NothingHeard behind a pooler in transaction mode.
    """
    with map_errors():
        ears = await Ears.open(dsn, channel_of(topic))
        try:
            yield None
            while True:
                yield await ears.hear()
        finally:
            await ears.close()
