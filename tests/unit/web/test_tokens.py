"""ADMIN_TOKEN: who has it comes in whatever others guess, and without one only this machine does."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from carrick.web.problems import Problem
from carrick.web.tokens import WRONG_SECONDS, WRONG_TOKENS, AdminToken

PROXY = ip_network("10.0.0.0/8")


def request(peer: str, **headers: str) -> web.Request:
    named = {"Host": "127.0.0.1:8080", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return make_mocked_request("POST", "/", headers=named).clone(remote=peer)


def refusal(token: AdminToken, peer: str, **headers: str) -> int | None:
    """The status of it; None when there is none."""
    try:
        token.admit(request(peer, **headers))
    except Problem as problem:
        return problem.status
    return None


def wrong(token: AdminToken, peer: str, **headers: str) -> int | None:
    return refusal(token, peer, Authorization="Bearer wrong", **headers)


def test_wrong_tokens_are_counted_by_network_and_forgotten_after_a_while() -> None:
    now = [1000.0]
    token = AdminToken("right", clock=lambda: now[0])
    assert [wrong(token, f"2001:db8::{host:x}") for host in range(WRONG_TOKENS)] == [401] * WRONG_TOKENS
    assert wrong(token, "2001:db8::ffff") == 429
    assert refusal(token, "2001:db8::ffff", Authorization="Bearer right") is None
    assert wrong(token, "2001:db8:0:1::1") == 401
    assert wrong(token, "192.0.2.1") == 401
    now[0] += WRONG_SECONDS
    assert wrong(token, "2001:db8::ffff") == 401


def test_behind_a_trusted_proxy_everybody_has_an_own_count() -> None:
    token = AdminToken("right", [PROXY])
    for _ in range(WRONG_TOKENS + 1):
        wrong(token, "10.0.0.1", X_Forwarded_For="192.0.2.1")
    assert wrong(token, "10.0.0.1", X_Forwarded_For="192.0.2.1") == 429
    assert wrong(token, "10.0.0.1", X_Forwarded_For="192.0.2.2") == 401


def test_who_invents_addresses_without_being_a_trusted_proxy_has_one_count() -> None:
    token = AdminToken("right", [PROXY])
    statuses = [wrong(token, "192.0.2.9", X_Forwarded_For=f"192.0.2.{host}") for host in range(WRONG_TOKENS + 1)]
    assert statuses == [401] * WRONG_TOKENS + [429]


def test_no_token_at_all_is_no_guess() -> None:
    token = AdminToken("right")
    for _ in range(2 * WRONG_TOKENS):
        assert refusal(token, "192.0.2.1") == 401


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        ("127.0.0.1", {}, None),
        ("127.0.0.1", {"Host": "localhost"}, None),
        ("::1", {"Host": "[::1]:8080"}, None),
        ("::ffff:127.0.0.1", {}, None),
        ("192.0.2.1", {}, 401),
        ("127.0.0.1", {"Host": "evil.example:8080"}, 401),
        ("127.0.0.1", {"X_Forwarded_For": "127.0.0.1"}, 401),
        ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}, 401),
        ("127.0.0.1", {"Via": "1.1 proxy"}, 401),
        ("127.0.0.2", {}, 401),
    ],
)
def test_without_a_token_only_this_machine_is_let_in(peer: str, headers: Mapping[str, str], status: int | None) -> None:
    assert refusal(AdminToken("", [ip_network("127.0.0.2")]), peer, **headers) == status
