"""The HTTP sink on real sockets: what it sends, for whom, and in which time."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import logging
import subprocess
import sys
from typing import Any
from uuid import UUID

import msgspec
import pytest

from carrick.entry import Entry, Outcome, OutcomeKind
from carrick.errors import SettingsError
from carrick.settings import CloudSettings
from carrick.sinks import http
from carrick.sinks.bandwidth import Bandwidth
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Delivery, Refused, Report, Results, Unavailable
from carrick.steady import steady_seconds
from carrick.testing.samples import claimed
from tests.receivers import (
    Line,
    Request,
    accepting,
    answering,
    raw,
    receiving,
    run,
    silent,
)
from tests.unit.sinks.sending import (
    delivery,
    kinds,
    report_on,
    request_of,
    sending,
    sent_by,
    unavailable,
)

pytestmark = pytest.mark.filterwarnings("error")

NOW_MS = 1772600767891
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


# What is sent


def test_a_batch_is_posted_to_the_path_of_the_address() -> None:
    request = request_of(path="/in%20gest/batch?key=1")
    assert (request.method, request.target) == ("POST", "/in%20gest/batch?key=1")


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_claim_goes_side_by_side_only_where_the_destination_tells_repeats(idempotent: bool) -> None:
    sink = HttpSink(CloudSettings(url="http://127.0.0.1/batch"), edge_id="edge", idempotent=idempotent)
    assert sink.side_by_side is idempotent


def test_a_batch_says_what_it_is() -> None:
    headers = request_of(compression="none").headers
    assert headers["content-type"] == "application/json"
    assert "content-encoding" not in headers
    assert headers["user-agent"] == "carrick"


def test_a_batch_is_packed_with_gzip_unless_told_otherwise() -> None:
    request = request_of()
    assert request.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(request.body))["edge_id"] == "edge-1"


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("thread_bytes", [0, 10**9])
def test_every_payload_arrives_byte_by_byte(
    compression: str, thread_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "THREAD_BYTES", thread_bytes)
    payloads = [b'{ "odd" :\t[1 ,2] }', '{"☃":"\\u2603"}'.encode(), b'{"n":1e400}', b'{"a":1,"a":2}']
    entries = [claimed(number, payload=payload) for number, payload in enumerate(payloads, start=1)]
    request = request_of(entries=entries, compression=compression)
    parts = request.text.split(b'"payload":')[1:]
    assert [part[: len(payload) + 1] for part, payload in zip(parts, payloads, strict=True)] == [
        payload + b"}" for payload in payloads
    ]


def test_the_tenant_is_named_in_a_header() -> None:
    assert request_of(entries=[claimed(tenant_id="acme")]).headers["x-tenant-id"] == "acme"


@pytest.mark.parametrize("tenant", ["", "bür", "a\r\nx-forged: 1", " acme", "a\x00"])
def test_a_tenant_that_cannot_stand_in_a_header_is_only_in_the_body(tenant: str) -> None:
    request = request_of(entries=[claimed(tenant_id=tenant)])
    assert "x-tenant-id" not in request.headers
    assert "x-forged" not in request.headers
    assert request.batch["tenant_id"] == tenant


def test_every_request_has_its_own_id() -> None:
    async def story() -> list[str]:
        async with receiving() as receiver, sending(receiver.port) as sink:
            for _ in range(2):
                await sink.deliver(delivery([claimed()]))
            return [request.headers["x-request-id"] for request in receiver.requests]

    ids = run(story())
    assert len({UUID(text) for text in ids}) == 2


@pytest.mark.parametrize("before", [[], [None, "nonsense"]])
def test_a_request_goes_on_with_the_trace_of_the_first_entry_that_has_one(before: list[str | None]) -> None:
    traces = [*before, f"00-{TRACE}-00f067aa0ba902b7-01", f"00-{'a' * 32}-00f067aa0ba902b7-00"]
    entries = [claimed(number, traceparent=trace) for number, trace in enumerate(traces, start=1)]
    version, trace, span, flags = request_of(entries=entries).headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    assert span != "00f067aa0ba902b7"
    assert len(bytes.fromhex(span)) == 8


def test_a_request_without_a_trace_begins_none() -> None:
    assert "traceparent" not in request_of().headers


@pytest.mark.parametrize("entries", [1, 5])
def test_connections_are_used_again(entries: int) -> None:
    async def story() -> tuple[int, int]:
        async with receiving() as receiver, sending(receiver.port) as sink:
            for _ in range(entries):
                await sink.deliver(delivery([claimed()]))
            return len(receiver.requests), receiver.connections

    assert run(story()) == (entries, 1)


def test_a_cookie_of_the_other_side_is_not_sent_back() -> None:
    async def story() -> Request:
        portal = answering(200, b"welcome", headers={"set-cookie": "portal=1; path=/"})
        async with receiving(portal, accepting) as receiver, sending(receiver.port) as sink:
            for _ in range(2):
                await sink.deliver(delivery([claimed()]))
            return receiver.requests[1]

    assert "cookie" not in run(story()).headers


# Authentication


def test_without_authentication_no_credential_is_sent() -> None:
    headers = request_of(api_key="s3cret", hmac_secret="s3cret").headers
    assert not {"x-api-key", "x-edge-signature", "authorization"} & headers.keys()


def test_an_api_key_goes_in_its_header() -> None:
    assert request_of(auth_mode="api_key", api_key="s3cret").headers["x-api-key"] == "s3cret"


def test_of_a_list_of_keys_the_first_is_sent() -> None:
    assert request_of(auth_mode="api_key", api_key="new, old").headers["x-api-key"] == "new"


def signed(request: Request, secret: str, path: str) -> str:
    """The signature as the receiver computes it."""
    text = b".".join([request.headers["x-edge-timestamp"].encode(), b"POST", path.encode(), request.body])
    return "sha256=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_a_signature_covers_time_path_and_the_body_as_sent(compression: str) -> None:
    request = request_of(auth_mode="hmac", hmac_secret="s3cret", path="/a%20b?key=1", compression=compression)
    assert request.headers["x-edge-timestamp"] == str(NOW_MS)
    assert request.headers["x-edge-signature"] == signed(request, "s3cret", "/a%20b")


def test_of_a_list_of_secrets_the_first_signs() -> None:
    request = request_of(auth_mode="hmac", hmac_secret="new,old")
    assert request.headers["x-edge-signature"] == signed(request, "new", "/api/v1/edge/batch")


def test_no_two_requests_have_the_same_signature() -> None:
    async def story() -> set[str]:
        async with (
            receiving() as receiver,
            sending(receiver.port, auth_mode="hmac", hmac_secret="s3cret") as sink,
        ):
            for _ in range(3):
                await sink.deliver(delivery([claimed()]))
            return {request.headers["x-edge-signature"] for request in receiver.requests}

    assert len(run(story())) == 3


@pytest.mark.parametrize("field", ["api_key", "hmac_secret"])
def test_a_credential_that_cannot_be_sent_is_a_settings_error_that_hides_it(field: str) -> None:
    settings: dict[str, Any] = {"url": "http://127.0.0.1:1/", field: "s3cret\nx-forged: 1"}
    with pytest.raises(SettingsError) as error:
        HttpSink(CloudSettings(**settings), edge_id="edge-1")
    assert "s3cret" not in str(error.value)


# Entries of which no event can be made


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "headers",
    [["a"], "text", 7, {"a": "\ud800"}, nested(100_000)],
    ids=["a list", "a text", "a number", "half a surrogate pair", "nested"],
)
def test_headers_of_which_no_event_can_be_made_are_that_entrys_and_the_others_go_back_unspent(headers: Any) -> None:
    report, receiver = sent_by(entries=[claimed(1), claimed(2, headers=headers), claimed(3)])
    assert kinds(report) == {2: OutcomeKind.REJECTED}
    assert receiver.requests == []


def test_an_entry_whose_headers_are_no_object_says_so() -> None:
    report = report_on(entries=[claimed(1, headers=["a"])])
    assert isinstance(report, Results)
    (outcome,) = report.outcomes.values()
    assert outcome == Outcome.rejected("headers: ['a'] is no object; accepted: a JSON object", code="invalid_entry")


# Several tenants in one delivery


TENANTS = [claimed(1, tenant_id="a"), claimed(2, tenant_id="b"), claimed(3, tenant_id="a"), claimed(4, tenant_id="c")]

OWN_WORDS = b'{"error": "no"}'


def test_each_tenant_has_a_request_of_its_own_in_order() -> None:
    report, receiver = sent_by(accepting, entries=TENANTS)
    assert kinds(report) == dict.fromkeys((1, 2, 3, 4), OutcomeKind.DELIVERED)
    assert [request.batch["tenant_id"] for request in receiver.requests] == ["a", "b", "c"]
    assert all({event["tenant_id"] for event in r.batch["events"]} == {r.batch["tenant_id"]} for r in receiver.requests)


def test_a_tenant_that_got_through_counts_although_the_next_does_not() -> None:
    report, receiver = sent_by(accepting, answering(503), accepting, entries=TENANTS)
    assert kinds(report) == dict.fromkeys((1, 3), OutcomeKind.DELIVERED)
    assert len(receiver.requests) == 2


def test_a_tenant_that_got_through_counts_although_the_next_is_refused() -> None:
    report, receiver = sent_by(accepting, answering(400, OWN_WORDS), accepting, entries=TENANTS)
    assert kinds(report) == dict.fromkeys((1, 3), OutcomeKind.DELIVERED)
    assert len(receiver.requests) == 2


def test_what_may_have_arrived_after_another_tenant_got_through_is_unsure() -> None:
    report = report_on(accepting, raw(b""), accepting, entries=TENANTS, idempotent=False)
    assert kinds(report) == {1: OutcomeKind.DELIVERED, 3: OutcomeKind.DELIVERED, 2: OutcomeKind.UNSURE}


def test_a_failing_tenant_does_not_hold_up_the_others() -> None:
    report = report_on(answering(500), accepting, entries=TENANTS)
    retried, delivered = OutcomeKind.RETRY, OutcomeKind.DELIVERED
    assert kinds(report) == {1: retried, 3: retried, 2: delivered, 4: delivered}


@pytest.mark.parametrize("status", [503, 400])
def test_when_the_first_tenant_does_not_get_through_the_report_is_about_the_whole(status: int) -> None:
    report, receiver = sent_by(answering(status, OWN_WORDS), accepting, entries=TENANTS)
    assert isinstance(report, Unavailable | Refused)
    assert len(receiver.requests) == 1


# Time


@pytest.mark.parametrize("seconds", [-1, 0, http.LEAST_SECONDS])
@pytest.mark.parametrize("entries", [[claimed()], [claimed(1), claimed(2)]])
def test_with_too_little_time_nothing_is_sent(seconds: float, entries: list[Entry]) -> None:
    report, receiver = sent_by(accepting, entries=entries, seconds=seconds)
    found = unavailable(report)
    assert (found.code, found.seconds, found.unsure, receiver.connections) == ("lease_short", None, False, 0)


def test_the_lease_ends_a_request_before_its_own_timeout() -> None:
    assert unavailable(report_on(silent(), seconds=0.5, timeout_seconds=3600)).code == "timeout"


def test_a_later_tenant_is_not_started_when_the_time_is_up() -> None:
    async def story() -> tuple[Report, int]:
        late = Delivery(entries=TENANTS, deadline=steady_seconds() + 60)

        async def slowly(request: Request, line: Line) -> bool:
            msgspec.structs.force_setattr(late, "deadline", steady_seconds())  # the lease's time is over now
            return await accepting(request, line)

        async with receiving(slowly) as receiver, sending(receiver.port) as sink:
            return await sink.deliver(late), len(receiver.requests)

    report, requests = run(story())
    assert kinds(report) == dict.fromkeys((1, 3), OutcomeKind.DELIVERED)
    assert requests == 1


# Bandwidth


class FakeTime:
    """Sleeping moves the clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def bandwidth(self, bytes_per_second: int) -> Bandwidth:
        return Bandwidth(bytes_per_second, clock=self.clock, sleep=self.sleep)


def test_a_body_goes_out_at_the_limit_and_arrives_whole() -> None:
    time = FakeTime()
    entry = claimed(payload=b'"' + b"x" * 10_000 + b'"')
    request = request_of(entries=[entry], compression="none", bandwidth=time.bandwidth(1000))
    assert len(request.body) > 10_000
    assert time.now == pytest.approx((len(request.body) - 125) / 1000, abs=0.13)  # the last piece waits for no other


def test_all_deliveries_share_the_limit() -> None:
    time = FakeTime()

    async def story() -> int:
        async with (
            receiving() as receiver,
            sending(receiver.port, compression="none", bandwidth=time.bandwidth(1000)) as sink,
        ):
            await asyncio.gather(*(sink.deliver(delivery([claimed(n)])) for n in range(4)))
            return sum(len(request.body) for request in receiver.requests)

    total = run(story())
    assert time.now >= (total - 4 * 125) / 1000


def test_the_limit_of_the_settings_holds() -> None:
    report, _ = sent_by(accepting, bytes_per_second=1, entries=[claimed(1), claimed(2)])
    assert isinstance(report, Refused)
    assert (report.code, report.too_large) == ("too_slow", True)


def test_an_entry_alone_that_does_not_go_out_in_time_is_not_lost() -> None:
    assert unavailable(report_on(accepting, bytes_per_second=1)).code == "lease_short"


def test_time_spent_on_the_limit_is_not_the_destinations_fault() -> None:
    entry = claimed(payload=b'"' + b"x" * 2000 + b'"')
    report = report_on(accepting, entries=[entry], compression="none", bytes_per_second=4000, timeout_seconds=0.4)
    assert isinstance(report, Results)


# Secrets


def test_no_secret_shows_in_a_report_a_log_or_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def echoing(request: Request, line: Line) -> bool:
        echo = [request.target, request.headers["x-api-key"], request.headers["authorization"]]
        return await answering(403, repr(echo).encode())(request, line)

    async def story() -> str:
        async with receiving(echoing, raw(b""), answering(302, headers={"location": "/?s3cret"})) as receiver:
            url = f"http://me:s3cret-password@127.0.0.1:{receiver.port}/?token=s3cret-token"
            sink = HttpSink(CloudSettings(url=url, auth_mode="api_key", api_key="s3cret-key"), edge_id="edge-1")
            reports = [await sink.deliver(delivery([claimed()])) for _ in range(3)]
            await sink.close()
            reports.append(await sink.deliver(delivery([claimed()])))
            return repr([reports, sink, str(sink)])

    shown = run(story())
    assert "http_403" in shown
    assert shown.count("***") == 3
    assert base64.b64encode(b"me:s3cret-password").decode() not in shown
    assert "s3cret" not in shown
    assert "s3cret" not in repr([vars(record) for record in caplog.records])


def test_a_failure_is_logged_with_the_id_of_its_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="carrick.sinks")
    _, receiver = sent_by(answering(503))
    (record,) = caplog.records
    assert (record.message, vars(record)["code"]) == ("sink.http_failed", "http_503")
    assert vars(record)["request_id"] == receiver.requests[0].headers["x-request-id"]


def test_carrick_itself_does_not_import_aiohttp() -> None:
    check = "import sys, carrick, carrick.sinks.sink, carrick.testing; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
