"""Every class of answer, from the raw HTTP response."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from carrick_scoreboard.osm.classify import (
    AuthRevoked,
    Budget,
    Denial,
    Deprecated,
    InvalidData,
    Misconfigured,
    Ok,
    RateLimited,
    Response,
    ServiceBlocked,
    UpstreamError,
    classify,
    classify_token,
)

NOW = datetime(2026, 1, 8, 14, 30, tzinfo=UTC)
BLOCK_PAGE = (
    "<!DOCTYPE html>\n<html><head><title> Online Scout Manager (OSM): Blocked </title></head><body>…</body></html>"
)


def raw(text: str) -> Response:
    """A response as it comes over the wire."""
    head, _, body = text.partition("\n\n")
    status, *lines = head.splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Response(int(status.split()[1]), headers, body.encode())


def verdict(text: str) -> Any:
    return classify(raw(text), NOW).verdict


def token_verdict(text: str) -> Any:
    return classify_token(raw(text), NOW).verdict


JSON = "HTTP/1.1 200 OK\nContent-Type: application/json\n\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (JSON + "[]", []),
        (JSON + '{"72699":{"points":"5"}}', {"72699": {"points": "5"}}),
        (JSON + '{"status":true,"error":null,"data":{}}', {"status": True, "error": None, "data": {}}),
        ("HTTP/1.1 200 OK\nContent-Type: text/html; charset=utf-8\n\n[1]", [1]),
    ],
)
def test_json_with_a_good_status_is_the_answer_whatever_its_content_type(text: str, value: object) -> None:
    assert verdict(text) == Ok(value)


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "429 Too Many Requests", "500 Oops"])
def test_the_header_of_a_block_counts_whatever_the_status(status: str) -> None:
    assert verdict(f"HTTP/1.1 {status}\nX-Blocked: too many bad calls\n\n[]") == ServiceBlocked("too many bad calls")


def test_an_empty_header_of_a_block_is_a_block_too() -> None:
    assert verdict("HTTP/1.1 200 OK\nX-Blocked:\n\n[]") == ServiceBlocked("")


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "503 Service Unavailable"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\r\n  "])
@pytest.mark.parametrize("read", [verdict, token_verdict])
def test_the_page_of_a_block_counts_on_any_call(status: str, start: str, read: Any) -> None:
    assert read(f"HTTP/1.1 {status}\nContent-Type: text/html\n\n{start}{BLOCK_PAGE}") == ServiceBlocked("")


def test_a_patrol_that_is_named_like_the_page_of_a_block_is_none() -> None:
    assert isinstance(verdict(JSON + '{"1":{"name":"<title>Online Scout Manager (OSM): Blocked</title>"}}'), Ok)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ("Retry-After: 1800", 1800),
        ("Retry-After: Thu, 08 Jan 2026 15:30:00 GMT", 3600),
        ("Retry-After: Thu, 08 Jan 2026 14:00:00 GMT", 1),
        ("Retry-After: 0", 1),
        ("Retry-After: soon\nX-RateLimit-Reset: 77", 77),
        ("X-RateLimit-Reset: 77", 77),
        ("X-Other: 1", 60),
        ("Retry-After: 99999999999999", 7 * 86_400),
        ("Retry-After: -5", 60),
    ],
)
@pytest.mark.parametrize("read", [verdict, token_verdict])
def test_too_many_requests_says_how_long_to_wait(headers: str, seconds: int, read: Any) -> None:
    assert read(f"HTTP/1.1 429 Too Many Requests\n{headers}\n\n") == RateLimited(seconds)


def test_401_means_that_the_authorisation_is_gone() -> None:
    assert verdict('HTTP/1.1 401 Unauthorized\n\n{"error":"access_denied"}') == AuthRevoked()


STRANGERS = ["<html><title>Attention required</title></html>", "Forbidden", '"no"', "[]", '{"title":"Access denied"}']
"""What proxies, firewalls and captive portals say."""


@pytest.mark.parametrize("body", ["", *STRANGERS])
@pytest.mark.parametrize(
    "status", [301, 302, 307, 400, 403, 404, 405, 407, 408, 410, 413, 425, 500, 502, 503, 511, 522]
)
@pytest.mark.parametrize("read", [verdict, token_verdict])
def test_what_osm_does_not_say_itself_refuses_nothing(status: int, body: str, read: Any) -> None:
    found = read(f"HTTP/1.1 {status} No\n\n{body}")
    assert isinstance(found, UpstreamError)
    assert (found.code, found.seconds) == (f"http_{status}", None)


@pytest.mark.parametrize("status", [408, 425, 502, 503, 504])
@pytest.mark.parametrize("read", [verdict, token_verdict])
def test_what_will_pass_is_no_refusal_whoever_says_it(status: int, read: Any) -> None:
    assert isinstance(read(f'HTTP/1.1 {status} No\n\n{{"error":"later"}}'), UpstreamError)


@pytest.mark.parametrize("read", [verdict, token_verdict])
def test_503_may_say_until_when(read: Any) -> None:
    assert read("HTTP/1.1 503 No\nRetry-After: 120\n\nSorry").seconds == 120


@pytest.mark.parametrize(
    ("status", "weight"),
    [
        *[(status, "final") for status in (400, 409, 413, 415, 422)],
        *[(status, "held") for status in (402, 403, 404, 405, 410, 418)],
        *[(status, "again") for status in (500, 501, 505)],
    ],
)
@pytest.mark.parametrize("form", ['{"error":"Invalid points"}', '{"err":{"code":5,"message":"Invalid points"}}'])
def test_what_osm_refuses_by_name_is_final_for_few_statuses_only(status: int, weight: Any, form: str) -> None:
    said = f"HTTP/1.1 {status} No\nContent-Type: text/html\n\n{form}"
    assert verdict(said) == Denial(f"http_{status}", "Invalid points", weight)


@pytest.mark.parametrize("body", STRANGERS[:4])
@pytest.mark.parametrize("read", [verdict, token_verdict])
def test_a_401_of_somebody_else_ends_no_sign_in(body: str, read: Any) -> None:
    assert isinstance(read(f"HTTP/1.1 401 No\n\n{body}"), UpstreamError)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("", UpstreamError("empty", "OSM answered with nothing")),
        ("  \n", UpstreamError("empty", "OSM answered with nothing")),
        ("<html><title>Maintenance</title></html>", UpstreamError("page", "a page came back instead of data")),
        ("false", Denial("false", "OSM answered no", "held")),
        ("null", Denial("false", "OSM answered no", "held")),
        ('{"error":"No such section"}', Denial("stated", "No such section", "again")),
        ('{"err":"Sorry"}', Denial("stated", "Sorry", "again")),
        (r'{"err":"So\u0000r\nry"}', Denial("stated", "So r ry", "again")),
        ('{"error":{"code":5,"message":"Try later"}}', Denial("stated", "Try later", "again")),
        ('{"error":["x"]}', Denial("stated", "['x']", "again")),
        ('{"status":false,"error":null}', Denial("stated", "OSM says that it did not work", "held")),
    ],
)
def test_a_good_status_with_a_bad_answer_is_an_error(body: str, found: object) -> None:
    assert verdict(JSON + body) == found


@pytest.mark.parametrize("body", ["{", "abc", '{"a":1}}', "[" * 100_000])
def test_what_is_not_json_makes_no_sense(body: str) -> None:
    assert verdict(JSON + body) == InvalidData("the answer is not JSON")


def test_bytes_that_are_no_text_make_no_sense() -> None:
    assert classify(Response(200, {}, b'{"a":"\xff"}'), NOW).verdict == InvalidData("the answer is not JSON")


@pytest.mark.parametrize(
    "text",
    ['400 Bad Request\n\n{"error":"invalid_grant"}', '401 Unauthorized\n\n{"error":"invalid_request"}'],
)
def test_a_refused_refresh_token_means_that_the_authorisation_is_gone(text: str) -> None:
    assert token_verdict(f"HTTP/1.1 {text}") == AuthRevoked()


@pytest.mark.parametrize("status", [400, 401])
@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
def test_an_unknown_application_is_the_operators_fault_and_no_revocation(status: int, error: str) -> None:
    assert token_verdict(f'HTTP/1.1 {status} No\n\n{{"error":"{error}"}}') == Misconfigured(error)


def test_any_other_refusal_of_a_token_holds_its_user() -> None:
    found = token_verdict('HTTP/1.1 400 Bad Request\n\n{"error":"invalid_scope"}')
    assert found == Denial("invalid_scope", "OSM refused: invalid_scope", "held")


def test_a_401_of_the_token_endpoint_without_a_word_ends_no_sign_in() -> None:
    assert isinstance(token_verdict("HTTP/1.1 401 No\n\n"), UpstreamError)


def test_a_token_is_the_answer_of_the_token_endpoint() -> None:
    assert token_verdict(JSON + '{"access_token":"a","expires_in":3600}') == Ok(
        {"access_token": "a", "expires_in": 3600}
    )


def test_every_answer_tells_the_budget_and_the_date_of_its_end() -> None:
    limits = "X-RateLimit-Limit: 1000\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60"
    answer = classify(raw(f"HTTP/1.1 429 No\n{limits}\nX-Deprecated: 2027-01-01\n\n"), NOW)
    assert answer.budget == Budget(1000, 0, 60)
    assert answer.deprecated == Deprecated("2027-01-01", datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("said", "ends_at"),
    [
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T12:00:00+02:00", datetime(2027, 1, 31, 10, tzinfo=UTC)),
        ("2027-01-31 12:00:00", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        (" Sun, 31 Jan 2027 12:00:00 GMT ", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        ("soon", None),
        ("", None),
        ("99999-01-01", None),
    ],
)
def test_the_date_of_a_calls_end_may_be_written_in_several_ways(said: str, ends_at: datetime | None) -> None:
    assert classify(Response(200, {"x-deprecated": said}, b"[]"), NOW).deprecated == Deprecated(said, ends_at)


@pytest.mark.parametrize("value", ["", "many", "-1", "1.5", "٣", "9" * 30])
def test_a_budget_that_is_no_number_is_unknown(value: str) -> None:
    assert classify(Response(200, {"x-ratelimit-remaining": value}, b"[]"), NOW).budget == Budget(None, None, None)
