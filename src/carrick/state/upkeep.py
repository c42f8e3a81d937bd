"""What shared state needs now and then: a look whether Redis is there, and the removal of what has ended."""

from __future__ import annotations

import asyncio
import logging

from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.state.database import Calling
from carrick.state.shared import SharedState

log = logging.getLogger("carrick.state")

LOOK_EVERY_SECONDS = 10.0
PRUNE_EVERY_SECONDS = 300.0
MAX_ROWS = 10_000


async def keep(state: SharedState, store: Store, threads: Calling, owner: str) -> None:
    """Look after Redis, and prune, until cancelled. A service has this running."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_look_for_ever(state))
        tasks.create_task(_prune_for_ever(state, store, threads, owner))


async def prune_once(state: SharedState, store: Store, threads: Calling, owner: str) -> int:
    """Remove what has ended, if this replica has the duty; how many values that were."""
    if not await threads.call(store.take_duty, "janitor:state", owner, 2 * PRUNE_EVERY_SECONDS):
        return 0
    total = 0
    while removed := await state.prune(MAX_ROWS):
        total += removed
    if total:
        log.info("state.pruned", extra={"values": total})
    return total


async def _look_for_ever(state: SharedState) -> None:
    """A process at rest, too, knows whether Redis is away."""
    while True:
        await state.look()
        await asyncio.sleep(LOOK_EVERY_SECONDS)


async def _prune_for_ever(state: SharedState, store: Store, threads: Calling, owner: str) -> None:
    while True:
        try:
            await prune_once(state, store, threads, owner)
        except StoreError as error:
            log.warning("state.janitor_failed", extra={"error": str(error)})
        await asyncio.sleep(PRUNE_EVERY_SECONDS)
