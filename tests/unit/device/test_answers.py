"""What each answer for scores means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from carrick_device import answers
from carrick_device.answers import Response, Unreachable, read_scores
from tests.unit.device.scripted import DATE, scores


def response(status: int, body: Any, **headers: str) -> Response:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, {"date": DATE, **{name.replace("_", "-"): value for name, value in headers.items()}}, text)


def refusal(status: int, error: str, **headers: str) -> Response:
    return response(status, {"error": error, "message": f"about {error}"}, **headers)


def test_scores_are_fresh_for_as_long_as_the_clock_of_the_server_says() -> None:
    verdict = read_scores(response(200, scores(3, 5)))
    assert isinstance(verdict, answers.Got)
    assert verdict.fresh_seconds == 300
    assert [patrol.score for patrol in verdict.scores.patrols] == [3, 5]


def test_an_answer_without_a_date_has_no_clock_to_compare_with() -> None:
    verdict = read_scores(response(200, scores(3), date="soon"))
    assert isinstance(verdict, answers.Got)
    assert verdict.fresh_seconds is None


@pytest.mark.parametrize(
    ("given", "meant"),
    {
        "signed out": (refusal(401, "unauthorized", www_authenticate='Bearer realm="API"'), answers.SignInAgain),
        "signed out without a challenge": (refusal(401, "unauthorized"), answers.SignInAgain),
        "a proxy wants a password": (refusal(401, "", www_authenticate='Basic realm="Proxy"'), answers.Failed),
        "revoked": (refusal(403, "blocked"), answers.SignInAgain),
        "forbidden by something else": (response(403, b"<html>no</html>"), answers.Failed),
        "between terms": (refusal(409, "not_in_term"), answers.BetweenTerms),
        "another conflict": (refusal(409, "something"), answers.Failed),
        "no section": (refusal(400, "section_not_configured"), answers.NoSection),
        "section gone": (refusal(400, "section_not_found"), answers.NoSection),
        "rate limited": (refusal(429, "rate_limited"), answers.TooMany),
        "bad gateway": (refusal(502, "upstream_error"), answers.Failed),
        "service blocked": (refusal(503, "service_blocked"), answers.Failed),
        "internal error": (refusal(500, "internal_error"), answers.Failed),
        "not found": (response(404, b"<html>"), answers.Failed),
        "a login page": (response(200, b"<html>Welcome to our Wi-Fi</html>"), answers.Failed),
        "no JSON": (response(200, b"\xff\xfe"), answers.Failed),
        "deep JSON": (response(200, b'{"x":' + b"[" * 100_000), answers.Failed),
        "JSON of something else": (response(200, {"ok": True}), answers.Failed),
        "too many patrols": (response(200, scores(*range(201))), answers.Failed),
        "a score beyond reason": (response(200, scores(10**10)), answers.Failed),
        "a time without a zone": (response(200, scores(1, cache_expires_at="2026-01-08T14:35:00")), answers.Failed),
        "no answer": (Unreachable("Cannot reach it."), answers.Failed),
    }.values(),
)
def test_every_answer_has_its_meaning(given: answers.Reply, meant: type[answers.Verdict]) -> None:
    assert type(read_scores(given)) is meant


def test_a_failure_says_what_the_server_said() -> None:
    assert read_scores(refusal(503, "service_blocked")) == answers.Failed(
        "The server answered 503: about service_blocked"
    )
    assert read_scores(response(308, b"", location="https://new.example")) == answers.Failed(
        "The server sends us to https://new.example; use that."
    )
    assert read_scores(Unreachable("Cannot reach it.")) == answers.Failed("Cannot reach it.", away=True)


@pytest.mark.parametrize(
    ("given", "seconds"),
    {
        "in seconds": (refusal(429, "rate_limited", retry_after="120"), 120),
        "as a date": (refusal(429, "rate_limited", retry_after="Thu, 08 Jan 2026 14:31:30 GMT"), 90),
        "a date that has passed": (refusal(429, "rate_limited", retry_after="Thu, 08 Jan 2026 14:00:00 GMT"), 0),
        "in the body": (response(429, {"error": "rate_limited", "retry_after": 45}), 45),
        "not at all": (refusal(429, "rate_limited"), None),
        "nonsense": (refusal(429, "rate_limited", retry_after="-5"), None),
        "far too long": (refusal(429, "rate_limited", retry_after="9" * 5000), 86_400),
        "beyond all numbers": (response(429, {"retry_after": 1e308}), 86_400),
    }.values(),
)
def test_a_server_that_wants_to_be_left_alone_says_how_long(given: Response, seconds: int | None) -> None:
    assert read_scores(given) == answers.TooMany(seconds)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_at_the_ends_of_the_calendar_are_times(time: str) -> None:
    verdict = read_scores(response(200, scores(1, cached_at=time, cache_expires_at=time)))
    assert isinstance(verdict, answers.Got)


def test_a_503_may_say_how_long_too() -> None:
    verdict = read_scores(refusal(503, "service_blocked", retry_after="600"))
    assert isinstance(verdict, answers.Failed)
    assert verdict.seconds == 600


def test_names_cannot_write_to_the_terminal_and_are_cut() -> None:
    body = scores(1, 2)
    body["patrols"][0]["name"] = "\x1b[2J\x9bRed\n\u202eFoxes"
    body["patrols"][1]["name"] = "x" * 500
    verdict = read_scores(response(200, body))
    assert isinstance(verdict, answers.Got)
    assert [patrol.name for patrol in verdict.scores.patrols] == ["[2J Red Foxes", "x" * 60]
