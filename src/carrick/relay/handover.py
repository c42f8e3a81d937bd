"""Hands entries of one claim to the sink, and knows what is in doubt when that ends without a report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any
from uuid import UUID

from carrick import tracing
from carrick.entry import Entry, Outcome
from carrick.relay.lease import Lease
from carrick.relay.meter import Meter
from carrick.sinks.sink import Delivery, LeaseLost, Report, Results, Sink, failure_of, has_delivered
from carrick.steady import steady_seconds

log = logging.getLogger("carrick.relay")

Note = Callable[[Any, Collection[UUID] | None], Awaitable[int]]
"""Store.note under the lease, without blocking."""


class Handover:
    """The deliveries of one claim. `doubts`: what was cancelled and may have had its effect."""

    def __init__(self, sink: Sink, lease: Lease, note: Note, channel: str, meter: Meter) -> None:
        self._sink = sink
        self._lease = lease
        self._note = note
        self._channel = channel
        self._meter = meter
        self.doubts: dict[UUID, Outcome] = {}

    async def send(self, entries: Sequence[Entry]) -> Report:
        """What the sink reports, traced. Raises LeaseLost."""
        with tracing.span("deliver", self._channel, after=(entry.traceparent for entry in entries)):
            report = await self._sent(entries)
            if (failure := failure_of(report)) is not None:
                tracing.fail(failure)
            return report

    async def _sent(self, entries: Sequence[Entry]) -> Report:
        """What the sink reports, counted.

        A delivery that ends without a report is in doubt as far as the sink has noted what it is about to do, and from
        its beginning where the destination is not idempotent.
        """
        started = steady_seconds()
        entry_ids = [entry.id for entry in entries]
        in_doubt = set() if self._sink.idempotent else set(entry_ids)

        async def note(intent: Any, ids: Collection[UUID] | None = None) -> None:
            nonlocal in_doubt
            await self._lease.hold(self._note(intent, ids))
            if self._sink.idempotent:
                in_doubt = set(entry_ids if ids is None else ids)

        try:
            report = await self._sink.deliver(Delivery(entries=entries, deadline=self._lease.deadline, note=note))
        except LeaseLost:
            raise
        except asyncio.CancelledError:
            stopped = Outcome.unsure(code="stopped", message="the relay stopped while it was on its way")
            self.doubts |= dict.fromkeys(in_doubt, stopped)
            raise
        except Exception as error:  # a fault in the sink: each of these entries may be its cause, none may be lost
            log.exception("relay.sink_failed", extra={"channel": self._channel, "entries": len(entries)})
            code = type(error).__name__
            retry, unsure = Outcome.retry(code=code, message=error), Outcome.unsure(code=code, message=error)
            report = Results(outcomes={one: unsure if one in in_doubt else retry for one in entry_ids})
        delivered, failed = has_delivered(report), failure_of(report) is not None
        self._meter.sent(self._channel, steady_seconds() - started, delivered=delivered, failed=failed)
        return report
