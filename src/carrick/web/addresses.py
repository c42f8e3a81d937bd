"""Who is at the other end of a request, behind proxies that are trusted and headers that are not. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

import msgspec

from carrick.variables import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

UNKNOWN = "unknown"
"""The address of a peer without one: a socket in the file system."""
COUNTRY = re.compile(r"[A-Z]{2}")
NO_COUNTRY = frozenset({"XX", "ZZ"})
"""How proxies say that they do not know."""
WITH_PORT = re.compile(r"(?P<v4>[0-9.]+):[0-9]{1,5}|\[(?P<v6>[^\[\]]+)\](?::[0-9]{1,5})?")
IPV6_PREFIX = 64
"""What one household or phone has to itself."""


class Visitor(msgspec.Struct, frozen=True):
    """The address that a request came from, and its country in two letters where that is known."""

    address: str
    country: str = ""

    @property
    def neighbourhood(self) -> str:
        """What is limited as one visitor: an IPv4 address, or the /64 network of an IPv6 address."""
        address = parsed(self.address)
        if not isinstance(address, ipaddress.IPv6Address):
            return self.address
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))


def visitor_of(
    peer: str | None, forwarded: Sequence[str], countries: Sequence[str], trusted: Sequence[Network]
) -> Visitor:
    """Who has sent a request that came from the peer.

    `forwarded` are the lines of X-Forwarded-For, `countries` those of the country's header; both count only when the
    peer is trusted. Of the addresses forwarded, the right-most that is no trusted proxy is the visitor; left of
    something that is no address, nothing is believed.
    """
    nearest = parsed(peer or "")
    if nearest is None:
        return Visitor(UNKNOWN)
    if not among(nearest, trusted):
        return Visitor(str(nearest))
    for hop in reversed(",".join(forwarded).split(",")):
        address = parsed(hop)
        if address is None:
            break
        nearest = address
        if not among(address, trusted):
            break
    return Visitor(str(nearest), _country(countries))


def _country(lines: Sequence[str]) -> str:
    """The country, if it is said once and looks like one."""
    said = lines[0].strip().upper() if len(lines) == 1 else ""
    return said if COUNTRY.fullmatch(said) and said not in NO_COUNTRY else ""


def among(address: Address, networks: Sequence[Network]) -> bool:
    """Whether one of the networks has it."""
    return any(address in network for network in networks)


def parsed(text: str) -> Address | None:
    """An address, with or without a port; IPv4 inside IPv6 is IPv4."""
    text = text.strip()
    with_port = WITH_PORT.fullmatch(text)
    bare = (with_port["v4"] or with_port["v6"]) if with_port else text
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    return address.ipv4_mapped or ipaddress.IPv6Address(int(address))  # without the name of an interface
