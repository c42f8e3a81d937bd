"""`carrick ingest` as a process: what a forwarder and an operator see of it, and what a crash leaves."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import zstandard

from carrick import wiring
from carrick.cli import run
from tests.batches import PATH, batch, body, event, numbered, signed
from tests.ports import free_port
from tests.scenario.conftest import Shared
from tests.scenario.processes import ForwarderProcess, IngestProcess, until

DEDUPE = "/api/v1/edge/diagnostics/dedupe"


@pytest.fixture
def ingest(shared: Shared, tmp_path: Path) -> Iterator[IngestProcess]:
    """One that accepts everybody, on each database."""
    with IngestProcess(tmp_path, shared.url) as process:
        process.wait_ready()
        yield process
        assert "Traceback" not in process.log


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestProcess]:
    """One for many tests that wants signatures, under either of two secrets."""
    hmac = {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "first,second"}
    with IngestProcess(tmp_path_factory.mktemp("guarded"), "sqlite:///ingest.db", **hmac) as process:
        process.wait_ready()
        yield process
        assert "Traceback" not in process.log


def stored(process: IngestProcess, tenant: str = "farm-1", **headers: str) -> set[str]:
    status, found = process.ask("GET", f"{DEDUPE}?tenant_id={tenant}&limit=200", **headers)
    assert status == 200
    return {seen["event_id"] for seen in found["events"]}


def counts(answer: tuple[int, Any]) -> tuple[int, int, int, int]:
    status, verdict = answer
    return status, verdict["accepted"], verdict["duplicated"], verdict["rejected"]


def test_a_batch_is_taken_once(ingest: IngestProcess) -> None:
    sent = batch(*numbered(3))
    assert counts(ingest.ask("POST", PATH, sent)) == (200, 3, 0, 0)
    assert counts(ingest.ask("POST", PATH, sent)) == (200, 0, 3, 0)
    assert stored(ingest) == {"e-0", "e-1", "e-2"}


def test_bad_events_are_named_and_the_others_are_stored(ingest: IngestProcess) -> None:
    bad = [event("wrong", event_type=7), {"payload": 1}, event("foreign", tenant_id="farm-2")]
    status, verdict = ingest.ask("POST", PATH, batch(event("good"), *bad, event("good")))
    assert (status, verdict["accepted"], verdict["duplicated"], verdict["rejected"]) == (200, 1, 1, 3)
    assert [(error.get("event_id"), error.get("index")) for error in verdict["errors"]] == [
        ("wrong", None),
        (None, 2),
        ("foreign", None),
    ]
    assert stored(ingest) == {"good"}
    assert stored(ingest, "farm-2") == set()


REFUSED: dict[str, tuple[dict[str, str], bytes, int, str]] = {
    "not JSON": ({}, b"{", 400, "malformed"),
    "another tenant": ({"x-tenant-id": "farm-2"}, body(event()), 400, "malformed"),
    "another type": ({"Content-Type": "text/plain"}, body(event()), 415, "unsupported"),
    "another encoding": ({"Content-Encoding": "br"}, body(event()), 415, "unsupported"),
    "not compressed": ({"Content-Encoding": "gzip"}, body(event()), 400, "malformed"),
    "a gzip bomb": ({"Content-Encoding": "gzip"}, gzip.compress(b" " * 11_000_000), 413, "too_large"),
    "a zstd bomb": ({"Content-Encoding": "zstd"}, zstandard.compress(b" " * 11_000_000), 413, "too_large"),
    "too many bytes": ({}, b" " * 11_000_000, 413, "too_large"),
    "too many events": ({}, body(*numbered(1001)), 413, "too_large"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_whole_batch_is_refused_with_a_status_a_reason_and_a_line_in_the_log(
    case: str, guarded: IngestProcess
) -> None:
    headers, content, status, error = REFUSED[case]
    answer, problem = guarded.ask("POST", PATH, content, **headers, **signed(content, "first"))
    assert (answer, problem["error"]) == (status, error)
    assert f'"reason": "{error}"' in guarded.log


def test_100_concurrent_copies_of_a_batch_are_answered_and_stored_once(shared: Shared, tmp_path: Path) -> None:
    sent = body(*numbered(100))
    with IngestProcess(tmp_path, shared.url) as process:
        process.wait_ready()
        with ThreadPoolExecutor(100) as threads:
            answers = list(threads.map(lambda _: counts(process.ask("POST", PATH, sent)), range(100)))
        assert {status for status, *_ in answers} == {200}
        assert sum(accepted for _, accepted, _, _ in answers) == 100
        assert sum(duplicated for _, _, duplicated, _ in answers) == 9900
        assert len(stored(process)) == 100
        store = wiring.open_store(shared.url)
        assert len(store.claim("events", "test", max_rows=1000)) == 100
        store.close()


def test_a_process_that_is_killed_within_a_batch_leaves_nothing_of_it(shared: Shared, tmp_path: Path) -> None:
    """It is stopped where its transaction waits for a lock that the test holds, and killed there."""
    hmac = {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "first"}
    sent = body(*numbered(50))
    headers = signed(sent, "first")
    with IngestProcess(tmp_path, shared.url, **hmac) as process, ThreadPoolExecutor(1) as threads:
        process.wait_ready()
        with held(shared.url, cut=True) as waited:
            asking = threads.submit(process.ask, "POST", PATH, sent, **headers)
            until(waited, "the batch waits for the lock")
            process.kill()
        with pytest.raises((OSError, ValueError)):
            asking.result()
        process.start()
        process.wait_ready()
        assert stored(process, **signed(b"", "first", path=DEDUPE, method="GET")) == set()
        assert counts(process.ask("POST", PATH, sent, **headers)) == (200, 50, 0, 0)
        store = wiring.open_store(shared.url)
        assert len(store.claim("events", "test", max_rows=1000)) == 50
        store.close()


class held:  # noqa: N801  reads as a sentence
    """Holds what a batch writes last: the channel's work on PostgreSQL, the file on SQLite. Tells whether one waits.

    `cut`: who waits loses its connection at the end; PostgreSQL would finish what a dead client has asked for.
    """

    def __init__(self, url: str, *, cut: bool = False) -> None:
        self._url = url
        self._cut = cut
        self._lock: Any = None

    def __enter__(self) -> Any:
        if self._url.startswith("sqlite"):
            self._lock = sqlite3.connect(self._url.removeprefix("sqlite:///"), isolation_level=None)
            self._lock.execute("begin immediate")
            since = time.monotonic()
            return lambda: time.monotonic() - since > 0.5  # a wait for the file cannot be seen from outside
        self._lock = psycopg.connect(self._url)
        self._lock.execute("lock table carrick.work in exclusive mode")
        return self._somebody_waits

    def _somebody_waits(self) -> bool:
        with psycopg.connect(self._url, autocommit=True) as observer:
            row = observer.execute("select count(*) from pg_locks where not granted").fetchone()
            return row is not None and row[0] > 0

    def __exit__(self, *_: object) -> None:
        if self._cut and not self._url.startswith("sqlite"):
            self._lock.execute("select pg_terminate_backend(pid) from pg_locks where not granted")
        self._lock.close()


@pytest.mark.parametrize(
    ("compression", "auth"),
    [
        ("gzip", {"CLOUD_AUTH_MODE": "none"}),
        ("zstd", {"CLOUD_AUTH_MODE": "api_key", "CLOUD_API_KEY": "new,old"}),
        ("gzip", {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "new,old"}),
        ("zstd", {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "new,old"}),
        ("none", {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "new,old"}),
    ],
)
def test_what_a_forwarder_takes_arrives(compression: str, auth: dict[str, str], tmp_path: Path) -> None:
    edge = {**auth, "CLOUD_COMPRESSION": compression, "INTERNAL_ADMIN_ENABLED": "true"}
    edge |= {name: "old" for name in ("CLOUD_API_KEY", "CLOUD_HMAC_SECRET") if name in auth}
    with IngestProcess(tmp_path, "sqlite:///ingest.db", **auth) as ingest:
        ingest.wait_ready()
        with ForwarderProcess(tmp_path, "sqlite:///edge.db", ingest.url, **edge) as forwarder:
            forwarder.wait_ready()
            event = {"tenant_id": "farm-1", "event_type": "x", "payload": {"n": 1}, "headers": {"device_id": "d-7"}}
            _, taken = forwarder.ask("POST", "/api/v1/events", [event] * 20)
            until(lambda: inbox_of(tmp_path / "ingest.db") == set(taken["ids"]), "all arrived")
            _, found = forwarder.ask("GET", "/api/v1/sync/diagnostics")
            assert found["handshake"]["answer"]["auth_mode"] == auth["CLOUD_AUTH_MODE"]
            assert found["handshake"]["answer"]["limits"]["max_events"] == 1000
            assert not found["gates"]


def inbox_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("select event_id from carrick_inbox")}


def test_a_signed_batch_is_taken_once_and_a_replay_is_refused(guarded: IngestProcess) -> None:
    sent = body(event("a"))
    headers = signed(sent, "second")
    assert counts(guarded.ask("POST", PATH, sent, **headers)) == (200, 1, 0, 0)
    status, problem = guarded.ask("POST", PATH, sent, **headers)
    assert (status, problem["error"]) == (401, "replayed")
    assert counts(guarded.ask("POST", PATH, sent, **signed(sent, "first"))) == (200, 0, 1, 0)


def test_a_replay_to_another_replica_is_refused(shared: Shared, tmp_path: Path) -> None:
    hmac = {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "first"}
    sent = body(event("a"))
    headers = signed(sent, "first")
    with IngestProcess(tmp_path, shared.url, **hmac) as one, IngestProcess(tmp_path, shared.url, **hmac) as other:
        one.wait_ready()
        other.wait_ready()
        assert one.ask("POST", PATH, sent, **headers)[0] == 200
        assert other.ask("POST", PATH, sent, **headers)[0] == 401


UNSENT = body(event("unsent"))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed(UNSENT, "wrong"),
        signed(UNSENT, "first", path="/elsewhere"),
        signed(UNSENT, "first", method="GET"),
        signed(body(event("other")), "first"),
        signed(UNSENT, "first", apart_seconds=-400),
        signed(UNSENT, "first", apart_seconds=4000),
    ],
    ids=["missing", "wrong secret", "altered path", "altered method", "altered body", "old", "future"],
)
def test_a_signature_that_does_not_fit_is_refused(headers: dict[str, str], guarded: IngestProcess) -> None:
    status, problem = guarded.ask("POST", PATH, UNSENT, **headers)
    assert (status, problem["error"]) == (401, "unauthorized")
    assert "unsent" not in inbox_of(guarded.folder / "ingest.db")
    assert "first" not in guarded.log


def test_what_is_remembered_is_shown_to_those_who_may_send(guarded: IngestProcess) -> None:
    assert guarded.ask("GET", f"{DEDUPE}?tenant_id=farm-1")[0] == 401
    own = signed(b"", "first", path=DEDUPE, method="GET")
    assert guarded.ask("GET", f"{DEDUPE}?tenant_id=farm-9", **own) == (200, {"tenant_id": "farm-9", "events": []})
    for query in ("", "tenant_id=a&limit=0", "tenant_id=a&limit=201", "tenant_id=a&more=1", "tenant_id=" + "x" * 256):
        assert guarded.ask("GET", f"{DEDUPE}?{query}", **own)[0] == 400, query


def test_a_tenant_that_no_database_can_hold_is_refused_by_name(ingest: IngestProcess) -> None:
    status, problem = ingest.ask("GET", f"{DEDUPE}?tenant_id=%00")
    assert (status, problem["error"], problem["field"]) == (400, "invalid_input", "tenant_id")


def test_more_batches_at_once_than_allowed_are_told_to_come_again(tmp_path: Path) -> None:
    with IngestProcess(tmp_path, "sqlite:///ingest.db", INGEST_MAX_IN_FLIGHT="1") as process:
        process.wait_ready()
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        with socket.create_connection(("127.0.0.1", process.port)) as slow:
            slow.sendall(head.encode())
            until(lambda: process.ask("POST", PATH, batch())[0] == 429, "the place is taken")
            request = urllib.request.Request(process.url, b"{}", {"Content-Type": "application/json"})
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.headers["Retry-After"] == "1"
            refused.value.close()
            assert process.ask("GET", "/api/health")[0] == 200
        until(lambda: process.ask("POST", PATH, batch())[0] == 200, "the place is free")


def test_strangers_hold_no_place_of_those_who_sign(tmp_path: Path) -> None:
    hmac = {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": "first", "INGEST_MAX_IN_FLIGHT": "1"}
    with IngestProcess(tmp_path, "sqlite:///ingest.db", **hmac) as process, ExitStack() as lines:
        process.wait_ready()
        signs = {"Content-Type": "application/json", **signed(b"garbage", "no secret of ours")}
        lines_of_head = "".join(f"{name}: {value}\r\n" for name, value in signs.items())
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n{lines_of_head}\r\n{{"
        for _ in range(20):
            line = lines.enter_context(socket.create_connection(("127.0.0.1", process.port), timeout=30))
            line.sendall(head.encode())
        sent = body(event("a"))
        assert counts(process.ask("POST", PATH, sent, **signed(sent, "first"))) == (200, 1, 0, 0)


def test_a_body_that_comes_too_slowly_is_given_up(tmp_path: Path) -> None:
    with IngestProcess(tmp_path, "sqlite:///ingest.db", INGEST_BODY_SECONDS="0.2") as process:
        process.wait_ready()
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        with socket.create_connection(("127.0.0.1", process.port), timeout=30) as slow:
            slow.sendall(head.encode() + b"{")
            assert b" 408 " in slow.recv(65536)
        assert '"reason": "too_slow"' in process.log


def test_a_full_channel_says_when_to_come_again(tmp_path: Path) -> None:
    with IngestProcess(tmp_path, "sqlite:///ingest.db", OUTBOX_MAX_BACKLOG_BYTES="30") as process:
        process.wait_ready()
        assert process.ask("POST", PATH, batch(event("a", payload="x" * 20)))[0] == 200
        status, problem = process.ask("POST", PATH, batch(event("b", payload="x" * 20)))
        assert (status, problem["error"]) == (503, "backlog_full")
        assert stored(process) == {"a"}


def test_without_its_database_it_is_not_ready_and_says_so(tmp_path: Path) -> None:
    with IngestProcess(tmp_path, "sqlite:///ingest.db") as process:
        process.wait_ready()
        with closing(sqlite3.connect(tmp_path / "ingest.db")) as connection:
            connection.execute("delete from carrick_migration where part = 'ingest'")
            connection.commit()
        status, problem = process.ask("GET", "/api/ready")
        assert (status, problem["error"]) == (503, "not_ready")
        assert process.ask("GET", "/api/health")[0] == 200


def test_what_happened_is_counted(shared: Shared, tmp_path: Path) -> None:
    port = free_port()
    with IngestProcess(tmp_path, shared.url, METRICS_PORT=str(port)) as process:
        process.wait_ready()
        process.ask("POST", PATH, batch(event("a"), event("a"), event("b", event_type=1)))
        process.ask("POST", PATH, b"{")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        for result in ("accepted", "duplicated", "rejected"):
            assert f'carrick_ingest_events_total{{result="{result}"}} 1.0' in text
        assert 'carrick_ingest_refused_total{reason="malformed"} 1.0' in text
        assert "carrick_ingest_batch_seconds_count 1.0" in text
        assert 'outbox_pending_total{channel="events"} 1.0' in text


def test_it_answers_what_is_under_way_when_it_stops(shared: Shared, tmp_path: Path) -> None:
    with IngestProcess(tmp_path, shared.url) as process, ThreadPoolExecutor(1) as threads:
        process.wait_ready()
        with held(shared.url) as waited:
            asking = threads.submit(process.ask, "POST", PATH, batch(event("a")))
            until(waited, "the batch waits for the lock")
            os.kill(process.pid, signal.SIGTERM)
        assert counts(asking.result()) == (200, 1, 0, 0)
        assert process.wait() == 0


def test_the_openapi_document_describes_what_is_there(ingest: IngestProcess) -> None:
    status, described = ingest.ask("GET", "/api/openapi.json")
    assert status == 200
    assert set(described["paths"]) >= {"/api/health", "/api/ready", PATH, DEDUPE}
    assert set(described["paths"][PATH]["post"]["responses"]) == {
        *("200", "400", "401", "403", "408", "413", "415", "429", "503")
    }


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"CLOUD_AUTH_MODE": "hmac"}, "CLOUD_HMAC_SECRET='' is not acceptable"),
        ({"CLOUD_AUTH_MODE": "api_key", "CLOUD_API_KEY": " , "}, "CLOUD_API_KEY='' is not acceptable"),
        ({"INGEST_RELAY_CHANNEL": "no such name"}, "INGEST_RELAY_CHANNEL: name: 'no such name' is no channel name"),
        ({"INGEST_RETENTION_DAYS": "0"}, "INGEST_RETENTION_DAYS='0' is not acceptable"),
        ({"INGEST_MAX_IN_FLIGHT": "none"}, "INGEST_MAX_IN_FLIGHT='none' is not acceptable"),
    ],
)
def test_a_wrong_setting_is_one_line(
    variables: dict[str, str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///ingest.db")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(["ingest"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"carrick: {said}")
