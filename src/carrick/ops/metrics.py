"""Metrics for Prometheus: what the relay tells, and what the store counts cheaply when somebody asks."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections import Counter as Counted
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from carrick.entry import Batch, ChannelStats, Gate, Sign
from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.relay.meter import Tally
from carrick.state.beside import Health

log = logging.getLogger("carrick.ops")

CLAIM_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
LATENCY_BUCKETS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
DELIVERY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 3_600, 86_400)

CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

OUTCOMES = ("delivered", "retried", "dead", "released")

GAUGES = {
    "pending_count": "outbox_pending_total",
    "dead_count": "outbox_dlq_total",
    "oldest_pending_age_seconds": "oldest_pending_age_seconds",
    "backlog_bytes": "carrick_backlog_bytes",
}
"""Which gauge shows which field of the store's counts, as far as it may be an estimate."""


class Metrics:
    """All metrics of one process. It is the relay's meter."""

    def __init__(self, store: Store) -> None:
        self._registry = CollectorRegistry()
        self._known: set[str] = set()
        self._claim_seconds = Histogram(
            "carrick_claim_seconds",
            "How long claims took.",
            ["channel"],
            buckets=CLAIM_BUCKETS,
            registry=self._registry,
        )
        self._batch_latency = Histogram(
            "sync_batch_latency_ms",
            "How long calls of the destination took, in milliseconds.",
            ["channel"],
            buckets=LATENCY_BUCKETS_MS,
            registry=self._registry,
        )
        self._success = Counter(
            "sync_send_success",
            "Calls of the destination that delivered something.",
            ["channel"],
            registry=self._registry,
        )
        self._failure = Counter(
            "sync_send_failure",
            "Calls of the destination in which something failed, or that nobody answered.",
            ["channel"],
            registry=self._registry,
        )
        self._lease_lost = Counter(
            "carrick_lease_lost",
            "Entries whose lease moved on while they were on their way.",
            ["channel"],
            registry=self._registry,
        )
        self._entries = Counter(
            "carrick_entries", "Entries by what became of them.", ["channel", "outcome"], registry=self._registry
        )
        self._delivery = Ages("carrick_delivery_seconds", "From put to delivered.", DELIVERY_BUCKETS)
        self._registry.register(self._delivery)
        self._registry.register(Depths(store))

    def claimed(self, channel: str, entries: int, seconds: float) -> None:
        if channel not in self._known:
            self._begin(channel)
        self._claim_seconds.labels(channel).observe(seconds)

    def _begin(self, channel: str) -> None:
        """Every counter of the channel is there from its first claim on: Prometheus does not see what begins with 1."""
        self._known.add(channel)
        for counter in (self._success, self._failure, self._lease_lost):
            counter.labels(channel)
        for outcome in OUTCOMES:
            self._entries.labels(channel, outcome)

    def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None:
        if delivered:
            self._success.labels(channel).inc()
        if failed:
            self._failure.labels(channel).inc()
        self._batch_latency.labels(channel).observe(seconds * 1000)

    def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None:
        for outcome in OUTCOMES:
            if count := getattr(tally, outcome):
                self._entries.labels(channel, outcome).inc(count)
        if tally.delivered == len(batch):
            self._delivery.observe(channel, ((now - entry.created_at).total_seconds() for entry in batch))

    def lease_lost(self, channel: str, entries: int) -> None:
        self._lease_lost.labels(channel).inc(entries)

    def add_state(self, health: Callable[[], Health]) -> None:
        """Tell how shared state stands, too."""
        self._registry.register(StateHealth(health))

    def text(self) -> bytes:
        """Everything in Prometheus's text format; asks the store for its counts."""
        return generate_latest(self._registry)


class Ages(Collector):
    """A histogram that takes a batch of values at once."""

    def __init__(self, name: str, documentation: str, bounds: tuple[float, ...]) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = bounds
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(bounds) + 1))
        self._sums: defaultdict[str, float] = defaultdict(float)

    def observe(self, channel: str, values: Iterable[float]) -> None:
        counts = self._counts[channel]
        for value in values:
            counts[bisect_left(self._bounds, value)] += 1
            self._sums[channel] += value

    def describe(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(self._name, self._documentation, labels=["channel"])

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=["channel"])
        for channel, counts in self._counts.items():
            upto = 0
            buckets = []
            for bound, count in zip([*(str(float(bound)) for bound in self._bounds), "+Inf"], counts, strict=True):
                upto += count
                buckets.append((bound, upto))
            family.add_metric([channel], buckets, self._sums[channel])
        yield family


class Depths(Collector):
    """Gauges that the store counts: one cheap query for all channels, one for the gates, one for signs of life."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> Iterator[Metric]:
        yield from _gauges([], [], [])

    def collect(self) -> Iterator[Metric]:
        try:
            stats, gates, signs = self._store.stats(), self._store.gates(), self._store.signs()
        except StoreError as error:
            log.warning("metrics.store_failed", extra={"error": str(error)})
            yield GaugeMetricFamily("carrick_store_up", "Whether the database answers.", value=0)
            return
        yield GaugeMetricFamily("carrick_store_up", "Whether the database answers.", value=1)
        yield from _gauges(stats, gates, signs)


class StateHealth(Collector):
    """How shared state stands, as far as this process knows."""

    def __init__(self, health: Callable[[], Health]) -> None:
        self._health = health

    def collect(self) -> Iterator[Metric]:
        health = self._health()
        yield GaugeMetricFamily(
            "carrick_state_degraded", "1 while Redis is set up and does not work.", value=health.degraded
        )
        yield CounterMetricFamily("carrick_state_errors", "How often Redis has failed this process.", health.errors)


def _gauges(stats: Iterable[ChannelStats], gates: Iterable[Gate], signs: Iterable[Sign]) -> Iterator[Metric]:
    pending = GaugeMetricFamily("outbox_pending_total", "Entries that wait, held ones included.", labels=["channel"])
    claimed = GaugeMetricFamily("outbox_claimed_total", "Entries on their way.", labels=["channel"])
    dead = GaugeMetricFamily("outbox_dlq_total", "Entries that were given up.", labels=["channel"])
    oldest = GaugeMetricFamily("oldest_pending_age_seconds", "Age of the oldest entry that waits.", labels=["channel"])
    backlog = GaugeMetricFamily(
        "carrick_backlog_bytes", "Payload bytes that wait or are on their way.", labels=["channel"]
    )
    rate = GaugeMetricFamily(
        "carrick_delivered_per_second", "Deliveries of all processes, mean of a minute.", labels=["channel"]
    )
    relays = GaugeMetricFamily(
        "carrick_relays", "Relays with a sign of life: a lease, a rest, a duty.", labels=["channel"]
    )
    alive = Counted(what for what, _ in {(sign.what.removeprefix("janitor:"), sign.owner) for sign in signs})
    approximate = GaugeMetricFamily(
        "carrick_gauge_approximate", "1 for each gauge that is an estimate now.", labels=["channel", "gauge"]
    )
    for channel in stats:
        for field in channel.approximate:
            if field in GAUGES:
                approximate.add_metric([channel.channel, GAUGES[field]], 1)
        pending.add_metric([channel.channel], channel.pending_count)
        claimed.add_metric([channel.channel], channel.claimed_count)
        dead.add_metric([channel.channel], channel.dead_count)
        oldest.add_metric([channel.channel], channel.oldest_pending_age_seconds or 0)
        backlog.add_metric([channel.channel], channel.backlog_bytes)
        rate.add_metric([channel.channel], channel.delivered_per_second)
        relays.add_metric([channel.channel], alive[channel.channel])
    closed = GaugeMetricFamily("carrick_gate_closed", "Closed gates.", labels=["channel", "scope_kind", "reason"])
    counted: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for gate in gates:
        counted[gate.channel, scope_kind(gate.scope), reason_code(gate.reason)] += 1
    for labels, count in counted.items():
        closed.add_metric(list(labels), count)
    yield from (pending, claimed, dead, oldest, backlog, rate, relays, approximate, closed)


def scope_kind(scope: str) -> str:
    """`channel`, `tenant` or `principal`: names of tenants and people do not belong into labels."""
    return "channel" if scope == "*" else scope.partition(":")[0]


def reason_code(reason: str) -> str:
    """What stands before the colon, where that is a code; `other` for what a person wrote."""
    code = reason.partition(":")[0]
    return code if CODE.fullmatch(code) else "other"
