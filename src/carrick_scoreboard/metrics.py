"""The scoreboard's metrics for Prometheus: how it stands with OSM, what devices get, and the way of the points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from carrick.entry import Batch
from carrick.errors import StoreError
from carrick.outbox.store import Store
from carrick.relay.meter import Tally
from carrick_scoreboard.osm.limits import RateLimitState
from carrick_scoreboard.osm.standing import KnownBudget
from carrick_scoreboard.patrols.patrols import Served
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.store.scores import CHANNEL

log = logging.getLogger("carrick.ops")

Kept = TypeVar("Kept")

CALL_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30)
SYNC_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
MOST_LABELLED = 200
"""So many users and so many sections have figures of their own: those that were heard of last."""
AGE_BUCKETS = (10, 60, 300, 600, 900, 1_800, 3_600, 6 * 3_600, 86_400, 8 * 86_400)


class ScoreboardMetrics:
    """All metrics of one process: the meter of the OSM client, the standing, the patrols and the sockets."""

    def __init__(self, blocks: Blocks, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.registry = CollectorRegistry()
        self._budgets = Budgets(now)
        self.registry.register(self._budgets)
        self.registry.register(ServiceBlocked(blocks))
        self.registry.register(Endings(blocks))
        self._calls = Histogram(
            "osm_api_request_duration_seconds",
            "How long calls of OSM took.",
            ["endpoint", "status_code"],
            buckets=CALL_BUCKETS,
            registry=self.registry,
        )
        self._block_events = self._counter("osm_block_events", "How often OSM has blocked the application.")
        self._fetches = self._counter("patrol_fetch", "OSM was asked for a section's scores.", "result")
        self._hits = self._counter("patrol_cache_hits", "Answers to devices that waited for nobody.")
        self._misses = self._counter("patrol_cache_misses", "Answers to devices that waited for OSM.")
        self._stale = self._counter("patrol_stale_served", "Answers to devices with scores that should be fresher.")
        states = self._counter("patrol_rate_limit_state", "Answers to devices by rate limit state.", "state")
        self._by_state = {state: states.labels(state.value) for state in RateLimitState}
        self._errors = self._counter("patrol_errors", "Devices that got no scores, by reason.", "error")
        self._ages = Histogram(
            "patrol_cache_age_seconds",
            "Age of the scores when they were served.",
            buckets=AGE_BUCKETS,
            registry=self.registry,
        )
        self._term_ends = Gauge(
            "osm_term_end_timestamp_seconds",
            "When the section's term ends, since 1970; 0 without a term.",
            ["section_id"],
            registry=self.registry,
        )
        self._sections: dict[int, float] = {}
        self._connected = Gauge("devices_connected", "Devices that listen for changes.", registry=self.registry)

    def called(self, endpoint: str, status: str, seconds: float) -> None:
        """A call of OSM is over."""
        self._calls.labels(endpoint, status).observe(seconds)

    def budget(self, user_id: int, known: KnownBudget) -> None:
        """What OSM said about a user's budget."""
        keep_latest(self._budgets.known, user_id, known)

    def user_block(self, user_id: int, until: datetime) -> None:
        """OSM limits a user until then."""
        keep_latest(self._budgets.limited, user_id, until)

    def term(self, section_id: int, end_date: date | None) -> None:
        """A section's term was looked up; None: it has none."""
        ends = 0.0 if end_date is None else datetime.combine(end_date, time.max, UTC).timestamp()
        self._term_ends.labels(str(section_id)).set(ends)
        for dropped in keep_latest(self._sections, section_id, ends):
            self._term_ends.remove(str(dropped))

    def block_event(self) -> None:
        """OSM has blocked the application."""
        self._block_events.inc()

    def fetched(self, result: str) -> None:
        """OSM was asked for a section."""
        self._fetches.labels(result).inc()

    def served(self, served: Served) -> None:
        """A device got scores."""
        (self._misses if served.waited else self._hits).inc()
        if served.scores.stale:
            self._stale.inc()
        self._ages.observe(served.age_seconds)
        self._by_state[served.scores.rate_limit_state].inc()

    def refused(self, error: str) -> None:
        """A device got none."""
        self._errors.labels(error).inc()

    def connected(self, devices: int) -> None:
        """So many devices listen now."""
        self._connected.set(devices)

    def text(self) -> bytes:
        """Everything in Prometheus's text format; asks the database for the block."""
        return generate_latest(self.registry)

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(name, documentation, labels, registry=self.registry)


def keep_latest(known: dict[int, Kept], key: int, value: Kept) -> list[int]:
    """Note a value under its key; the keys that had to go for it, those that were noted longest ago."""
    known.pop(key, None)
    known[key] = value
    dropped = list(known)[:-MOST_LABELLED]
    for one in dropped:
        del known[one]
    return dropped


class ScoreMeter:
    """The way of leaders' points: a meter of their relay, told also of what is handed in and what is forgotten."""

    def __init__(self, registry: CollectorRegistry, store: Store, stored: StoredCredentials) -> None:
        def counter(name: str, documentation: str, *labels: str) -> Counter:
            return Counter(name, documentation, labels, registry=registry)

        registry.register(ScoreDepths(store, stored))
        self._created = counter("score_outbox_entries_created", "Updates that leaders handed in.")
        processed = counter("score_outbox_entries_processed", "Updates that came to an end, by which.", "status")
        self._completed, self._failed = processed.labels("completed"), processed.labels("failed")
        self._retried = counter("score_outbox_retry", "Updates that failed and are tried again.")
        self._cleaned = counter(
            "user_credentials_cleaned", "Credentials that were forgotten because nobody needs them."
        )
        self._seconds = Histogram(
            "score_outbox_sync_duration_seconds",
            "How long it took to bring a batch of points to OSM.",
            buckets=SYNC_BUCKETS,
            registry=registry,
        )

    def created(self, updates: int) -> None:
        """A leader has handed in so many."""
        self._created.inc(updates)

    def cleaned(self, credentials: int) -> None:
        """So many were forgotten."""
        self._cleaned.inc(credentials)

    def claimed(self, channel: str, entries: int, seconds: float) -> None: ...

    def sent(self, channel: str, seconds: float, *, delivered: bool, failed: bool) -> None:
        self._seconds.observe(seconds)

    def finished(self, channel: str, tally: Tally, batch: Batch, now: datetime) -> None:
        self._completed.inc(tally.delivered)
        self._failed.inc(tally.dead)
        self._retried.inc(tally.retried)

    def lease_lost(self, channel: str, entries: int) -> None: ...


class ScoreDepths(Collector):
    """What the database counts cheaply: points that wait, and credentials that are good."""

    def __init__(self, store: Store, stored: StoredCredentials) -> None:
        self._store = store
        self._stored = stored

    def describe(self) -> Iterator[Metric]:
        yield from _depth_families()

    def collect(self) -> Iterator[Metric]:
        pending, active = _depth_families()
        try:
            waiting = sum(stats.pending_count for stats in self._store.stats() if stats.channel == CHANNEL)
            pending.add_metric([], waiting)
            active.add_metric([], self._stored.count_active())
        except StoreError as error:
            log.warning("metrics.store_failed", extra={"error": str(error)})
        yield from (pending, active)


def _depth_families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily("score_outbox_pending_entries", "Updates that wait for OSM, held ones included.", labels=[]),
        GaugeMetricFamily("user_credentials_active", "Users whose sign-in at OSM is good.", labels=[]),
    )


class Budgets(Collector):
    """The users' budgets as this process was last told, until they are renewed."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.known: dict[int, KnownBudget] = {}
        self.limited: dict[int, datetime] = {}

    def describe(self) -> Iterator[Metric]:
        yield from _families()

    def collect(self) -> Iterator[Metric]:
        total, remaining, reset, limited = _families()
        now = self._now()
        for user_id, known in list(self.known.items()):
            if known.reset_at is None or known.reset_at <= now:
                continue
            labels = [str(user_id)]
            if known.limit is not None:
                total.add_metric(labels, known.limit)
            if known.remaining is not None:
                remaining.add_metric(labels, known.remaining)
            reset.add_metric(labels, (known.reset_at - now).total_seconds())
        for user_id, until in list(self.limited.items()):
            if until > now:
                limited.add_metric([str(user_id)], 1)
        yield from (total, remaining, reset, limited)


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    labels = ["user_id"]
    return (
        GaugeMetricFamily("osm_rate_limit_total", "Calls that OSM gives the user in an hour.", labels=labels),
        GaugeMetricFamily("osm_rate_limit_remaining", "Calls that are left of them.", labels=labels),
        GaugeMetricFamily("osm_rate_limit_reset_seconds", "Seconds until they are renewed.", labels=labels),
        GaugeMetricFamily("osm_user_limited", "1 while OSM limits the user.", labels=labels),
    )


class ServiceBlocked(Collector):
    """Whether OSM has blocked the application, by the table: the same on every replica."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def describe(self) -> Iterator[Metric]:
        yield _blocked_family()

    def collect(self) -> Iterator[Metric]:
        family = _blocked_family()
        try:
            family.add_metric([], float(self._blocks.standing() is not None))
        except StoreError as error:
            log.warning("metrics.store_failed", extra={"error": str(error)})
        yield family


def _blocked_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("osm_service_blocked", "1 while OSM has blocked the application.", labels=[])


class Endings(Collector):
    """The calls that OSM will end, by the table: the same on every replica."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def describe(self) -> Iterator[Metric]:
        yield _endings_family()

    def collect(self) -> Iterator[Metric]:
        family = _endings_family()
        try:
            for ending in self._blocks.endings():
                family.add_metric([ending.endpoint], 0.0 if ending.ends_at is None else ending.ends_at.timestamp())
        except StoreError as error:
            log.warning("metrics.store_failed", extra={"error": str(error)})
        yield family


def _endings_family() -> GaugeMetricFamily:
    said = "When OSM will no longer answer a call, since 1970; 0 where it named no date."
    return GaugeMetricFamily("osm_deprecated_endpoint_timestamp_seconds", said, labels=["endpoint"])
