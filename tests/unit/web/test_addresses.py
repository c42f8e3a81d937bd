"""Who is at the other end: a table of peers, headers and what is made of them."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrick.web.addresses import Visitor, visitor_of

TRUSTED = [ip_network("10.0.0.0/8"), ip_network("::1"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("81.2.69.142", [], "81.2.69.142"),
        ("81.2.69.142", ["1.1.1.1"], "81.2.69.142"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["81.2.69.142"], "81.2.69.142"),
        ("10.0.0.1", ["6.6.6.6, 81.2.69.142"], "81.2.69.142"),
        ("10.0.0.1", ["6.6.6.6", "81.2.69.142"], "81.2.69.142"),
        ("10.0.0.1", ["6.6.6.6, 81.2.69.142, 10.9.9.9"], "81.2.69.142"),
        ("10.0.0.1", ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        ("10.0.0.1", ["81.2.69.142:5511"], "81.2.69.142"),
        ("10.0.0.1", ["[2001:db8::7]:5511"], "2001:db8::7"),
        ("10.0.0.1", ["[2001:db8::7]"], "2001:db8::7"),
        ("10.0.0.1", ["2001:DB8:0::7"], "2001:db8::7"),
        ("10.0.0.1", ["::ffff:81.2.69.142"], "81.2.69.142"),
        ("::ffff:10.0.0.1", ["81.2.69.142"], "81.2.69.142"),
        ("::1", ["81.2.69.142"], "81.2.69.142"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        ("fe80::1%eth0", ["81.2.69.142"], "fe80::1"),
        ("10.0.0.1", ["rubbish"], "10.0.0.1"),
        ("10.0.0.1", ["81.2.69.142, rubbish"], "10.0.0.1"),
        ("10.0.0.1", ["81.2.69.142, rubbish, 10.2.2.2"], "10.2.2.2"),
        ("10.0.0.1", ["", ","], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["81.2.69.142%eth0"], "10.0.0.1"),
        ("10.0.0.1", ["<script>"], "10.0.0.1"),
        ("10.0.0.1", ["fe80::1%<script>"], "fe80::1"),
        (None, ["81.2.69.142"], "unknown"),
        ("", ["81.2.69.142"], "unknown"),
        ("/run/carrick.sock", ["81.2.69.142"], "unknown"),
    ],
)
def test_the_right_most_hop_that_is_no_trusted_proxy_is_the_visitor(
    peer: str | None, forwarded: list[str], address: str
) -> None:
    assert visitor_of(peer, forwarded, [], TRUSTED).address == address


@pytest.mark.parametrize(
    ("peer", "countries", "country"),
    [
        ("10.0.0.1", ["GB"], "GB"),
        ("10.0.0.1", [" gb "], "GB"),
        ("81.2.69.142", ["GB"], ""),
        ("10.0.0.1", [], ""),
        ("10.0.0.1", ["GB", "FR"], ""),
        ("10.0.0.1", ["XX"], ""),
        ("10.0.0.1", ["T1"], ""),
        ("10.0.0.1", ["<b>"], ""),
        ("10.0.0.1", ["GBR"], ""),
        ("10.0.0.1", ["ÄÖ"], ""),
    ],
)
def test_a_country_is_believed_from_a_trusted_proxy_that_says_one(
    peer: str, countries: list[str], country: str
) -> None:
    assert visitor_of(peer, ["81.2.69.142"], countries, TRUSTED).country == country


def test_without_trusted_proxies_no_header_counts() -> None:
    assert visitor_of("10.0.0.1", ["81.2.69.142"], ["GB"], []) == Visitor("10.0.0.1")


@given(st.text(), st.lists(st.text()), st.lists(st.text()))
def test_headers_of_an_untrusted_peer_change_nothing(peer: str, forwarded: list[str], countries: list[str]) -> None:
    assert visitor_of("81.2.69.142", forwarded, countries, TRUSTED) == Visitor("81.2.69.142")
    assert visitor_of(peer, [], [], []).country == ""


@given(st.lists(st.text()), st.lists(st.text()))
def test_whatever_a_proxy_sends_is_an_address_or_changes_nothing(forwarded: list[str], countries: list[str]) -> None:
    found = visitor_of("10.0.0.1", forwarded, countries, TRUSTED)
    assert set(found.address) <= set("0123456789abcdef.:")
    assert len(found.country) in (0, 2)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("81.2.69.142", "81.2.69.143", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("unknown", "unknown", True),
    ],
)
def test_one_ipv6_network_is_one_visitor(one: str, other: str, same: bool) -> None:
    assert (Visitor(one).neighbourhood == Visitor(other).neighbourhood) is same
