"""`carrick forward` as a process: events in over HTTP, out to a cloud endpoint, with everything an operator can ask."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from carrick.cli import run
from tests.gauges import count_nothing
from tests.ports import free_port
from tests.scenario.cloud import read_log
from tests.scenario.conftest import Shared
from tests.scenario.processes import CloudProcess, ForwarderProcess, MoodyCloud, until

EVENT = {"tenant_id": "farm-1", "event_type": "reading.taken", "payload": {"n": 1}}
QUICK = {"OUTBOX_BACKOFF_CAP_SECONDS": "1", "INTERNAL_ADMIN_ENABLED": "true"}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[CloudProcess]:
    """An endpoint that is up."""
    with CloudProcess(tmp_path) as process:
        yield process


def forwarder(folder: Path, url: str, cloud: CloudProcess, **environment: str) -> ForwarderProcess:
    return ForwarderProcess(folder, url, cloud.url, **{**QUICK, **environment})


def count(cloud: CloudProcess) -> int:
    return len({taken.event_id for taken in read_log(cloud.file)})


def test_with_nobody_listening_it_takes_events_and_delivers_when_somebody_does(tmp_path: Path) -> None:
    cloud = CloudProcess(tmp_path)
    with ForwarderProcess(tmp_path, "sqlite:///edge.db", cloud.url) as process:
        process.wait_ready()
        status, taken = process.ask("POST", "/api/v1/events", EVENT)
        assert (status, len(taken["ids"])) == (202, 1)
        state: dict[str, Any] = {}

        def rests() -> bool:
            """The gate is closed, and no probe is under way: each of them holds the entry for a moment."""
            state.update(process.ask("GET", "/api/v1/sync/state")[1])
            return bool(state["gates"]) and state["claimed_count"] == 0

        until(rests, "the gate is closed")
        assert (state["pending_count"], state["held_count"], state["claimed_count"]) == (1, 1, 0)
        assert state["gates"][0]["scope"] == "*"
        assert "connect" in state["gates"][0]["reason"]
        assert state["approximate"] == []
        count_nothing(tmp_path / "edge.db")
        assert "pending_count" in process.ask("GET", "/api/v1/sync/state")[1]["approximate"]

        def listed() -> list[tuple[str, int]]:
            entries = process.ask("GET", "/api/v1/sync/outbox")[1]["entries"]
            return [(line["status"], line["attempt_count"]) for line in entries]

        until(lambda: listed() == [("pending", 0)], "it waits, and no attempt is spent")
        with cloud:
            until(lambda: count(cloud) == 1, "the event arrived")
            until(lambda: not process.ask("GET", "/api/v1/sync/state")[1]["gates"], "the gate is open")
        assert process.stop() == 0


def test_it_stops_cleanly_with_work_left(shared: Shared, tmp_path: Path) -> None:
    cloud = CloudProcess(tmp_path)
    with ForwarderProcess(tmp_path, shared.url, cloud.url) as process:
        process.wait_ready()
        process.ask("POST", "/api/v1/events", [EVENT] * 10)
        assert process.stop() == 0
        assert "Traceback" not in process.log


def test_events_posted_to_it_arrive(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud) as process:
        process.wait_ready()
        events = [EVENT | {"payload": {"n": n}} for n in range(250)]
        status, taken = process.ask("POST", "/api/v1/events", events)
        assert (status, len(set(taken["ids"]))) == (202, 250)
        until(lambda: count(cloud) == 250, "all arrived")
        assert {event.event_id for event in read_log(cloud.file)} == set(taken["ids"])


def test_an_event_id_is_the_id_under_which_it_arrives(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    event_id = str(uuid4())
    with forwarder(tmp_path, shared.url, cloud) as process:
        process.wait_ready()
        for _ in range(2):
            status, taken = process.ask("POST", "/api/v1/events", EVENT | {"event_id": event_id})
            assert (status, taken["ids"]) == (202, [event_id])
        assert process.ask("POST", "/api/v1/events", EVENT | {"event_id": event_id, "payload": 2})[0] == 409
        until(lambda: count(cloud) == 1, "it arrived")
        assert [event.event_id for event in read_log(cloud.file)] == [event_id]


def test_the_same_idempotency_key_is_the_same_request(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud) as process:
        process.wait_ready()
        key = {"Idempotency-Key": "device-7:42"}
        first = process.ask("POST", "/api/v1/events", [EVENT, EVENT], **key)
        assert process.ask("POST", "/api/v1/events", [EVENT, EVENT], **key) == first
        assert process.ask("POST", "/api/v1/events", [EVENT], **key)[0] == 409
        until(lambda: count(cloud) == 2, "two arrived")


def test_one_bad_event_refuses_the_list_and_names_its_place(
    shared: Shared, tmp_path: Path, cloud: CloudProcess
) -> None:
    bad = [
        {"tenant_id": "t", "event_type": "e"},
        EVENT | {"priority": 5000},
        EVENT | {"event_type": ""},
        EVENT | {"occurred_at": "yesterday"},
        EVENT | {"key": "a\x00b"},
        EVENT | {"more": 1},
        EVENT | {"event_id": "not-a-uuid"},
    ]
    with forwarder(tmp_path, shared.url, cloud, SYNC_FORWARDER_MODE="noop") as process:
        process.wait_ready()
        for event in bad:
            status, problem = process.ask("POST", "/api/v1/events", [EVENT, event])
            assert (status, problem.get("index")) == (400, 1), problem
        assert process.ask("POST", "/api/v1/events", [])[0] == 400
        assert process.ask("POST", "/api/v1/events", [EVENT] * 1001)[0] == 400
        assert process.ask("GET", "/api/v1/sync/state")[1]["pending_count"] == 0


def test_what_only_the_database_can_tell_of_an_event_is_said_with_its_place(
    shared: Shared, tmp_path: Path, cloud: CloudProcess
) -> None:
    known = str(uuid4())
    bad = [
        (EVENT | {"payload": "x" * 1_048_576}, 400, "payload", "accepted: at most 1048576 bytes"),
        (EVENT | {"event_id": known, "key": "new"}, 400, "event_id", "entry with another key"),
        (EVENT | {"event_id": known, "key": "old", "tenant_id": "farm-2"}, 400, "event_id", "entry with another key"),
        (EVENT | {"key": "old", "payload": 2}, 409, "key", "other content"),
    ]
    with forwarder(tmp_path, shared.url, cloud, SYNC_FORWARDER_MODE="noop") as process:
        process.wait_ready()
        assert process.ask("POST", "/api/v1/events", EVENT | {"event_id": known, "key": "old"})[0] == 202
        for event, refused, field, says in bad:
            first = EVENT | {"event_id": str(uuid4())}
            status, problem = process.ask("POST", "/api/v1/events", [first, event, EVENT])
            assert (status, problem.get("field"), problem.get("index")) == (refused, field, 1), problem
            assert says in problem["message"]
        assert process.ask("GET", "/api/v1/sync/state")[1]["pending_count"] == 1


def test_names_that_no_database_can_hold_are_refused_alike(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud, SYNC_FORWARDER_MODE="noop") as process:
        process.wait_ready()
        for path in ("outbox", "dlq"):
            status, problem = process.ask("GET", f"/api/v1/sync/{path}?tenant=%00")
            assert (status, problem.get("field")) == (400, "tenant"), problem
        status, problem = process.ask("POST", "/api/v1/sync/redrive", {"allDlq": True, "reason": "a\x00"})
        assert (status, problem.get("field")) == (400, "reason"), problem


def test_a_full_backlog_is_told(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud, SYNC_FORWARDER_MODE="noop", OUTBOX_MAX_BACKLOG_BYTES="20") as process:
        process.wait_ready()
        assert process.ask("POST", "/api/v1/events", [EVENT, EVENT])[0] == 202
        status, problem = process.ask("POST", "/api/v1/events", EVENT)
        assert (status, problem["error"]) == (507, "backlog_full")


def test_noop_keeps_events_and_sends_none(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud, SYNC_FORWARDER_MODE="noop") as process:
        process.wait_ready()
        process.ask("POST", "/api/v1/events", [EVENT] * 5)
        zeros = {"claimed": 0, "delivered": 0, "retried": 0, "dead": 0, "released": 0}
        assert process.ask("POST", "/api/v1/sync/trigger") == (200, zeros)
        assert process.ask("GET", "/api/v1/sync/state")[1]["pending_count"] == 5
        assert count(cloud) == 0


def test_lists_are_paged_and_understand_other_names_of_states(
    shared: Shared, tmp_path: Path, cloud: CloudProcess
) -> None:
    with forwarder(tmp_path, shared.url, cloud, SYNC_FORWARDER_MODE="noop") as process:
        process.wait_ready()
        _, taken = process.ask("POST", "/api/v1/events", [EVENT] * 25)
        seen: list[str] = []
        path = "/api/v1/sync/outbox?status=pending&limit=10"
        while path:
            _, page = process.ask("GET", path)
            seen += [line["id"] for line in page["entries"]]
            path = page["next"] and f"/api/v1/sync/outbox?status=pending&limit=10&after={page['next']}"
        assert seen == taken["ids"]
        for name in ("acked", "dlq", "sending", "delivered", "dead", "claimed"):
            assert process.ask("GET", f"/api/v1/sync/outbox?status={name}") == (200, {"entries": [], "next": None})
        assert process.ask("GET", "/api/v1/sync/outbox?tenant=other")[1]["entries"] == []
        for query in ("status=lost", "limit=0", "limit=1001", "limit=x", "after=nonsense", "page=2"):
            assert process.ask("GET", f"/api/v1/sync/outbox?{query}")[0] == 400, query


def test_the_admin_api_does_not_exist_unless_enabled(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    paths = [
        ("GET", "/api/v1/sync/dlq"),
        ("POST", "/api/v1/sync/redrive"),
        ("POST", "/api/v1/sync/unclaim-stuck"),
        ("GET", "/api/v1/sync/diagnostics"),
    ]
    with forwarder(tmp_path, shared.url, cloud, INTERNAL_ADMIN_ENABLED="false") as process:
        process.wait_ready()
        assert [process.ask(*path)[0] for path in paths] == [404] * 4
        process.stop()
        process.start(INTERNAL_ADMIN_ENABLED="true", ADMIN_TOKEN="open-sesame")
        process.wait_ready()
        assert [process.ask(*path)[0] for path in paths] == [401] * 4
        assert process.ask("GET", "/api/v1/sync/dlq", Authorization="Bearer wrong")[0] == 401
        assert process.ask("GET", "/api/v1/sync/dlq", Authorization="Bearer open-sesame")[0] == 200
        assert "open-sesame" not in process.log


def test_dead_entries_are_listed_and_redriven(shared: Shared, tmp_path: Path) -> None:
    with MoodyCloud(tmp_path, "reject") as cloud:
        process = ForwarderProcess(tmp_path, shared.url, cloud.url, **QUICK)
        with process:
            process.wait_ready()
            _, taken = process.ask("POST", "/api/v1/events", [EVENT] * 3)
            until(lambda: process.ask("GET", "/api/v1/sync/state")[1]["dlq_count"] == 3, "three are dead")
            _, dead = process.ask("GET", "/api/v1/sync/dlq")
            assert {(line["dlq_reason"], line["attempt_count"]) for line in dead["entries"]} == {("rejected", 1)}
            assert process.ask("POST", "/api/v1/sync/redrive", {})[0] == 400
            everything = {"allDlq": True, "dryRun": True, "limit": 2}
            assert process.ask("POST", "/api/v1/sync/redrive", everything)[1]["redriven"] == 2
            assert process.ask("GET", "/api/v1/sync/state")[1]["dlq_count"] == 3
            cloud.feel("accept")
            one = {"ids": [taken["ids"][0]], "spreadSeconds": 0}
            assert process.ask("POST", "/api/v1/sync/redrive", one)[1]["redriven"] == 1
            assert process.ask("POST", "/api/v1/sync/redrive", {"allDlq": True, "spreadSeconds": 0})[1]["redriven"] == 2
            until(lambda: process.ask("GET", "/api/v1/sync/state")[1]["pending_count"] == 0, "all went out")
            assert process.ask("GET", "/api/v1/sync/state")[1]["dlq_count"] == 0


def test_the_openapi_document_describes_what_is_there(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud) as process:
        process.wait_ready()
        status, described = process.ask("GET", "/api/openapi.json")
        assert status == 200
        assert {
            "/api/health",
            "/api/ready",
            "/api/v1/events",
            "/api/v1/sync/state",
            "/api/v1/sync/outbox",
            "/api/v1/sync/trigger",
            "/api/v1/sync/dlq",
            "/api/v1/sync/redrive",
            "/api/v1/sync/unclaim-stuck",
            "/api/v1/sync/diagnostics",
        } <= set(described["paths"])


def test_diagnostics_tell_what_the_cloud_says(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    with forwarder(tmp_path, shared.url, cloud, CLOUD_AUTH_MODE="api_key", CLOUD_API_KEY="hush") as process:
        process.wait_ready()
        status, found = process.ask("GET", "/api/v1/sync/diagnostics")
        assert status == 200
        assert found["handshake"]["reachable"]
        assert abs(found["handshake"]["clock_difference_seconds"]) < 60
        assert "hush" not in json.dumps(found)


def test_metrics_are_served_on_their_own_port(shared: Shared, tmp_path: Path, cloud: CloudProcess) -> None:
    port = free_port()
    with forwarder(tmp_path, shared.url, cloud, METRICS_PORT=str(port)) as process:
        process.wait_ready()
        process.ask("POST", "/api/v1/events", [EVENT] * 5)
        until(lambda: count(cloud) == 5, "all arrived")

        def metrics() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                return str(answer.read().decode())

        until(lambda: 'carrick_entries_total{channel="cloud",outcome="delivered"} 5.0' in metrics(), "they count")
        for name in ("outbox_pending_total", "outbox_claimed_total", "outbox_dlq_total", "oldest_pending_age_seconds"):
            assert f'{name}{{channel="cloud"}} 0.0' in metrics()


def test_a_wrong_setting_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOUD_INGESTION_URL", raising=False)
    assert run(["forward"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "carrick: CLOUD_INGESTION_URL is not set; accepted: the address that batches are posted to"
    ]
