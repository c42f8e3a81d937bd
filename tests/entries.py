"""Claimed entries and deliveries for tests of sinks, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from carrick.entry import Entry
from carrick.sinks.sink import Delivery, Report, Sink
from carrick.steady import steady_seconds
from carrick.testing import samples

_numbers = count(1)


def claimed(**fields: Any) -> Entry:
    """An entry as a claim gives it, of no tenant, with an id of its own; `fields` are those of Entry."""
    return samples.claimed(next(_numbers), **{"tenant_id": "", **fields})


def claimed_run(number: int, **fields: Any) -> list[Entry]:
    """Several of them, in order."""
    return [claimed(**fields) for _ in range(number)]


async def deliver(sink: Sink, entries: Sequence[Entry], seconds: float = 60.0) -> Report:
    """Hand the entries to the sink, under a lease that allows so many seconds."""
    return await sink.deliver(Delivery(entries=entries, deadline=steady_seconds() + seconds))


async def deliver_and_close(sink: Sink, entries: Sequence[Entry], seconds: float = 60.0) -> Report:
    """The same with a sink that is used for nothing else."""
    try:
        return await deliver(sink, entries, seconds)
    finally:
        await sink.close()
