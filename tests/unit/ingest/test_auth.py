"""Who may send: every way to be refused, and the ways to be accepted."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from carrick.ingest.auth import Guard, Refused, Request
from carrick.settings import CloudSettings
from carrick.sinks.signing import signature

NOW = 1_700_000_000_000
PATH = "/api/v1/edge/batch"
HMAC = Guard(mode="hmac", secrets=("old secret", "new secret"))
KEYS = Guard(mode="api_key", api_keys=("old", "new"))


def request(
    secret: str = "new secret", *, timestamp: Any = NOW, body: bytes = b"{}", path: str = PATH, method: str = "POST"
) -> Request:
    headers = {"x-edge-timestamp": str(timestamp), "x-edge-signature": signature(secret, timestamp, path, body, method)}
    return Request(method=method, path=path, headers=headers, body=body)


def with_headers(sent: Request, **headers: str | None) -> Request:
    kept = {**sent.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Request(
        method=sent.method, path=sent.path, body=sent.body, headers={k: v for k, v in kept.items() if v is not None}
    )


def test_without_authentication_everybody_may_send() -> None:
    assert Guard().check(Request(method="POST", path=PATH, headers={}), NOW) is None


@pytest.mark.parametrize("key", ["old", "new"])
def test_every_key_of_the_list_is_accepted(key: str) -> None:
    assert KEYS.check(Request(method="POST", path=PATH, headers={"x-api-key": key}), NOW) is None


@pytest.mark.parametrize("key", ["", "ol", "older", "old,new", "OLD", "naïve", "\udcff"])
def test_no_other_key_is(key: str) -> None:
    with pytest.raises(Refused, match="x-api-key"):
        KEYS.check(Request(method="POST", path=PATH, headers={"x-api-key": key}), NOW)


def test_a_missing_key_is_refused() -> None:
    with pytest.raises(Refused, match="x-api-key is missing"):
        KEYS.check(Request(method="POST", path=PATH, headers={}), NOW)


@pytest.mark.parametrize("secret", ["old secret", "new secret"])
def test_a_signature_with_any_secret_of_the_list_is_accepted_and_given_back(secret: str) -> None:
    sent = request(secret)
    assert HMAC.check(sent, NOW) == bytes.fromhex(sent.headers["x-edge-signature"].removeprefix("sha256="))


def test_a_wrong_secret_is_refused() -> None:
    with pytest.raises(Refused, match="x-edge-signature does not fit"):
        HMAC.check(request("another"), NOW)


@pytest.mark.parametrize("change", [{"body": b"{} "}, {"path": PATH + "/"}, {"method": "PUT"}])
def test_a_request_that_was_altered_is_refused(change: dict[str, Any]) -> None:
    sent = request()
    altered = {"method": sent.method, "path": sent.path, "body": sent.body, **change}
    with pytest.raises(Refused, match="does not fit"):
        HMAC.check(Request(headers=sent.headers, **altered), NOW)


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_a_clock_that_is_five_minutes_off_is_accepted(seconds: int) -> None:
    assert HMAC.check(request(timestamp=NOW + seconds * 1000), NOW)


@pytest.mark.parametrize(("seconds", "said"), [(-301, "301 seconds behind"), (301, "301 seconds ahead of")])
def test_a_clock_that_is_further_off_is_refused_and_told_how_far(seconds: int, said: str) -> None:
    with pytest.raises(Refused, match=said):
        HMAC.check(request(timestamp=NOW + seconds * 1000), NOW)


def test_an_altered_timestamp_is_refused() -> None:
    with pytest.raises(Refused, match="does not fit"):
        HMAC.check(with_headers(request(), x_edge_timestamp=str(NOW + 1)), NOW)


@pytest.mark.parametrize("timestamp", ["", "now", "-1", "1e3", "+1", " 1", "٣", "9" * 16])
def test_a_timestamp_that_is_no_number_is_refused(timestamp: str) -> None:
    with pytest.raises(Refused, match="x-edge-timestamp"):
        HMAC.check(with_headers(request(), x_edge_timestamp=timestamp), NOW)


@pytest.mark.parametrize("header", ["x_edge_timestamp", "x_edge_signature"])
def test_a_missing_header_is_refused_before_the_body_is_read(header: str) -> None:
    with pytest.raises(Refused, match=r"x-edge-\w+ is missing"):
        HMAC.check_headers(with_headers(request(), **{header: None}).headers, NOW)


@pytest.mark.parametrize("given", ["sha256=", "sha1=ab", "sha256=zz", "\udcff", "SHA256=" + "0" * 64])
def test_a_signature_of_another_form_is_refused(given: str) -> None:
    with pytest.raises(Refused, match="does not fit"):
        HMAC.check(with_headers(request(), x_edge_signature=given), NOW)


def test_an_upper_case_signature_is_refused_so_that_there_is_one_form_to_remember() -> None:
    sent = request()
    upper = "sha256=" + sent.headers["x-edge-signature"].removeprefix("sha256=").upper()
    with pytest.raises(Refused, match="does not fit"):
        HMAC.check(with_headers(sent, x_edge_signature=upper), NOW)


@pytest.mark.parametrize("guard", [HMAC, KEYS])
def test_every_accepted_value_is_compared_in_constant_time(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def compare(given: bytes, wanted: bytes) -> bool:
        compared.append(wanted)
        return real(given, wanted)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    guard.check(with_headers(request("old secret"), x_api_key="old"), NOW)
    assert len(compared) == 2


def test_the_settings_lists_are_read() -> None:
    guard = Guard.of(CloudSettings(auth_mode="hmac", hmac_secret=" a , b,,", api_key=""))
    assert (guard.secrets, guard.api_keys) == (("a", "b"), ())


def test_nothing_that_is_refused_shows_what_was_expected() -> None:
    with pytest.raises(Refused) as refused:
        HMAC.check(request("another"), NOW)
    assert "secret" not in str(refused.value)
    assert signature("new secret", NOW, PATH, b"{}") not in str(refused.value)
