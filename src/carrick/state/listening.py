"""Subscriptions that last: a lost connection is made again, and who listens is told that something may be missing."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from carrick.errors import NothingHeard, StoreError
from carrick.state.kv import Gap, Heard, Message

log = logging.getLogger("carrick.state")

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LOOK_SECONDS = 1.0
"""Where nothing can be heard, whoever is subscribed is told so often to look."""
MOST_WAITING = 1_000
"""Messages that wait for a slow subscriber; then its connections wait."""

Listen = Callable[[], AsyncGenerator[str | None, None]]


async def hear(listen: Listen, where: str) -> AsyncGenerator[Heard, None]:
    """Listen for ever. A Gap comes first, after every loss, and again when it listens anew.

    Where nothing can be heard, one comes every second.
    """
    failures = 0
    untold = True
    deaf = False
    while True:
        try:
            async with aclosing(listen()) as texts:
                async for text in texts:
                    failures, untold, deaf = 0, True, False
                    yield Message(text) if text is not None else Gap(f"{where}: listening from now on")
        except NothingHeard as error:
            if not deaf:
                log.warning(
                    "state.hears_nothing",
                    extra={"where": where, "error": str(error), "looks_every_seconds": LOOK_SECONDS},
                )
            deaf = True
            yield Gap(f"{where}: {error}")
            await asyncio.sleep(LOOK_SECONDS)
        except StoreError as error:
            pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures, 10))
            failures += 1
            log.warning("state.not_listening", extra={"where": where, "error": str(error), "again_in_seconds": pause})
            if untold:
                untold = False
                yield Gap(f"{where}: {error}")
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  no secret


async def merged(*sources: AsyncGenerator[Heard, None]) -> AsyncGenerator[Heard, None]:
    """What all sources hear. The first Gap comes when each of them has given its own."""
    waiting: asyncio.Queue[Heard | Exception] = asyncio.Queue(MOST_WAITING)
    firsts: asyncio.Queue[Heard] = asyncio.Queue()

    async def pour(source: AsyncGenerator[Heard, None]) -> None:
        try:
            async with aclosing(source):
                firsts.put_nowait(await anext(source))
                async for heard in source:
                    await waiting.put(heard)
        except Exception as error:  # noqa: BLE001  raised again where it is read
            firsts.put_nowait(Gap(str(error)))
            await waiting.put(error)

    pouring = [asyncio.create_task(pour(source)) for source in sources]
    try:
        gaps = [await firsts.get() for _ in pouring]
        yield gaps[-1]
        while True:
            heard = await waiting.get()
            if isinstance(heard, Exception):
                raise heard
            yield heard
    finally:
        for task in pouring:
            task.cancel()
        await asyncio.gather(*pouring, return_exceptions=True)
