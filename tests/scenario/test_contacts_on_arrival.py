"""People in ingested events become contacts in the same transaction, for tenants that have turned it on."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrick.cli import run
from carrick.contacts.contacts import Contacts
from carrick.outbox.opening import open_store
from carrick.sinks.signing import signature
from carrick.wiring import migrate
from tests.scenario.conftest import Shared
from tests.scenario.processes import IngestProcess

BATCH = "/api/v1/edge/batch"
RESOLVE = "/api/v1/contacts/resolve"
ANN = {"email": "Ann@Example.org", "name": "Ann"}
ANN_ID = {"type": "email", "value": ANN["email"]}


@pytest.fixture
def url(shared: Shared) -> str:
    migrate(shared.url)
    return shared.url


@pytest.fixture
def ingest(url: str, tmp_path: Path) -> Iterator[IngestProcess]:
    with IngestProcess(tmp_path, url) as process:
        process.wait_ready()
        yield process


def batch(*payloads: Any, tenant: str = "acme", first: int = 0) -> dict[str, Any]:
    events = [
        {"event_id": f"e{number}", "event_type": "seen", "payload": payload}
        for number, payload in enumerate(payloads, first)
    ]
    return {"tenant_id": tenant, "edge_id": "edge-1", "events": events}


def told(url: str) -> list[str]:
    """The types of everything that waits in `events`, in order."""
    with closing(open_store(url)) as store:
        return [entry.event_type for entry in store.claim("events", "test", max_rows=1000)]


def test_a_contact_is_made_once_and_told_beside_its_events(ingest: IngestProcess, url: str) -> None:
    assert run(["contacts", "on", "acme", "--database", url]) == 0
    people = [{"contact": ANN}, {"contact": {"identities": [{"type": "email", "value": "ann@example.org"}]}}, {"n": 1}]
    status, answer = ingest.ask("POST", BATCH, batch(*people))
    assert (status, answer["accepted"]) == (200, 3)
    status, answer = ingest.ask("POST", BATCH, batch(*people))
    assert (status, answer["duplicated"]) == (200, 3)
    assert sorted(told(url)) == ["contact.created.v1", "seen", "seen", "seen"]
    with Contacts.connect(url) as contacts:
        found = contacts.find("acme", "email", "ann@example.org")
    assert found is not None
    assert found.traits == {"name": "Ann"}


def test_nothing_is_resolved_for_a_tenant_that_has_not_turned_it_on(ingest: IngestProcess, url: str) -> None:
    assert ingest.ask("POST", BATCH, batch({"contact": ANN}))[1]["accepted"] == 1
    assert told(url) == ["seen"]


@pytest.mark.parametrize(
    "contact", ["Ann", {}, {"email": 5}, {"phone": "call me"}, {"identities": []}, {"email": "a@b.c", "name": "\0"}]
)
def test_a_contact_that_makes_no_sense_is_told_and_its_event_stored(
    ingest: IngestProcess, url: str, contact: Any
) -> None:
    assert run(["contacts", "on", "acme", "--database", url]) == 0
    status, answer = ingest.ask("POST", BATCH, batch({"contact": contact}, {"contact": ANN}))
    assert (status, answer["accepted"], answer["rejected"]) == (200, 2, 0)
    assert sorted(told(url)) == ["contact.created.v1", "contact.refused.v1", "seen", "seen"]


def test_contacts_are_resolved_over_http_with_the_authentication_of_a_batch(url: str, tmp_path: Path) -> None:
    secret = "rotated, current"
    with IngestProcess(tmp_path, url, CLOUD_AUTH_MODE="hmac", CLOUD_HMAC_SECRET=secret) as ingest:
        ingest.wait_ready()
        body = json.dumps({"tenant_id": "acme", "identities": [{"type": "external_id", "value": "acct-1"}]}).encode()
        stamp = str(int(time.time() * 1000))

        def signed(of: bytes) -> dict[str, str]:
            text = b"%b.POST.%b.%b" % (stamp.encode(), RESOLVE.encode(), of)
            given = hmac.new(b"current", text, hashlib.sha256).hexdigest()
            return {"x-edge-timestamp": stamp, "x-edge-signature": f"sha256={given}"}

        assert ingest.ask("POST", RESOLVE, body)[0] == 401
        assert ingest.ask("POST", RESOLVE, body, **signed(body + b" "))[0] == 401
        status, first = ingest.ask("POST", RESOLVE, body, **signed(body))
        assert (status, first["created"], first["merged"]) == (200, True, [])
        again = body + b" "
        status, answer = ingest.ask("POST", RESOLVE, again, **signed(again))
        assert (status, answer["created"], answer["contact_id"]) == (200, False, first["contact_id"])
        assert told(url) == ["contact.created.v1"]


def signed_at(stamp: int, text: bytes) -> dict[str, str]:
    return {
        "x-edge-timestamp": str(stamp),
        "x-edge-signature": signature("current", stamp, RESOLVE, text, "POST"),
    }


def test_a_signed_resolve_is_done_once_so_that_old_traits_never_come_back(url: str, tmp_path: Path) -> None:
    def asking(plan: Any) -> bytes:
        return json.dumps({"tenant_id": "acme", "identities": [ANN_ID], "traits": {"plan": plan}}).encode()

    old, new, bad = asking("free"), asking("pro"), asking("x" * 20_000)
    stamp = int(time.time() * 1000)
    with IngestProcess(tmp_path, url, CLOUD_AUTH_MODE="hmac", CLOUD_HMAC_SECRET="current") as ingest:
        ingest.wait_ready()
        for text in (old, new):
            assert ingest.ask("POST", RESOLVE, text, **signed_at(stamp, text))[0] == 200
        status, answer = ingest.ask("POST", RESOLVE, old, **signed_at(stamp, old))
        assert (status, answer["error"]) == (401, "replayed")
        for _ in range(2):  # what was refused has changed nothing, and is refused for the same reason
            assert ingest.ask("POST", RESOLVE, bad, **signed_at(stamp, bad))[0] == 400
        assert '"reason": "replayed"' in ingest.log
        with Contacts.connect(url) as contacts:
            found = contacts.find("acme", "email", ANN["email"])
        assert found is not None
        assert found.traits == {"plan": "pro"}


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Content-Type": "text/plain"}, "accepted: application/json"),
        ({"Content-Encoding": "br"}, "accepted: gzip, zstd, identity"),
    ],
    ids=["type", "encoding"],
)
def test_a_resolve_that_nobody_can_read_is_unsupported(
    headers: dict[str, str], said: str, ingest: IngestProcess
) -> None:
    status, answer = ingest.ask("POST", RESOLVE, {"tenant_id": "acme", "identities": [ANN_ID]}, **headers)
    assert (status, answer["error"]) == (415, "unsupported")
    assert said in answer["message"]


def test_a_resolve_may_be_compressed_and_is_signed_as_it_is_sent(url: str, tmp_path: Path) -> None:
    sent = gzip.compress(json.dumps({"tenant_id": "acme", "identities": [ANN_ID]}).encode())
    stamp = int(time.time() * 1000)
    with IngestProcess(tmp_path, url, CLOUD_AUTH_MODE="hmac", CLOUD_HMAC_SECRET="current") as ingest:
        ingest.wait_ready()
        status, answer = ingest.ask("POST", RESOLVE, sent, **{"Content-Encoding": "gzip"}, **signed_at(stamp, sent))
        assert (status, answer["created"]) == (200, True)
