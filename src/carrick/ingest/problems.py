"""Why a whole batch is refused, before anything is stored. What is wrong with one event is no reason (batch.Fault)."""

from __future__ import annotations


class BatchRefused(Exception):
    """Base: nothing of the batch is stored."""


class Unreadable(BatchRefused):
    """Not a batch: damaged, not JSON, or not of the form; the message has the path of the fault."""


class TooLarge(BatchRefused):
    """More bytes or events than a batch may have."""


class Replayed(BatchRefused):
    """The very same signed request was taken before."""
