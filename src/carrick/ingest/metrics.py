"""The ingest's metrics for Prometheus, with the depths of the outbox channels beside them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from carrick.ingest.answers import Verdict
from carrick.ops.metrics import Depths
from carrick.outbox.store import Store

SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class IngestMetrics:
    """All metrics of one process."""

    def __init__(self, store: Store) -> None:
        self._registry = CollectorRegistry()
        events = Counter("carrick_ingest_events", "Events by what became of them.", ["result"], registry=self._registry)
        self._accepted, self._duplicated, self._rejected = map(events.labels, ("accepted", "duplicated", "rejected"))
        self._refused = Counter(
            "carrick_ingest_refused", "Requests that were refused as a whole.", ["reason"], registry=self._registry
        )
        self._seconds = Histogram(
            "carrick_ingest_batch_seconds",
            "From the head of a request to its answer, for batches that were taken.",
            buckets=SECONDS_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(Depths(store))

    def taken(self, verdict: Verdict, seconds: float) -> None:
        """A batch was answered for."""
        self._accepted.inc(verdict.accepted)
        self._duplicated.inc(verdict.duplicated)
        self._rejected.inc(verdict.rejected)
        self._seconds.observe(seconds)

    def refused(self, reason: str) -> None:
        """A request was refused."""
        self._refused.labels(reason).inc()

    def text(self) -> bytes:
        """Everything in Prometheus's text format; asks the store for its counts."""
        return generate_latest(self._registry)
