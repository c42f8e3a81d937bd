"""The HTTP sink on real sockets: what it makes of everything that can come back."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import OutcomeKind
from carrick.sinks.sink import Refused, Report, Results
from carrick.testing.samples import claimed
from tests.receivers import (
    Line,
    Reply,
    Request,
    answering,
    chunked,
    endless,
    head,
    raw,
    resetting,
    run,
    silent,
    verdict,
)
from tests.unit.sinks.sending import (
    ALL_DELIVERED,
    delivery,
    kinds,
    report_on,
    sending,
    sent_by,
    unavailable,
)

pytestmark = pytest.mark.filterwarnings("error")


TOO_LARGE = b'{"error": "too_large"}'

# Answers


def test_an_answer_in_chunks_is_read() -> None:
    text = verdict(1)
    assert report_on(chunked(text[:5], text[5:9], text[9:])) == ALL_DELIVERED


def test_a_packed_answer_is_read() -> None:
    assert report_on(answering(200, gzip.compress(verdict(1)), headers={"Content-Encoding": "gzip"})) == ALL_DELIVERED


def test_an_answer_without_a_length_is_read_to_its_end() -> None:
    assert report_on(raw(head(200, {}) + verdict(1))) == ALL_DELIVERED


def test_each_event_has_its_own_result() -> None:
    errors: list[dict[str, Any]] = [
        {"event_id": str(UUID(int=2)), "error": "bad"},
        {"event_id": str(UUID(int=3)), "error": "", "retryable": True},
    ]
    report = report_on(answering(200, verdict(0, 1, 2, errors)), entries=[claimed(n) for n in (1, 2, 3)])
    assert kinds(report) == {1: OutcomeKind.DELIVERED, 2: OutcomeKind.REJECTED, 3: OutcomeKind.RETRY}


NO_SUCCESSES: dict[str, tuple[Reply, str]] = {
    "a page": (answering(200, b"<html>Welcome!</html>", headers={"content-type": "text/html"}), "unexpected_answer"),
    "other JSON": (answering(200, b'{"status":"ok"}'), "unexpected_answer"),
    "wrong counts": (answering(200, verdict(2)), "unexpected_answer"),
    "nothing": (answering(204), "unexpected_answer"),
    "a bomb": (
        answering(200, gzip.compress(b" " * 50_000_000), headers={"content-encoding": "gzip"}),
        "unexpected_answer",
    ),
    "an endless page": (endless(), "unexpected_answer"),
    "cut": (answering(200, verdict(1)[:9], length=len(verdict(1)), keep=False), "broken_answer"),
    "cut in a chunk": (raw(head(200, {"transfer-encoding": "chunked"}) + b"40\r\n{"), "broken_answer"),
    "no chunks": (raw(head(200, {"transfer-encoding": "chunked"}) + b"nonsense\r\n"), "broken_answer"),
    "not HTTP": (raw(b"220 mail.example ESMTP\r\n"), "broken_answer"),
    "endless headers": (raw(b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000), "broken_answer"),
    "no answer": (raw(b""), "disconnected"),
    "half a head": (raw(b"HTTP/1.1 200 O"), "disconnected"),
    "a reset": (resetting(), "disconnected"),
    "a reset in the answer": (resetting(head(200, {"content-length": "100"}) + b"{"), "broken_answer"),
    "a redirect": (answering(302, verdict(1), headers={"location": "http://portal.example/"}), "http_302"),
    "a permanent redirect": (answering(308, headers={"location": "/elsewhere"}), "http_308"),
    "switching": (raw(head(101, {"upgrade": "x", "connection": "upgrade"})), "http_101"),
}


@pytest.mark.parametrize(("reply", "code"), NO_SUCCESSES.values(), ids=NO_SUCCESSES.keys())
def test_what_is_no_verdict_is_never_a_success(reply: Reply, code: str) -> None:
    report, receiver = sent_by(reply)
    found = unavailable(report)
    assert (found.code, found.connection, found.unsure) == (code, False, False)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("name", ["cut", "not HTTP", "no answer", "a reset", "a page", "a redirect"])
def test_what_may_have_taken_effect_is_unsure_where_a_repetition_counts(name: str) -> None:
    assert unavailable(report_on(NO_SUCCESSES[name][0], idempotent=False)).unsure


@pytest.mark.parametrize(
    "first",
    [b"", b"HTTP/1.1 200 OK\r\nx-slow: ", head(200, {"content-length": "100"}) + b'{"accepted"'],
    ids=["nothing", "half a head", "half a body"],
)
def test_an_answer_that_does_not_come_in_time_is_a_timeout(first: bytes) -> None:
    found = unavailable(report_on(silent(first=first), timeout_seconds=0.1))
    assert (found.code, found.connection, found.seconds) == ("timeout", False, None)


def test_an_answer_that_drips_is_a_timeout() -> None:
    async def dripping(request: Request, line: Line) -> bool:
        await line.send(head(200, {"content-length": "1000000"}))
        while True:
            await line.send(b" ")
            await asyncio.sleep(0.01)

    assert unavailable(report_on(dripping, timeout_seconds=0.1)).code == "timeout"


def test_a_timeout_is_unsure_where_a_repetition_counts() -> None:
    assert unavailable(report_on(silent(), timeout_seconds=0.1, idempotent=False)).unsure


@pytest.mark.parametrize("status", [401, 429, 503])
@pytest.mark.parametrize("more", [silent, endless, resetting], ids=["silent", "endless", "reset"])
def test_a_status_counts_although_its_text_does_not_come(status: int, more: Callable[..., Reply]) -> None:
    async def reply(request: Request, line: Line) -> bool:
        await line.send(head(status, {"content-length": "10000000", "retry-after": "17"}))
        return await more()(request, line)

    found = unavailable(report_on(reply, timeout_seconds=0.2))
    assert (found.code, found.seconds) == (f"http_{status}", None if status == 401 else 17)


@pytest.mark.parametrize("status", [400, 404, 408, 413, 422, 425, 429, 500, 501, 502, 503, 504, 505])
def test_a_status_comes_through_as_it_is(status: int) -> None:
    report = report_on(answering(status, b"because"))
    codes = {report.code} if not isinstance(report, Results) else {o.code for o in report.outcomes.values()}
    assert codes == {f"http_{status}"}


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("more", [silent, endless, resetting], ids=["silent", "endless", "reset"])
def test_half_an_answer_is_nobodys_words(status: int, more: Callable[..., Reply]) -> None:
    async def reply(request: Request, line: Line) -> bool:
        await line.send(head(status, {"content-length": "10000000"}))
        return await more()(request, line)

    assert unavailable(report_on(reply, timeout_seconds=0.2)).code == f"http_{status}"


@pytest.mark.parametrize("value", ["30", "Wed, 04 Mar 2020 05:07:07 GMT"])
def test_both_forms_of_retry_after_come_through(value: str) -> None:
    headers = {"Retry-After": value, "Date": "Wed, 04 Mar 2020 05:06:37 GMT"}
    assert unavailable(report_on(answering(429, headers=headers))).seconds == 30


def test_a_refusal_before_the_body_was_read_comes_through() -> None:
    async def story() -> Report:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head(413, {"content-length": str(len(TOO_LARGE)), "connection": "close"}) + TOO_LARGE)
            await writer.drain()
            writer.write_eof()
            while await reader.read(65536):
                pass
            writer.transport.abort()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server, sending(server.sockets[0].getsockname()[1], compression="none") as sink:
            return await sink.deliver(delivery([claimed(payload=b'"' + b"x" * 5_000_000 + b'"')]))

    report = run(story())
    assert isinstance(report, Refused)
    assert report.too_large
