"""The rules of RFC 8628."""

from __future__ import annotations

import json
from typing import Any

import pytest

from carrick_device import signing_in
from carrick_device.answers import Failed, Response, TooMany, Unreachable
from carrick_device.signing_in import Code, Pace, pace_after, pace_of, read_code, read_token
from tests.unit.device.scripted import CODE, GRANTED


def response(status: int, body: Any, **headers: str) -> Response:
    return Response(status, headers, json.dumps(body).encode())


def code(**changed: Any) -> Code:
    read = read_code(response(200, {**CODE, **changed}))
    assert isinstance(read, Code)
    return read


def test_a_code_has_the_shortest_link_there_is() -> None:
    assert code().link == "https://scores.example.org/d/BCDFGHJK"
    assert code(verification_uri_short="").link == "https://scores.example.org/device?user_code=BCDF-GHJK"
    assert code(verification_uri_short="", verification_uri_complete="").link == "https://scores.example.org/device"


@pytest.mark.parametrize("missing", ["interval", "verification_uri_short", "verification_uri_complete"])
def test_what_the_standard_leaves_open_may_be_missing(missing: str) -> None:
    body = {name: value for name, value in CODE.items() if name != missing}
    read = read_code(response(200, body))
    assert isinstance(read, Code)
    assert pace_of(read) == Pace(5.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"device_code": ""},
        {"user_code": None},
        {"expires_in": 0},
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri": "https://[broken"},
        {"verification_uri_short": "https://x.example/\x1b[2J"},
        {"verification_uri_complete": "https://x.example/" + "y" * 500},
    ],
)
def test_a_code_that_cannot_be_used_is_a_failure(changed: dict[str, Any]) -> None:
    assert isinstance(read_code(response(200, {**CODE, **changed})), Failed)


@pytest.mark.parametrize(
    ("given", "meant"),
    {
        "not known": (response(401, {"error": "invalid_client"}), signing_in.UnknownClient),
        "not known, other status": (response(400, {"error": "unauthorized_client"}), signing_in.UnknownClient),
        "too many": (response(429, {"error": "rate_limited", "retry_after": 60}), TooMany),
        "failed": (response(503, {}), Failed),
        "no such server": (response(404, "nothing here"), Failed),
        "a login page": (Response(200, {}, b"<html>"), Failed),
        "no answer": (Unreachable("Cannot reach it."), Failed),
    }.values(),
)
def test_what_comes_instead_of_a_code(given: Response | Unreachable, meant: type) -> None:
    assert type(read_code(given)) is meant


@pytest.mark.parametrize(
    ("given", "meant"),
    {
        "granted": (response(200, GRANTED), signing_in.Token),
        "pending": (response(400, {"error": "authorization_pending"}), signing_in.Pending),
        "too fast": (response(400, {"error": "slow_down"}), signing_in.SlowDown),
        "refused": (response(400, {"error": "access_denied"}), signing_in.Denied),
        "too late": (response(400, {"error": "expired_token"}), signing_in.Expired),
        "unknown code": (response(400, {"error": "invalid_grant"}), signing_in.Expired),
        "bad request": (response(400, {"error": "invalid_request"}), signing_in.UnknownClient),
        "other grants only": (response(400, {"error": "unsupported_grant_type"}), signing_in.UnknownClient),
        "not known": (response(401, {"error": "invalid_client"}), signing_in.UnknownClient),
        "too many": (response(429, {}), TooMany),
        "failed": (response(500, {"error": "internal_error"}), Failed),
        "granted without a token": (response(200, {"token_type": "Bearer"}), Failed),
        "a token that would break a header": (response(200, {"access_token": "a\r\nb"}), Failed),
        "a page": (Response(400, {}, b"<html>"), Failed),
        "no answer": (Unreachable("Cannot reach it."), Failed),
    }.values(),
)
def test_every_answer_to_a_poll_has_its_meaning(given: Response | Unreachable, meant: type) -> None:
    assert type(read_token(given)) is meant


def test_slowing_down_adds_five_seconds_and_keeps_them() -> None:
    pace = pace_after(signing_in.SlowDown(), Pace(5.0))
    assert pace.seconds == 10.0
    assert pace_after(signing_in.Pending(), pace).seconds == 10.0
    assert pace_after(signing_in.SlowDown(), pace).seconds == 15.0


def test_a_poll_that_does_not_get_through_doubles_the_wait_until_one_does() -> None:
    pace = pace_after(Failed("no"), pace_after(Failed("no"), Pace(5.0)))
    assert pace.seconds == 20.0
    assert Pace(5.0, failures=50).seconds == 300.0
    assert pace_after(signing_in.Pending(), pace).seconds == 5.0


def test_a_server_that_wants_to_be_left_alone_is() -> None:
    assert pace_after(TooMany(120), Pace(5.0)).seconds == 120.0


@pytest.mark.parametrize(("interval", "seconds"), [(0, 1.0), (5, 5.0), (10**6, 300.0)])
def test_an_interval_without_sense_is_brought_within_bounds(interval: int, seconds: float) -> None:
    assert pace_of(code(interval=interval)).seconds == seconds


def test_codes_and_tokens_do_not_show_their_secrets() -> None:
    token = read_token(response(200, GRANTED))
    assert "secret" not in repr([code(), token])
