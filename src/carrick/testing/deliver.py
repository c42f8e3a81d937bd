"""One call that delivers everything that is due, for the tests of applications that put entries."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import msgspec

from carrick.entry import Batch, Entry, Outcome, State
from carrick.outbox.handling import Handler, Reject, Retry, outcomes_of
from carrick.outbox.outbox import Outbox

OWNER = "carrick.testing.deliver_all"


def deliver_all(
    outbox: Outbox, handler: Handler | None = None, *, channels: Iterable[str] | None = None
) -> list[Entry]:
    """Claim what is due in the channels (all of them unless named), give it to the handler, and finish it.

    Without a handler each channel has its registered one (`@outbox.handler`); a channel that has none simply delivers.
    Each entry is offered once: one that the handler releases waits for the next call. Returns the delivered entries in
    order. Retry and Reject count as they do in a relay; what else the handler raises, or what is wrong with its answer,
    comes out of here, and its batch goes back unspent.
    """
    delivered: list[Entry] = []
    for channel in outbox.store.channels() if channels is None else channels:
        delivered += _deliver(outbox, channel, handler or _registered(outbox, channel))
    return delivered


def _registered(outbox: Outbox, channel: str) -> Handler:
    handling = outbox.handlers.get(channel)
    return (lambda batch: None) if handling is None else handling.handler


def _deliver(outbox: Outbox, channel: str, handler: Handler) -> list[Entry]:
    delivered: list[Entry] = []
    offered: set[UUID] = set()
    seen_again: list[UUID] = []
    try:
        while batch := outbox.claim(channel, owner=OWNER):
            if any(entry.id in offered for entry in batch):
                seen_again.append(batch.token)
                continue
            offered.update(entry.id for entry in batch)
            states = _hand_over(outbox, batch, handler)
            delivered += [entry for entry in batch if states.get(entry.id) is State.DELIVERED]
    finally:
        for token in seen_again:
            outbox.release(token)
    return delivered


def _hand_over(outbox: Outbox, batch: Batch, handler: Handler) -> dict[UUID, State]:
    try:
        outcomes = _outcomes(batch, handler)
    except BaseException:
        outbox.release(batch.token)
        raise
    states = outbox.finish(batch.token, outcomes)
    outbox.release(batch.token)
    return states


def _outcomes(batch: Batch, handler: Handler) -> dict[UUID, Outcome]:
    """What the handler makes of the batch; where it rejects several, of each alone."""
    try:
        return _checked(batch, _answer(handler, batch))
    except Retry as retry:
        return _checked(batch, dict.fromkeys((entry.id for entry in batch), retry.outcome()))
    except Reject as reject:
        if len(batch) == 1:
            return {batch.entries[0].id: reject.outcome()}
    outcomes: dict[UUID, Outcome] = {}
    for entry in batch:
        outcomes |= _outcomes(msgspec.structs.replace(batch, entries=(entry,)), handler)
    return outcomes


def _checked(batch: Batch, answer: Any) -> dict[UUID, Outcome]:
    outcomes, faults = outcomes_of(batch, answer)
    for fault in faults:
        raise fault
    return outcomes


def _answer(handler: Handler, batch: Batch) -> Any:
    answer = handler(batch)
    return _awaited(answer) if inspect.isawaitable(answer) else answer


def _awaited(answer: Awaitable[Any]) -> Any:
    """Run it to its end, also where an event loop is running already."""

    async def wait() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wait()).result()
