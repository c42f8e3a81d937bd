"""What must be done now and then by one replica: forgetting what nobody needs any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.relay.threads import Threads

log = logging.getLogger("carrick.scoreboard")

EVERY_SECONDS = 6 * 3600.0
AGAIN_SECONDS = 300.0
"""When something failed, it is tried again so soon."""

Duty = Callable[[], Awaitable[int]]
"""Answers how many things it has put away."""


async def keep(store: Store, threads: Threads, owner: str, duties: Mapping[str, Duty]) -> None:
    """Do the duties every six hours, on one replica at a time, until cancelled."""
    while True:
        done = await do_duties(store, threads, owner, duties)
        await asyncio.sleep(EVERY_SECONDS if done else AGAIN_SECONDS)


async def do_duties(store: Store, threads: Threads, owner: str, duties: Mapping[str, Duty]) -> bool:
    """Do them once, if this replica has the duty; False when something failed. One that fails stops no other."""
    try:
        if not await threads.call(store.take_duty, "janitor:scoreboard", owner, 2 * EVERY_SECONDS):
            return True
    except StoreError as error:
        log.warning("scoreboard.janitor_failed", extra={"error": str(error)})
        return False
    return all([await _do(name, duty) for name, duty in duties.items()])


async def _do(name: str, duty: Duty) -> bool:
    try:
        count = await duty()
    except StoreError as error:
        log.warning("scoreboard.janitor_failed", extra={"duty": name, "error": str(error)})
        return False
    if count:
        log.info("scoreboard.tidied", extra={"duty": name, "count": count})
    return True
