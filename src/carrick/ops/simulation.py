"""A small world around the engine for `carrick demo`: producers, workers, and a destination that cannot be trusted."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from carrick.entry import Batch, ChannelStats, Entry, Outcome, State
from carrick.outbox.channel import Mode
from carrick.outbox.outbox import Outbox

CHANNELS = {"demo.readings": Mode.STREAM, "demo.invoices": Mode.ORDERED, "demo.scores": Mode.COALESCE}
TENANTS = ("harbour", "lighthouse", "mill", "quarry")
WORKERS = ("worker-1", "worker-2", "worker-3")

LEASE_SECONDS = 2
SECONDS_BETWEEN_PUTS = 0.1
SECONDS_BETWEEN_DEATHS = 6.0
SECONDS_BETWEEN_CLOSINGS = 5.0
SECONDS_CLOSED = 2.5
PRUNED_AT_ONCE = 5_000
RETRY_CHANCE, REJECT_CHANCE = 0.05, 0.004


class Balance(NamedTuple):
    """What came in and where it is. `put` includes what waited or was dead before the start."""

    put: int
    delivered: int
    dead: int
    waiting: int

    @property
    def adds_up(self) -> bool:
        return self.put == self.delivered + self.dead + self.waiting


class Destination:
    """Somebody else's system, as bad as in life: it fails now and then, and refuses an entry for good now and then."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def deliver(self, batch: Batch) -> dict[UUID, Outcome]:
        """One outcome per entry; the entries of a group that is folded into one delivery share theirs."""
        folded = CHANNELS[batch.channel] is Mode.COALESCE
        answers: dict[object, Outcome] = {}
        return {
            entry.id: answers.setdefault((entry.tenant_id, entry.group_key) if folded else entry.id, self._answer())
            for entry in batch
        }

    def _answer(self) -> Outcome:
        roll = self._chance.random()
        if roll < REJECT_CHANCE:
            return Outcome.rejected("the destination does not like this entry", code="422")
        if roll < REJECT_CHANCE + RETRY_CHANCE:
            return Outcome.retry(code="500", message="the destination failed")
        return Outcome.delivered()


class Abandoned(NamedTuple):
    """What a worker held when it died, and when that worker comes back to life."""

    worker: str
    batch: Batch
    wakes_at: float


class Simulation:
    """Puts, claims and finishes entries in threads until `stopping` is set. A thread that fails sets it too."""

    def __init__(self, outbox: Outbox, stopping: threading.Event, *, seed: int | None = None) -> None:
        self._outbox = outbox
        self._stopping = stopping
        self._chance = Random(seed)  # noqa: S311  chance in a simulation
        self._destination = Destination(self._chance)
        self._lock = threading.Lock()
        self._put = 0
        self._delivered = dict.fromkeys(CHANNELS, 0)
        self._retried = dict.fromkeys(CHANNELS, 0)
        self._events: deque[str] = deque(maxlen=8)
        self._abandoned: list[Abandoned] = []
        self._next_death = time.monotonic() + SECONDS_BETWEEN_DEATHS / 2

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work in threads while the block runs; afterwards every thread has ended. Raises what made a thread fail."""
        for name, mode in CHANNELS.items():
            self._outbox.channel(
                name,
                mode=mode,
                lease_seconds=LEASE_SECONDS,
                max_attempts=5,
                backoff_cap_seconds=2.0,
                retention_days=0.0,
            )
            while self._outbox.store.prune(name, max_rows=PRUNED_AT_ONCE):
                pass  # what a former demo delivered: its database is kept, and must not grow for ever
        self._put = sum(_present(stats) for stats in self.stats())
        jobs: list[Callable[[], None]] = [self._produce, self._close_gates, self._wake_the_dead]
        jobs += [lambda name=name: self._work(name) for name in WORKERS]  # type: ignore[misc]
        with ThreadPoolExecutor(max_workers=len(jobs)) as threads:
            futures = [threads.submit(job) for job in jobs]
            for future in futures:
                future.add_done_callback(lambda _: self._stopping.set())
            try:
                yield
            finally:
                self._stopping.set()
        for future in futures:
            future.result()

    def stats(self) -> list[ChannelStats]:
        """The demo's channels as the database sees them, in the demo's order."""
        found = {stats.channel: stats for stats in self._outbox.store.stats()}
        return [found[name] for name in CHANNELS]

    def delivered(self) -> dict[str, int]:
        """How many entries of each channel were delivered so far, as the workers saw it."""
        with self._lock:
            return dict(self._delivered)

    def retried(self) -> dict[str, int]:
        """How many deliveries of each channel failed so far and are tried again."""
        with self._lock:
            return dict(self._retried)

    def events(self) -> list[str]:
        """What happened lately, newest last."""
        with self._lock:
            return list(self._events)

    def balance(self) -> Balance:
        """Producers' and workers' own counts beside what the database still holds. Exact once nothing runs."""
        stats = self.stats()
        with self._lock:
            return Balance(
                put=self._put,
                delivered=sum(self._delivered.values()),
                dead=sum(each.dead_count for each in stats),
                waiting=sum(each.pending_count + each.claimed_count for each in stats),
            )

    def _produce(self) -> None:
        number = 0
        while not self._stopping.wait(SECONDS_BETWEEN_PUTS):
            number += 1
            entries = [
                self._new_entry(channel, number) for channel in CHANNELS for _ in range(self._chance.randint(1, 4))
            ]
            self._outbox.put_many(entries)
            with self._lock:
                self._put += len(entries)

    def _new_entry(self, channel: str, number: int) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "channel": channel,
            "tenant_id": self._chance.choice(TENANTS),
            "event_type": f"{channel}.changed",
            "payload": {"number": number, "value": self._chance.randint(0, 100)},
        }
        if CHANNELS[channel] is not Mode.STREAM:
            fields["group"] = f"group-{self._chance.randint(1, 10)}"
        if CHANNELS[channel] is Mode.COALESCE:
            fields |= {"delay": 0.5, "max_wait": 2.0}
        return fields

    def _work(self, worker: str) -> None:
        while not self._stopping.is_set():
            taken = [self._deliver_batch(worker, channel) for channel in CHANNELS]
            if not any(taken):
                self._stopping.wait(0.05)

    def _deliver_batch(self, worker: str, channel: str) -> bool:
        batch = self._outbox.claim(channel, owner=worker, max_rows=20)
        if not batch:
            return False
        self._notice_return(worker, batch)
        if self._dies():
            self._abandon(worker, batch)
            return True
        self._stopping.wait(self._chance.uniform(0.01, 0.05))
        outcomes = self._destination.deliver(batch)
        self._count(batch, self._outbox.finish(batch.token, outcomes), outcomes)
        return True

    def _count(self, batch: Batch, states: dict[UUID, State], outcomes: dict[UUID, Outcome]) -> None:
        with self._lock:
            self._delivered[batch.channel] += sum(state is State.DELIVERED for state in states.values())
            self._retried[batch.channel] += sum(state is State.PENDING for state in states.values())
        for entry in batch:
            if states.get(entry.id) is State.DEAD:
                self._tell(f"{batch.channel}: {_short(entry)} is dead ({outcomes[entry.id].message})")

    def _dies(self) -> bool:
        """Whether it is time for a worker to die; at most one does."""
        with self._lock:
            due = time.monotonic() >= self._next_death
            if due:
                self._next_death = time.monotonic() + SECONDS_BETWEEN_DEATHS
            return due

    def _abandon(self, worker: str, batch: Batch) -> None:
        with self._lock:
            self._abandoned.append(Abandoned(worker, batch, time.monotonic() + 2 * LEASE_SECONDS))
        self._tell(f"{batch.channel}: {worker} died with {_entries(len(batch))}; its lease ends in {LEASE_SECONDS} s")

    def _notice_return(self, worker: str, batch: Batch) -> None:
        taken = {entry.id for entry in batch}
        with self._lock:
            lost = [each for each in self._abandoned if each.batch.entries[0].id in taken]
        for each in lost:
            self._tell(f"{batch.channel}: the lease of {each.worker} ended; {worker} takes its entries over")

    def _wake_the_dead(self) -> None:
        """A worker that comes back long after its lease tries to finish its batch: the store must not let it."""
        while not self._stopping.wait(0.2):
            with self._lock:
                awake = [each for each in self._abandoned if each.wakes_at <= time.monotonic()]
                self._abandoned = [each for each in self._abandoned if each not in awake]
            for each in awake:
                states = self._outbox.finish_all(each.batch.token)
                self._count(each.batch, states, {})
                refused = len(each.batch) - len(states)
                self._tell(
                    f"{each.batch.channel}: {each.worker} woke up late; its finish of {_entries(refused)} had no effect"
                )

    def _close_gates(self) -> None:
        while not self._stopping.wait(SECONDS_BETWEEN_CLOSINGS - SECONDS_CLOSED):
            channel = self._chance.choice(list(CHANNELS))
            scope = self._chance.choice(["*", f"tenant:{self._chance.choice(TENANTS)}"])
            # A time to open by itself, in case this process is gone before it can open the gate.
            self._outbox.store.close_gate(
                channel, scope, 2 * SECONDS_CLOSED, "the destination asked for a pause", closed_by="destination"
            )
            self._tell(f"{channel}: gate {scope} closed; held entries spend no attempts")
            self._stopping.wait(SECONDS_CLOSED)
            self._outbox.store.open_gate(channel, scope)
            self._tell(f"{channel}: gate {scope} open")

    def _tell(self, event: str) -> None:
        with self._lock:
            self._events.append(f"{time.strftime('%H:%M:%S')} {event}")


def _present(stats: ChannelStats) -> int:
    return stats.pending_count + stats.claimed_count + stats.dead_count


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _short(entry: Entry) -> str:
    return f"entry …{str(entry.id)[-6:]} of {entry.tenant_id}"
