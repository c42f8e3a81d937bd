"""The verification steps of the forwarder's document, followed against real processes and the compatible view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from carrick.cli import run
from tests.postgres_server import drop_database, fresh_database, versions
from tests.scenario.cloud import read_log
from tests.scenario.processes import CloudProcess, ForwarderProcess, MoodyCloud, until
from tests.scenario.psql import psql

QUICK = {"OUTBOX_BACKOFF_CAP_SECONDS": "1", "INTERNAL_ADMIN_ENABLED": "true", "SYNC_INTERVAL_MS": "500"}


@pytest.fixture
def url() -> Iterator[str]:
    """A database made by `carrick migrate --compat`."""
    made = fresh_database(versions()[0], migrated=False)
    assert run(["migrate", "--compat", "--database", made]) == 0
    yield made
    drop_database(versions()[0], made)


def seed(url: str, count: int) -> None:
    """Rows as the document inserts them."""
    values = ",".join(
        f"(gen_random_uuid(), 'tenant-1', 'test.event', 'pending', NOW(), '{{\"n\": {n}}}')" for n in range(count)
    )
    psql(
        url,
        "INSERT INTO sync_outbox (id, tenant_id, event_type, status, next_attempt_at, payload_json) VALUES " + values,
    )


def statuses(url: str) -> dict[str, int]:
    rows = psql(url, "SELECT status, count(*) FROM sync_outbox GROUP BY 1")
    return {status: int(count) for status, count in (row.split("|") for row in rows)}


def test_basic_functionality(url: str, tmp_path: Path) -> None:
    with CloudProcess(tmp_path) as cloud, ForwarderProcess(tmp_path, url, cloud.url, **QUICK) as process:
        process.wait_ready()
        assert process.ask("GET", "/api/health")[0] == 200
        status, state = process.ask("GET", "/api/v1/sync/state")
        assert status == 200
        assert {
            "pending_count",
            "claimed_count",
            "dlq_count",
            "oldest_pending_age_seconds",
            "last_success_at",
            "last_error_at",
        } <= set(state)
        assert process.ask("POST", "/api/v1/sync/trigger")[0] == 200


def test_multi_replica_safety(url: str, tmp_path: Path) -> None:
    seed(url, 200)
    with ExitStack() as stack:
        cloud = stack.enter_context(CloudProcess(tmp_path))
        replicas = [
            stack.enter_context(
                ForwarderProcess(tmp_path, url, cloud.url, INSTANCE_ID=f"pod-{n}", OUTBOX_BATCH_SIZE="10", **QUICK)
            )
            for n in range(3)
        ]
        until(lambda: statuses(url) == {"acked": 200}, "the backlog is drained")
        taken = read_log(cloud.file)
        assert len(taken) == 200
        assert len({event.event_id for event in taken}) == 200
        assert all("relay.lease_lost" not in replica.log for replica in replicas)


def test_retry_behaviour_and_dlq_recovery(url: str, tmp_path: Path) -> None:
    seed(url, 5)
    with MoodyCloud(tmp_path, "fail") as cloud, ForwarderProcess(tmp_path, url, cloud.url, **QUICK) as process:
        failed = (
            "SELECT DISTINCT last_error_code FROM sync_outbox WHERE attempt_count > 0 AND last_error_code IS NOT NULL"
        )
        until(lambda: psql(url, failed) == ["http_500"], "attempts are counted, with the reason")
        assert process.ask("GET", "/api/v1/sync/state")[1]["gates"] == []
        until(lambda: statuses(url) == {"dlq": 5}, "all are in the DLQ")
        assert psql(url, "SELECT DISTINCT attempt_count FROM sync_outbox") == ["10"]
        assert len(process.ask("GET", "/api/v1/sync/dlq")[1]["entries"]) == 5
        cloud.feel("accept")
        assert process.ask("POST", "/api/v1/sync/redrive", {"allDlq": True, "spreadSeconds": 0}) == (
            200,
            {"redriven": 5, "dryRun": False},
        )
        until(lambda: statuses(url) == {"acked": 5}, "the redriven ones are delivered")
        assert psql(url, "SELECT DISTINCT attempt_count FROM sync_outbox") == ["1"]


def test_stuck_lease_recovery(url: str, tmp_path: Path) -> None:
    seed(url, 4)
    psql(url, "select count(*) from carrick.claim('cloud', 'dead-pod-1')")
    assert statuses(url) == {"claimed": 4}
    psql(url, "UPDATE sync_outbox SET lease_expires_at = NOW() - INTERVAL '1 minute' WHERE claimed_by = 'dead-pod-1'")
    with CloudProcess(tmp_path) as cloud:
        settings = {**QUICK, "SYNC_FORWARDER_MODE": "noop"}
        with ForwarderProcess(tmp_path, url, cloud.url, **settings) as process:
            process.wait_ready()
            assert process.ask("POST", "/api/v1/sync/unclaim-stuck", {"olderThanSeconds": 300}) == (
                200,
                {"unclaimed": 0, "expired_younger": 4},
            )
            process.stop()
            process.start(SYNC_FORWARDER_MODE="send")
            until(lambda: statuses(url) == {"acked": 4}, "another replica has delivered them")
