"""What must be done now and then by one replica: removing ended entries past their retention."""

from __future__ import annotations

import asyncio
import logging

from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.relay.threads import Threads

log = logging.getLogger("carrick.relay")

EVERY_SECONDS = 300.0
MAX_ROWS = 10_000


async def tidy_up(store: Store, threads: Threads, channel: str, owner: str) -> None:
    """Prune the channel every few minutes, if no other replica does, until cancelled."""
    while True:
        try:
            await tidy_once(store, threads, channel, owner)
        except StoreError as error:
            log.warning("relay.janitor_failed", extra={"channel": channel, "error": str(error)})
        await asyncio.sleep(EVERY_SECONDS)


async def tidy_once(store: Store, threads: Threads, channel: str, owner: str) -> int:
    """Prune what is past its retention, if this replica has the duty; how many entries that were."""
    if not await threads.call(store.take_duty, f"janitor:{channel}", owner, 2 * EVERY_SECONDS):
        return 0
    total = 0
    while removed := await threads.call(store.prune, channel, max_rows=MAX_ROWS):
        total += removed
    if total:
        log.info("relay.pruned", extra={"channel": channel, "entries": total})
    return total
