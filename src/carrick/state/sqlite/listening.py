"""Messages through a table: the file is watched for commits, and what is new in the table is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Protocol

from carrick.outbox.sqlite.watching import SqliteWatch


class Messages(Protocol):
    """The table of messages."""

    def newest_message(self) -> int:
        """The number of the newest message that ever was."""

    def messages(self, after: int) -> list[tuple[int, str, str]]:
        """Number, topic and text of those after that number."""


async def listen(table: Messages, path: Path, topic: str) -> AsyncGenerator[str | None, None]:
    """None once it listens, and where messages were removed before they were read; then the topic's messages."""
    watch = SqliteWatch(path)
    try:
        seen = await asyncio.to_thread(table.newest_message)  # the watch sees all that is committed after this
        yield None
        while True:
            for number, its_topic, text in await asyncio.to_thread(table.messages, seen):
                if number != seen + 1:
                    yield None
                seen = number
                if its_topic == topic:
                    yield text
            await watch.next()
    finally:
        await watch.close()
