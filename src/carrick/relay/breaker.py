"""Closes a channel's gate when its destination fails, and opens it when the destination is back.

The gate is in the database, so all replicas hold and go on together, and a restart forgets nothing. Its backoff and its
half-open probe are the store's (`fail_gate`, `Batch.probe`); here is when they are used.
"""

from __future__ import annotations

import asyncio
import logging

from carrick.entry import Gate
from carrick.errors import StoreError
from carrick.outbox.channel import Channel
from carrick.outbox.store import Store
from carrick.relay.threads import Threads
from carrick.sinks.sink import Sink, Unavailable

log = logging.getLogger("carrick.relay")

KNOCK_SECONDS = 3.0
"""Between two bare connects while a gate is closed because there was no connection."""


class Breaker:
    """The gates of one channel, as its relay closes and opens them."""

    def __init__(self, store: Store, threads: Threads, channel: Channel, sink: Sink, bell: asyncio.Event) -> None:
        self._store = store
        self._threads = threads
        self._channel = channel
        self._sink = sink
        self._bell = bell
        self._knocking: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """A start is a reason to try at once: whoever started this may have repaired what was broken."""
        if gate := await self._threads.call(self._closed_by_failures):
            await self._threads.call(self._half_open, gate)

    async def look(self) -> None:
        """Knock at a gate that another relay has closed, and may not live to open."""
        if self._is_knocking:
            return
        gate = await self._threads.call(self._closed_by_failures)
        if gate is not None and not self._is_knocking:  # it may have failed here meanwhile
            self._start_knocking(gate.scope, away=False)

    async def failed(self, report: Unavailable, *, probe: bool) -> None:
        """Close the gate: for as long as the destination asked, else by the breaker's growing backoff."""
        reason = f"{report.code}: {report.message}"
        seconds = await self._threads.call(self._close, report, reason, probe)
        if seconds is None:
            return
        log.warning(
            "relay.gate_closed",
            extra={
                "channel": self._channel.name,
                "scope": report.scope,
                "reason": reason,
                "seconds": round(seconds, 1),
            },
        )
        if report.connection:
            self._start_knocking(report.scope, away=True)

    async def succeeded(self) -> None:
        """A probe came through: open the gate wholly, unless somebody asked for its closing meanwhile."""
        self._stop_knocking()
        await self._threads.call(self._store.open_gate, self._channel.name, "*", closed_by="failures")
        if await self._threads.call(self._gate, "*") is None:
            log.info("relay.gate_opened", extra={"channel": self._channel.name})
            self._bell.set()

    async def close(self) -> None:
        """Knock no more."""
        self._stop_knocking()

    def _close(self, report: Unavailable, reason: str, probe: bool) -> float | None:
        """For how many seconds the gate is closed; None when others closed it, which is left alone."""
        name = self._channel.name
        if report.seconds is None:
            cap = self._channel.backoff_cap_seconds
            seconds = self._store.fail_gate(name, report.scope, reason, cap_seconds=cap, probe=probe)
            closed_by = "failures"
        else:
            seconds = report.seconds
            self._store.close_gate(name, report.scope, seconds, reason, closed_by="destination")
            closed_by = "destination"
        gate = self._gate(report.scope)
        return seconds if gate is None or gate.closed_by == closed_by else None

    def _half_open(self, gate: Gate) -> None:
        """Let one entry try now, unless somebody asked for the closing meanwhile."""
        self._store.close_gate(gate.channel, gate.scope, 0, gate.reason, closed_by="failures")

    def _closed_by_failures(self) -> Gate | None:
        """The channel's gate, if neither a person nor the destination has asked for its closing."""
        gate = self._gate("*")
        return gate if gate is not None and gate.closed_by == "failures" else None

    def _gate(self, scope: str) -> Gate | None:
        """The gate, if it is closed."""
        return next((gate for gate in self._store.gates(self._channel.name) if gate.scope == scope), None)

    @property
    def _is_knocking(self) -> bool:
        return self._knocking is not None and not self._knocking.done()

    def _start_knocking(self, scope: str, *, away: bool) -> None:
        self._stop_knocking()
        self._knocking = asyncio.get_running_loop().create_task(self._knock(scope, away))

    def _stop_knocking(self) -> None:
        if self._knocking is not None:
            self._knocking.cancel()
            self._knocking = None

    async def _knock(self, scope: str, away: bool) -> None:
        """A returning network is noticed within seconds, however long the backoff: then one entry may try at once.

        `away`: the gate was closed because there was no connection. Else that has to be seen first: what was closed for
        an answer is not opened for a connection.
        """
        while True:
            await asyncio.sleep(KNOCK_SECONDS)
            if not await self._sink.reachable():
                away = True
                continue
            if not away:
                return
            try:
                gate = await self._threads.call(self._gate, scope)
                if gate is not None:
                    await self._threads.call(self._half_open, gate)
            except StoreError as error:
                log.warning("relay.knock_failed", extra={"channel": self._channel.name, "error": str(error)})
                continue
            self._bell.set()
            return
