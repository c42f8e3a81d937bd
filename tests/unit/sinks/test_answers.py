"""What an answer means: the whole table, both forms of Retry-After, and everything that only looks like a success."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrick.entry import Outcome, OutcomeKind
from carrick.sinks.answers import LIMIT_BYTES, Answer, report_of, retry_after
from carrick.sinks.sink import Refused, Report, Results, Unavailable

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SENT = [UUID(int=1), UUID(int=2), UUID(int=3)]
EXPECTED = {"accepted": 3, "duplicated": 0, "rejected": 0, "errors": []}
DAY = 86_400


def report(status: int, body: bytes | None = b"", *, idempotent: bool = True, **headers: str) -> Report:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return report_of(Answer(status=status, headers=named, body=body), SENT, now=NOW, idempotent=idempotent)


def answered(value: Any) -> Report:
    return report(200, json.dumps(value).encode())


def fault(number: int, **fields: Any) -> dict[str, Any]:
    return {"event_id": str(UUID(int=number)), "error": "bad", **fields}


@pytest.mark.parametrize("status", [200, 201, 202, 207])
@pytest.mark.parametrize("counts", [(3, 0), (0, 3), (1, 2)])
def test_accepted_and_duplicated_events_are_delivered(status: int, counts: tuple[int, int]) -> None:
    body = json.dumps({**EXPECTED, "accepted": counts[0], "duplicated": counts[1]}).encode()
    assert report(status, body) == Results(outcomes=dict.fromkeys(SENT, Outcome.delivered()))


def test_an_event_with_an_error_is_rejected_and_the_others_are_delivered() -> None:
    outcome = Outcome.rejected("bad", code="rejected")
    assert answered({"accepted": 1, "duplicated": 1, "rejected": 1, "errors": [fault(2)]}) == Results(
        outcomes={SENT[0]: Outcome.delivered(), SENT[1]: outcome, SENT[2]: Outcome.delivered()}
    )


@pytest.mark.parametrize(
    ("retryable", "kind"),
    [(True, OutcomeKind.RETRY), (False, OutcomeKind.REJECTED), (None, OutcomeKind.REJECTED)],
)
def test_an_error_says_itself_whether_to_try_again(retryable: bool | None, kind: OutcomeKind) -> None:
    found = answered({**EXPECTED, "accepted": 2, "rejected": 1, "errors": [fault(1, retryable=retryable)]})
    assert isinstance(found, Results)
    assert found.outcomes[SENT[0]].kind is kind


def test_an_error_that_is_not_a_text_is_kept_as_json() -> None:
    found = answered({**EXPECTED, "accepted": 2, "rejected": 1, "errors": [fault(1, error={"path": "$.a"})]})
    assert isinstance(found, Results)
    assert found.outcomes[SENT[0]].message == '{"path":"$.a"}'


def test_fields_that_nobody_knows_yet_do_no_harm() -> None:
    assert isinstance(answered({**EXPECTED, "server": "x"}), Results)


NOT_SUCCESSES: dict[str, Any] = {
    "a list": [],
    "a number": 3,
    "nothing of the form": {"ok": True},
    "a count is missing": {"accepted": 3, "rejected": 0, "errors": []},
    "errors are missing": {"accepted": 3, "duplicated": 0, "rejected": 0},
    "a count is a text": {**EXPECTED, "accepted": "3"},
    "a count is a fraction": {**EXPECTED, "accepted": 2.5},
    "a count is true": {**EXPECTED, "accepted": 2, "duplicated": True},
    "a count is negative": {**EXPECTED, "accepted": 4, "duplicated": -1},
    "errors are null": {**EXPECTED, "errors": None},
    "too few are counted": {**EXPECTED, "accepted": 2},
    "too many are counted": {**EXPECTED, "accepted": 4},
    "rejected without an error": {**EXPECTED, "accepted": 2, "rejected": 1},
    "an error without rejected": {**EXPECTED, "errors": [fault(1)]},
    "an error about an event that was not sent": {**EXPECTED, "accepted": 2, "rejected": 1, "errors": [fault(9)]},
    "two errors about one event": {**EXPECTED, "accepted": 1, "rejected": 2, "errors": [fault(1), fault(1)]},
    "an error without an event": {**EXPECTED, "accepted": 2, "rejected": 1, "errors": [{"error": "bad"}]},
    "an error about no id": {**EXPECTED, "accepted": 2, "rejected": 1, "errors": [{**fault(1), "event_id": "x"}]},
}


@pytest.mark.parametrize("value", NOT_SUCCESSES.values(), ids=NOT_SUCCESSES.keys())
def test_a_2xx_that_does_not_fit_what_was_sent_is_no_success(value: Any) -> None:
    found = answered(value)
    assert isinstance(found, Unavailable)
    assert (found.code, found.seconds, found.connection, found.unsure) == ("unexpected_answer", None, False, False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><title>Welcome to the hotel</title></html>",
        json.dumps(EXPECTED).encode()[:-1],
        json.dumps(EXPECTED).encode() + b"x",
        b"\xff\xfe",
        b'{"accepted":"\xff"}',
        b"[" * 100_000,
        b'{"accepted":2,"duplicated":0,"rejected":1,"errors":[{"error":' + b"[" * 100_000,
        None,
    ],
    ids=["empty", "html", "cut", "more", "binary", "not utf-8", "deep", "deep in an error", "too long"],
)
def test_a_2xx_that_is_not_json_is_no_success(body: bytes | None) -> None:
    found = report(200, body)
    assert isinstance(found, Unavailable)
    assert found.code == "unexpected_answer"


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP", "deflate", "identity"])
def test_a_packed_answer_is_unpacked(encoding: str) -> None:
    text = json.dumps(EXPECTED).encode()
    packed = {"deflate": zlib.compress(text), "identity": text}.get(encoding, gzip.compress(text))
    assert isinstance(report(200, packed, content_encoding=encoding), Results)


PACKED_BADLY = {
    "a byte too long": ("gzip", gzip.compress(json.dumps(EXPECTED).encode().ljust(LIMIT_BYTES + 1))),
    "damaged": ("gzip", b"nonsense"),
    "cut": ("gzip", gzip.compress(json.dumps(EXPECTED).encode())[:-1]),
    "unknown": ("br", json.dumps(EXPECTED).encode()),
    "twice": ("gzip, gzip", gzip.compress(gzip.compress(json.dumps(EXPECTED).encode()))),
}


@pytest.mark.parametrize(("encoding", "body"), PACKED_BADLY.values(), ids=PACKED_BADLY.keys())
def test_an_answer_that_cannot_be_unpacked_within_the_limit_is_no_success(encoding: str, body: bytes) -> None:
    found = report(200, body, content_encoding=encoding)
    assert isinstance(found, Unavailable)
    assert found.code == "unexpected_answer"


def test_a_bomb_is_no_success_and_not_unpacked_any_further_than_the_limit() -> None:
    bomb = gzip.compress(b" " * (100 * LIMIT_BYTES), compresslevel=1)
    tracemalloc.start()
    try:
        found = report(200, bomb, content_encoding="gzip")
        assert tracemalloc.get_traced_memory()[1] < 10 * LIMIT_BYTES
    finally:
        tracemalloc.stop()
    assert isinstance(found, Unavailable)
    assert found.code == "unexpected_answer"


OWN = b'{"path": "$.events[1]"}'
STRANGERS: dict[str, bytes | None] = {
    "a page": b"<html><title>Sign in</title></html>",
    "text": b"Request Entity Too Large",
    "a list": b'[{"error": "no"}]',
    "a text in JSON": b'"no"',
    "null": b"null",
    "half an object": OWN[:-1],
    "more than an object": OWN + b"<p>",
    "no utf-8": b'{"error": "\xff"}',
    "nested": b'{"a":' * 100_000,
    "too long or broken off": None,
}


@pytest.mark.parametrize("status", [500, 501, 505])
@pytest.mark.parametrize("body", [OWN, b"", b" \r\n"])
def test_a_failing_destination_is_tried_again_and_spends_attempts(status: int, body: bytes) -> None:
    found = report(status, body, retry_after="20", content_type="text/html")
    text = body.decode().strip()
    message = f"the destination failed with {status}: {text}" if text else f"the destination failed with {status}"
    assert found == Results(
        outcomes=dict.fromkeys(SENT, Outcome.retry(after=20, code=f"http_{status}", message=message))
    )


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_batch_that_the_destination_refuses_in_its_own_words_is_split(status: int, encoding: str) -> None:
    body = gzip.compress(OWN) if encoding else OWN
    assert report(status, body, content_encoding=encoding, content_type="text/html") == Refused(
        code=f"http_{status}",
        message=f"the destination refused the batch with {status}: {OWN.decode()}",
        too_large=status == 413,
    )


@pytest.mark.parametrize("body", STRANGERS.values(), ids=STRANGERS.keys())
@pytest.mark.parametrize("status", [400, 409, 413, 415, 422, 500, 501, 505])
def test_what_a_stranger_says_closes_the_channel_and_spends_nothing(status: int, body: bytes | None) -> None:
    found = report(status, body, content_type="application/json", retry_after="7")
    assert isinstance(found, Unavailable)
    assert (found.code, found.seconds, found.unsure, found.connection) == (f"http_{status}", None, False, False)


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
def test_a_refusal_without_a_word_may_be_anybodys(status: int) -> None:
    assert isinstance(report(status, b""), Unavailable)
    assert isinstance(report(status, b" \r\n"), Unavailable)
    assert isinstance(report(status, gzip.compress(b""), content_encoding="gzip"), Unavailable)
    assert isinstance(report(status, b"{}"), Refused)


@pytest.mark.parametrize(("encoding", "body"), PACKED_BADLY.values(), ids=PACKED_BADLY.keys())
def test_a_refusal_that_cannot_be_unpacked_is_a_strangers(encoding: str, body: bytes) -> None:
    assert isinstance(report(400, body, content_encoding=encoding), Unavailable)


@pytest.mark.parametrize("status", [*range(520, 531), 407, 506, 507, 508, 510, 511, 599, 600, 999])
@pytest.mark.parametrize("body", [OWN, b"", b"<html>"])
def test_a_status_that_no_destination_gives_of_its_events_closes_the_channel(status: int, body: bytes) -> None:
    assert isinstance(report(status, body), Unavailable)


@pytest.mark.parametrize("status", [402, 406, 411, 412, 414, 416, 418, 421, 423, 424, 426, 428, 431, 451, 499])
@pytest.mark.parametrize("body", [OWN, b"", b"<html>"])
def test_a_refusal_that_is_not_of_the_events_closes_the_channel(status: int, body: bytes) -> None:
    found = report(status, body, idempotent=False)
    assert isinstance(found, Unavailable)
    assert not found.unsure, "a refusal has no effect"


@pytest.mark.parametrize("status", [500, 524])
def test_a_strangers_failure_is_unsure_where_a_repetition_counts(status: int) -> None:
    found = report(status, b"<html>", idempotent=False)
    assert isinstance(found, Unavailable)
    assert found.unsure


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (407, b"<html>", "the proxy does not accept the credentials of CLOUD_PROXY: <html>"),
        (
            400,
            b"<html>",
            "400 came back, and not in the destination's own words: a proxy, a firewall or a captive portal",
        ),
        (418, OWN, "the destination answers 418, which says nothing of the events: "),
        (302, b"", "the answer 302 leads elsewhere"),
    ],
)
def test_a_closed_gate_says_who_may_have_answered(status: int, body: bytes, said: str) -> None:
    found = report(status, body)
    assert isinstance(found, Unavailable)
    assert found.message.startswith(said)


def test_a_batch_that_is_too_large_for_somebody_on_the_way_makes_the_next_ones_smaller() -> None:
    found = report(413, b"<html><h1>413 Request Entity Too Large</h1></html>")
    assert isinstance(found, Unavailable)
    assert found.too_large


@pytest.mark.parametrize("status", [401, 403, 404, 405, 410])
@pytest.mark.parametrize("idempotent", [True, False])
def test_not_you_closes_the_channel_by_backoff(status: int, idempotent: bool) -> None:
    found = report(status, idempotent=idempotent, retry_after="7")
    assert isinstance(found, Unavailable)
    assert (found.code, found.seconds, found.unsure, found.connection) == (f"http_{status}", None, False, False)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("idempotent", [True, False])
def test_not_now_with_a_time_closes_until_then(status: int, idempotent: bool) -> None:
    found = report(status, idempotent=idempotent, retry_after="7")
    assert isinstance(found, Unavailable)
    assert (found.code, found.seconds, found.unsure, found.connection) == (f"http_{status}", 7, False, False)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("value", ["0", "-5", "soon", format_datetime(NOW - timedelta(days=1), usegmt=True)])
def test_not_now_without_a_time_to_come_closes_by_backoff(status: int, value: str) -> None:
    found = report(status, retry_after=value)
    assert isinstance(found, Unavailable)
    assert found.seconds is None


@pytest.mark.parametrize("status", [408, 425, 502, 503, 504])
@pytest.mark.parametrize("idempotent", [True, False])
def test_not_now_closes_by_backoff_and_is_unsure_where_a_repetition_counts(status: int, idempotent: bool) -> None:
    found = report(status, idempotent=idempotent)
    assert isinstance(found, Unavailable)
    assert (found.code, found.seconds, found.unsure, found.connection) == (
        f"http_{status}",
        None,
        not idempotent,
        False,
    )


@pytest.mark.parametrize("status", [100, 101, 300, 301, 302, 303, 304, 307, 308, 600, 999])
def test_any_other_status_is_neither_a_success_nor_the_fault_of_an_entry(status: int) -> None:
    found = report(status, json.dumps(EXPECTED).encode())
    assert isinstance(found, Unavailable)
    assert (found.code, found.seconds) == (f"http_{status}", None)


def test_a_redirect_is_told_without_its_path() -> None:
    found = report(302, location="http://login.hotel.example/?token=s3cret")
    assert isinstance(found, Unavailable)
    assert "http://login.hotel.example" in found.message
    assert "s3cret" not in found.message


def test_a_redirect_with_a_password_in_it_is_not_told() -> None:
    found = report(302, location="http://user:s3cret@hotel.example/")
    assert isinstance(found, Unavailable)
    assert "s3cret" not in found.message


@pytest.mark.parametrize("status", [400, 401, 500, 503])
def test_an_answer_that_repeats_a_secret_is_not_passed_on_with_it(status: int) -> None:
    body = b"x" * 290 + b" s3cret-key"  # also not the half of it that is left when the text is cut
    found = report_of(Answer(status=status, headers={}, body=body, secrets=["s3cret-key"]), SENT, now=NOW)
    assert "s3c" not in repr(found)


def test_an_error_about_an_event_that_repeats_a_secret_is_not_passed_on_with_it() -> None:
    body = json.dumps({**EXPECTED, "accepted": 2, "rejected": 1, "errors": [fault(1, error="no s3cret")]}).encode()
    found = report_of(Answer(status=200, headers={}, body=body, secrets=["s3cret"]), SENT, now=NOW)
    assert isinstance(found, Results)
    assert found.outcomes[SENT[0]].message == "no ***"


def test_a_long_and_wild_text_becomes_one_line() -> None:
    found = report(400, "line\r\nline \x1b[31m\u202e☃ ".encode() * 1000)
    assert isinstance(found, Unavailable)
    assert found.message.isprintable()
    assert len(found.message) < 400


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120), (" 120 ", 120), ("1.5", 1.5), ("0", 0), ("-3", 0), ("9" * 5000, DAY), ("86401", DAY)],
)
def test_retry_after_in_seconds_is_kept_within_a_day(value: str, seconds: float) -> None:
    assert retry_after(value, None, NOW) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Wed, 04 Mar 2026 05:07:07 GMT", 60),
        ("Wednesday, 04-Mar-26 05:07:07 GMT", 60),
        ("Wed Mar  4 05:07:07 2026", 60),
        ("Wed, 04 Mar 2020 05:07:07 GMT", 0),
        ("Wed, 04 Mar 2099 05:07:07 GMT", DAY),
    ],
)
def test_retry_after_as_a_date_counts_from_now(value: str, seconds: float) -> None:
    assert retry_after(value, None, NOW) == seconds


def test_retry_after_as_a_date_counts_from_the_date_of_the_answer_whatever_the_clock_says() -> None:
    then, date = "Wed, 04 Mar 2020 05:07:07 GMT", "Wed, 04 Mar 2020 05:06:37 GMT"
    assert retry_after(then, date, NOW) == 30


def test_a_date_of_the_answer_that_is_none_is_not_used() -> None:
    assert retry_after("Wed, 04 Mar 2026 05:07:07 GMT", "yesterday", NOW) == 60


@pytest.mark.parametrize(
    "value", [None, "", "soon", "1e3", "0x10", "١٢", "Wed, 99 Mar 2026 05:07:07 GMT", "inf", "nan"]
)
def test_retry_after_in_no_known_form_is_none(value: str | None) -> None:
    assert retry_after(value, None, NOW) is None


@given(st.text(), st.none() | st.text())
def test_no_retry_after_makes_trouble(value: str, date: str | None) -> None:
    found = retry_after(value, date, NOW)
    assert found is None or 0 <= found <= DAY


@given(st.integers(100, 999), st.none() | st.binary(), st.booleans(), st.sampled_from(["", "gzip", "br"]))
def test_no_answer_makes_trouble(status: int, body: bytes | None, idempotent: bool, encoding: str) -> None:
    found = report(status, body, idempotent=idempotent, content_encoding=encoding)
    assert not isinstance(found, Results) or all(
        outcome.kind is OutcomeKind.RETRY for outcome in found.outcomes.values()
    )
