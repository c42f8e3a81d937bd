"""What must be done now and then by one replica: removing what is past its retention."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.relay.threads import Threads

log = logging.getLogger("carrick.relay")

EVERY_SECONDS = 300.0
MAX_ROWS = 10_000


async def tidy_up(store: Store, threads: Threads, channel: str, owner: str) -> None:
    """Prune the channel every few minutes, if no other replica does, until cancelled."""
    await keep_tidy(store, threads, channel, owner, partial(store.prune, channel, max_rows=MAX_ROWS))


async def tidy_channel_once(store: Store, threads: Threads, channel: str, owner: str) -> int:
    """Prune the channel, if this replica has the duty; how many entries that were."""
    return await tidy_once(store, threads, channel, owner, partial(store.prune, channel, max_rows=MAX_ROWS))


async def keep_tidy(store: Store, threads: Threads, what: str, owner: str, prune: Callable[[], int]) -> None:
    """Prune every few minutes, if no other replica does, until cancelled. `prune` answers 0 when nothing is left."""
    while True:
        try:
            await tidy_once(store, threads, what, owner, prune)
        except StoreError as error:
            log.warning("relay.janitor_failed", extra={"channel": what, "error": str(error)})
        await asyncio.sleep(EVERY_SECONDS)


async def tidy_once(store: Store, threads: Threads, what: str, owner: str, prune: Callable[[], int]) -> int:
    """Prune what is past its retention, if this replica has the duty; how many rows that were."""
    if not await threads.call(store.take_duty, f"janitor:{what}", owner, 2 * EVERY_SECONDS):
        return 0
    total = 0
    while removed := await threads.call(prune):
        total += removed
    if total:
        log.info("relay.pruned", extra={"channel": what, "entries": total})
    return total
