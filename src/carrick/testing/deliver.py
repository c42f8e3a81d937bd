"""One call that delivers everything that is due, for the tests of applications that put entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from carrick.entry import Batch, Entry, Outcome, State
from carrick.outbox.outbox import Outbox

OWNER = "carrick.testing.deliver_all"

Handler = Callable[[Batch], Mapping[UUID, Outcome] | None]
"""Given a batch, does what the destination would do: None means all delivered, or outcomes per entry."""


def deliver_all(
    outbox: Outbox, handler: Handler | None = None, *, channels: Iterable[str] | None = None
) -> list[Entry]:
    """Claim what is due in the channels (all of them unless named), give it to the handler, and finish it.

    Each entry is offered once: one that the handler releases waits for the next call. Returns the delivered entries in
    order. What the handler raises comes out of here, and its batch goes back unspent.
    """
    delivered: list[Entry] = []
    for channel in outbox.store.channels() if channels is None else channels:
        delivered += _deliver(outbox, channel, handler or (lambda batch: None))
    return delivered


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
        outcomes = handler(batch)
    except BaseException:
        outbox.release(batch.token)
        raise
    if outcomes is None:
        return outbox.finish_all(batch.token)
    states = outbox.finish(batch.token, outcomes)
    outbox.release(batch.token)
    return states
