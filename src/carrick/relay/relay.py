"""claim → deliver → finish, nothing else: one channel's way out of the database.

Several batches are under way at once. Each is finished and followed by the next in one round trip; whoever finds
nothing more stops, and when nobody finds anything the relay rests until a bell, a due time or its poll wakes it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import msgspec

from carrick import tracing
from carrick.entry import Batch, Entry, Outcome, Rest, State
from carrick.errors import StoreError
from carrick.outbox.channel import Channel
from carrick.outbox.store import Store
from carrick.relay.breaker import Breaker
from carrick.relay.handover import Handover
from carrick.relay.lanes import Size, Width, lanes_of, widest
from carrick.relay.lease import Lease
from carrick.relay.meter import Meter, NoMeter, Tally, tally_of
from carrick.relay.moment import claimed_at
from carrick.relay.sharing import Sharing
from carrick.relay.split import Fit, Sending, complete, plain
from carrick.relay.threads import Threads
from carrick.sinks.sink import LeaseLost, Sink
from carrick.steady import steady_seconds

log = logging.getLogger("carrick.relay")

FIRST_PAUSE_SECONDS = 0.02
LONGEST_STORE_PAUSE_SECONDS = 30.0


MOST_AT_ONCE = 100
"""Entries that are claimed without a thread: reading them must not hold up the others in this loop."""


class AtOnce(Protocol):
    """Claims without a thread, or says None; Bells.claim is one."""

    async def __call__(
        self, channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: float | None
    ) -> Batch | None: ...


class RelaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a relay works. `poll_seconds` is only a net: entries normally wake the relay."""

    owner: str
    in_flight: int = 4
    poll_seconds: float = 60.0
    grace_seconds: float = 20.0


class Relay:
    """Delivers one channel to one sink until stopped. Any number of them, in any processes, may run side by side."""

    def __init__(
        self,
        store: Store,
        sink: Sink,
        channel: Channel,
        settings: RelaySettings,
        *,
        bell: asyncio.Event | None = None,
        at_once: AtOnce | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._store = store
        self._sink = sink
        self._channel = channel
        self._settings = settings
        self._bell = asyncio.Event() if bell is None else bell
        self._at_once = at_once
        self._meter: Meter = NoMeter() if meter is None else meter
        self._threads = Threads(settings.in_flight + 2)
        self._breaker = Breaker(store, self._threads, channel, sink, self._bell)
        self._sharing = Sharing()
        self._size = Size(channel.batch_rows, channel.batch_bytes)
        self._fit = Fit(channel.batch_bytes)
        self._width = Width(widest(channel, sink, settings.in_flight), settings.in_flight)
        self._places = asyncio.Semaphore(settings.in_flight)
        self._stopping = asyncio.Event()
        self._resting = False
        self._woken = False
        self._misses = 0
        self._workers: set[asyncio.Task[None]] = set()
        self.totals = Tally()

    @property
    def catching_up(self) -> bool:
        """Whether an old backlog shares the way out with fresh entries."""
        return self._sharing.catching_up

    def stop(self) -> None:
        """Claim nothing more; `run` ends when what is under way is over, or the grace time is."""
        self._stopping.set()
        self._bell.set()

    async def run(self) -> None:
        """Deliver until stopped."""
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await self._tell(self._breaker.begin())
            while not self._stopping.is_set():
                if len(self._workers) >= self._width.leases:
                    await asyncio.wait({*self._workers, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    continue
                self._bell.clear()
                await self._look()
        finally:
            stopped.cancel()
            await self._wind_up()

    async def once(self) -> Tally:
        """Deliver what is due now, and what becomes due meanwhile; what became of it. For use without `run`."""
        before = msgspec.structs.replace(self.totals)
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                batch, since = await self._claim()
                if batch:
                    self._start(batch, since)
                if not batch and not self._workers:
                    break
                if not batch or len(self._workers) >= self._width.leases:
                    await asyncio.wait({*self._workers, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            await self._wind_up()
        return _difference(self.totals, before)

    async def cycle(self) -> Tally:
        """One batch, now, beside whatever else is under way; what became of it."""
        batch, since = await self._claim()
        if not batch:
            return Tally()
        tally, _ = await self._handle(batch, since, claim_next=False)
        return tally

    async def _look(self) -> None:
        """Start a batch if there is one, else rest."""
        try:
            batch, since = await self._claim()
            if batch:
                self._misses = 0
                self._start(batch, since)
                await asyncio.sleep(0)  # the worker's turn, then the delivery's: it goes before our next question
                await asyncio.sleep(0)
                if len(batch) >= self._size.rows:
                    await self._stir()
            elif not self._stopping.is_set():
                await self._rest()
        except StoreError as error:
            self._misses += 1
            await self._pause(error)

    def _start(self, batch: Batch, since: float) -> None:
        worker = asyncio.get_running_loop().create_task(self._work(batch, since))
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _work(self, batch: Batch, since: float) -> None:
        """One batch after the other, until there is none."""
        while batch:
            _, following = await self._handle(batch, since, claim_next=True)
            if following is None:
                return
            batch, since = following

    async def _claim(self) -> tuple[Batch, float]:
        """What is due, and a moment before it was asked for."""
        since = steady_seconds()
        fresh = self._sharing.fresh_seconds()
        with tracing.span("claim", self._channel.name):
            batch = await self._claim_at_once(fresh)
            if batch is None:
                batch = await self._threads.call(
                    self._store.claim,
                    self._channel.name,
                    self._settings.owner,
                    **self._width.asks(self._size),
                    fresh_seconds=fresh,
                )
        self._note_claim(batch, since, fresh)
        return (batch, since) if batch or fresh is None else await self._claim()

    async def _claim_at_once(self, fresh: float | None) -> Batch | None:
        """For a relay that was just woken: mostly by one entry, for which the way to a thread and back is long."""
        if self._at_once is None or not self._woken:
            return None
        self._woken = False
        most = min(self._size.rows, MOST_AT_ONCE)
        return await self._at_once(
            self._channel.name, self._settings.owner, max_rows=most, max_bytes=self._size.bytes, fresh_seconds=fresh
        )

    def _note_claim(self, batch: Batch, since: float, fresh: float | None) -> None:
        self._sharing.claimed(batch, fresh)
        if fresh is None and self._width.has_lanes:
            self._width.claimed(self._size.deliveries(batch.entries))
        self._meter.claimed(self._channel.name, len(batch), steady_seconds() - since)

    async def _handle(
        self, batch: Batch, since: float, *, claim_next: bool
    ) -> tuple[Tally, tuple[Batch, float] | None]:
        """Deliver a batch and finish it; then the next batch, where it was asked for and may be."""
        lease = Lease(batch, since, lambda token, seconds: self._threads.call(self._store.renew, token, seconds))
        handover = Handover(
            self._sink,
            lease,
            lambda intent, ids: self._threads.call(self._store.note, batch.token, intent, ids),
            self._channel.name,
            self._meter,
        )
        sending = Sending(handover.send)
        try:
            await lease.keep_during(self._deliver(batch.entries, sending))
        except LeaseLost:
            return self._lost(batch), None
        except asyncio.CancelledError:  # the process stops: what cannot have arrived goes back
            await asyncio.shield(self._finish(batch, sending.outcomes | handover.doubts, lease, claim_next=False))
            raise
        self._learn(sending)
        if sending.unavailable is not None:
            await self._tell(self._breaker.failed(sending.unavailable, probe=batch.probe))
        elif batch.probe and sending.answered:
            await self._tell(self._breaker.succeeded())
        is_held_up = self._stopping.is_set() or sending.unavailable is not None
        goes_on = not is_held_up and len(self._workers) <= self._width.leases
        return await self._finish(batch, sending.outcomes, lease, claim_next=claim_next and goes_on)

    async def _deliver(self, entries: Sequence[Entry], sending: Sending) -> None:
        """In one piece, or side by side where a claim was wide enough for that. Wide or not, all share the places."""
        if not self._width.has_lanes:
            await sending.deliver(entries)
        elif self._size.deliveries(entries) > 1:
            await sending.deliver_side_by_side(lanes_of(entries, self._size), self._places)
        else:
            async with self._places:
                await sending.deliver(entries)

    def _learn(self, sending: Sending) -> None:
        """What was too large for the destination once is not sent in one piece again for a time."""
        before = self._fit.bytes
        self._fit.learn(sending)
        if self._fit.bytes != before:
            self._size = self._size._replace(bytes=self._fit.bytes)
            log.warning("relay.batch_resized", extra={"channel": self._channel.name, "bytes": self._fit.bytes})

    async def _tell(self, telling: Any) -> None:
        """The gate is a courtesy to the destination: if the database cannot be told, the entries still must be."""
        try:
            await telling
        except StoreError as error:
            log.warning("relay.gate_not_written", extra={"channel": self._channel.name, "error": str(error)})

    async def _finish(
        self, batch: Batch, outcomes: Mapping[UUID, Outcome], lease: Lease, *, claim_next: bool
    ) -> tuple[Tally, tuple[Batch, float] | None]:
        """What became of the batch is written down; then the next one, where it was asked for."""
        with tracing.span("finish", batch.channel, after=(entry.traceparent for entry in batch)):
            return await self._written(batch, outcomes, lease, claim_next=claim_next)

    async def _written(
        self, batch: Batch, outcomes: Mapping[UUID, Outcome], lease: Lease, *, claim_next: bool
    ) -> tuple[Tally, tuple[Batch, float] | None]:
        """Write down what became of the batch: again and again while the database fails, as long as the lease lasts.

        What cannot be written as it is, is written plainly: else all of the batch would come back, and be repeated.
        """
        given, is_plain = complete(batch, outcomes), False
        pause = FIRST_PAUSE_SECONDS
        while True:
            since = steady_seconds()
            try:
                if claim_next:
                    fresh = self._sharing.fresh_seconds()
                    states, following = await self._threads.call(
                        self._store.finish_and_claim,
                        batch.token,
                        given,
                        self._channel.name,
                        self._settings.owner,
                        **self._width.asks(self._size),
                        fresh_seconds=fresh,
                    )
                    self._note_claim(following, since, fresh)
                    done = self._count(batch, given, states, lease)
                    return done, ((following, since) if following else None)
                states = await self._threads.call(self._write, batch.token, given)
                return self._count(batch, given, states, lease), None
            except StoreError as error:
                if steady_seconds() + pause >= lease.ends:
                    log.error("relay.finish_failed", extra={"channel": batch.channel, "error": str(error)})
                    return self._lost(batch), None
                log.warning("relay.finish_again", extra={"channel": batch.channel, "error": str(error)})
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)
            except Exception as error:
                log.exception("relay.outcomes_refused", extra={"channel": batch.channel, "entries": len(batch)})
                if is_plain:
                    return self._lost(batch), None
                given, is_plain, claim_next = plain(batch, outcomes, error), True, False

    def _write(self, token: UUID, outcomes: Mapping[UUID, Outcome] | None) -> dict[UUID, State]:
        return self._store.finish_all(token) if outcomes is None else self._store.finish(token, outcomes)

    def _count(
        self, batch: Batch, outcomes: Mapping[UUID, Outcome] | None, states: Mapping[UUID, State], lease: Lease
    ) -> Tally:
        tally = tally_of(batch, outcomes, states)
        self.totals.add(tally)
        if tally.lost:
            self._meter.lease_lost(batch.channel, tally.lost)
        if tally.retried or tally.released:
            self._bell.set()  # they are due before the end of their lease, until which this relay may have gone to rest
        claimed = claimed_at(batch)
        assert claimed is not None
        self._meter.finished(batch.channel, tally, batch, claimed + timedelta(seconds=lease.age()))
        return tally

    def _lost(self, batch: Batch) -> Tally:
        tally = Tally(claimed=len(batch), lost=len(batch))
        self.totals.add(tally)
        self._meter.lease_lost(batch.channel, len(batch))
        return tally

    async def _rest(self) -> None:
        """Sleep until a bell, a due time or the poll. What is due but cannot be had is asked for ever less often."""
        poll = self._settings.poll_seconds
        rest = await self._threads.call(self._store.rest, self._channel.name, self._settings.owner, poll + 10)
        if rest.due_in is not None:
            await self._tell(self._breaker.look())
        self._resting = True
        try:
            async with asyncio.timeout(self._nap(rest)):
                await self._bell.wait()
            self._misses = 0
            self._woken = True
        except TimeoutError:
            self._misses += 1

    def _nap(self, rest: Rest) -> float:
        poll = self._settings.poll_seconds
        soonest = FIRST_PAUSE_SECONDS * 2 ** min(self._misses, 20)
        wanted = poll if rest.due_in is None else rest.due_in
        if rest.unseen:
            wanted = 0.0
        return min(poll, max(wanted, soonest if wanted <= 0 else 0.0))

    async def _stir(self) -> None:
        """Puts need not wake a relay that is awake."""
        if self._resting:
            self._resting = False
            await self._threads.call(self._store.stir, self._channel.name, self._settings.owner)

    async def _pause(self, error: StoreError) -> None:
        """The database does not answer: try again, ever less often."""
        pause = min(LONGEST_STORE_PAUSE_SECONDS, 2.0 ** min(self._misses, 10) / 2) * random.uniform(0.5, 1.0)  # noqa: S311
        log.warning(
            "relay.store_failed",
            extra={"channel": self._channel.name, "error": str(error), "again_in_seconds": round(pause, 1)},
        )
        try:
            async with asyncio.timeout(pause):
                await self._bell.wait()
        except TimeoutError:
            pass

    async def _wind_up(self) -> None:
        """Let what is under way end within the grace time; give back the rest, unspent where it cannot have arrived."""
        await self._breaker.close()
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=self._settings.grace_seconds)
            for worker in late:
                worker.cancel()
            if late:
                await asyncio.wait(late)
        if self._resting:
            await self._tell(self._stir())
        self._threads.close()


def _difference(after: Tally, before: Tally) -> Tally:
    fields = Tally.__struct_fields__
    return Tally(**{field: getattr(after, field) - getattr(before, field) for field in fields})
