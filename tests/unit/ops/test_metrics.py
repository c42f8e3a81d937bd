"""Metrics in Prometheus's text format, under the promised names."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from carrick.entry import Outcome
from carrick.ops.metrics import Metrics
from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.relay.meter import Tally
from carrick.state.beside import Health
from carrick.testing.samples import sample
from tests.gauges import count_nothing
from tests.unit.relay.entries import NOW, batch, entry

PROMISED = {
    "outbox_pending_total",
    "outbox_claimed_total",
    "outbox_dlq_total",
    "oldest_pending_age_seconds",
    "sync_send_success_total",
    "sync_send_failure_total",
    "sync_batch_latency_ms_bucket",
    "carrick_claim_seconds_bucket",
    "carrick_delivery_seconds_bucket",
    "carrick_lease_lost_total",
    "carrick_gate_closed",
    "carrick_backlog_bytes",
}


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    path = tmp_path / "outbox.db"
    migrate(path)
    made = SqliteStore(path)
    made.declare(Channel(name="things"))
    return made


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels."""
    return {
        (found.name, *found.labels.values()): found.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for found in family.samples
    }


def test_every_promised_name_is_there(store: SqliteStore) -> None:
    metrics = Metrics(store)
    metrics.claimed("things", 1, 0.001)
    metrics.sent("things", 0.01, delivered=True, failed=False)
    metrics.finished("things", Tally(claimed=1, delivered=1), batch(entry(1)), NOW)
    metrics.lease_lost("things", 1)
    store.close_gate("things", "tenant:acme", 60, "http_503: later")
    assert {name for name, *_ in samples(metrics)} >= PROMISED


def test_depths_are_counted_when_asked(store: SqliteStore) -> None:
    metrics = Metrics(store)
    assert samples(metrics)["outbox_pending_total", "things"] == 0
    store.put_many([sample(), sample(), sample()])
    claimed = store.claim("things", "worker", max_rows=1)
    found = samples(metrics)
    assert (found["outbox_pending_total", "things"], found["outbox_claimed_total", "things"]) == (2, 1)
    store.finish(claimed.token, {claimed.entries[0].id: Outcome.rejected()})
    assert samples(metrics)["outbox_dlq_total", "things"] == 1


def test_gauges_that_are_estimates_are_named(store: SqliteStore, tmp_path: Path) -> None:
    store.put_many([sample(), sample()])
    assert not any(name == "carrick_gauge_approximate" for name, *_ in samples(Metrics(store)))
    count_nothing(tmp_path / "outbox.db")
    found = samples(Metrics(store))
    assert found["outbox_pending_total", "things"] == 2
    assert {tuple(labels) for name, *labels in found if name == "carrick_gauge_approximate"} == {
        ("things", "outbox_pending_total"),
        ("things", "oldest_pending_age_seconds"),
        ("things", "carrick_backlog_bytes"),
    }


def test_a_closed_gate_names_its_kind_and_reason_but_nobody(store: SqliteStore) -> None:
    store.close_gate("things", "tenant:acme", 60, "http_503: later")
    store.close_gate("things", "tenant:other", 60, "http_503: also")
    assert samples(Metrics(store))["carrick_gate_closed", "things", "http_503", "tenant"] == 2
    assert b"acme" not in Metrics(store).text()


def test_what_a_person_wrote_about_a_gate_is_no_label(store: SqliteStore) -> None:
    store.close_gate("things", "*", None, "Ann Smith asked for it, until Tuesday")
    assert samples(Metrics(store))["carrick_gate_closed", "things", "other", "channel"] == 1
    assert b"Ann" not in Metrics(store).text()


def test_the_time_from_put_to_delivered_is_counted_entry_by_entry(store: SqliteStore) -> None:
    metrics = Metrics(store)
    taken = batch(entry(1, age_seconds=0.5), entry(2, age_seconds=50), entry(3, age_seconds=10**6))
    metrics.finished("things", Tally(claimed=3, delivered=3), taken, NOW + timedelta(seconds=0.1))
    found = samples(metrics)
    assert found["carrick_delivery_seconds_bucket", "things", "1.0"] == 1
    assert found["carrick_delivery_seconds_bucket", "things", "60.0"] == 2
    assert found["carrick_delivery_seconds_count", "things"] == 3


def test_a_database_that_does_not_answer_is_told_and_nothing_breaks(store: SqliteStore) -> None:
    metrics = Metrics(store)
    store.close()
    assert samples(metrics)["carrick_store_up",] == 0


def test_shared_state_tells_whether_it_is_degraded_and_how_often_redis_failed(store: SqliteStore) -> None:
    health = Health(degraded=True, errors=3, problem="away")
    metrics = Metrics(store)
    metrics.add_state(lambda: health)
    assert samples(metrics)["carrick_state_degraded",] == 1
    assert samples(metrics)["carrick_state_errors_total",] == 3
    health = Health(degraded=False, errors=3, problem="")
    assert samples(metrics)["carrick_state_degraded",] == 0
