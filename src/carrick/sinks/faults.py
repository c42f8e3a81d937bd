"""What it means when a request ends without an answer: every error of aiohttp and of the sockets below as a report.

The text of such an error is not passed on: it may hold an address with a password in it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

import aiohttp
import msgspec
from aiohttp.http_exceptions import HttpProcessingError

from carrick.sinks.sink import Unavailable

KNOWN_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError, UnicodeError, asyncio.IncompleteReadError)
"""Everything that a request can raise because of the other side or the network; timeouts are OSErrors."""

SOCKET_CODES = {
    errno.ECONNREFUSED: ("connect_refused", "the destination refuses connections"),
    errno.ENETUNREACH: ("no_route", "there is no network, or no way to the destination"),
    errno.EHOSTUNREACH: ("no_route", "there is no network, or no way to the destination"),
    errno.ENETDOWN: ("no_route", "there is no network, or no way to the destination"),
    errno.ETIMEDOUT: ("connect_timeout", "no connection came about in time"),
}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer. `reached`: a connection had come about, so a bare connect would prove nothing."""

    code: str
    message: str
    reached: bool = True


def fault_of(error: BaseException, *, begun: bool) -> Fault:
    """Name what went wrong. `begun`: a connection was there and the request was being written to it."""
    match error:
        case aiohttp.ClientHttpProxyError():
            return Fault(code=f"proxy_{error.status}", message=f"the proxy refused the connection with {error.status}")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | aiohttp.RedirectClientError() | UnicodeError():
            return Fault(code="invalid_url", message="the destination's address is not usable")
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError() | HttpProcessingError():
            return Fault(code="broken_answer", message="the answer breaks off, or is not HTTP")
        case TimeoutError() if begun:
            return Fault(code="timeout", message="the destination did not answer in time")
        case TimeoutError():
            return Fault(code="connect_timeout", message="no connection came about in time", reached=False)
    return _tls_fault(error) or _network_fault(error)


def unavailable(fault: Fault, *, unsure: bool) -> Unavailable:
    """The report about a fault."""
    return Unavailable(code=fault.code, message=fault.message, unsure=unsure, connection=not fault.reached)


def _tls_fault(error: BaseException) -> Fault | None:
    """Certificates and encryption; also an alert of the other side, which aiohttp shows as a lost connection."""
    match error:
        case aiohttp.ServerFingerprintMismatch() | ssl.SSLCertVerificationError():
            return Fault(code="tls", message=f"the destination's certificate is not trusted{_verdict(error)}")
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Fault(code="tls", message="no encrypted connection came about")
        case _ if isinstance(error.__cause__, ssl.SSLError):
            return Fault(
                code="tls", message="the destination ended the encrypted connection, perhaps for a certificate"
            )
    return None


def _network_fault(error: BaseException) -> Fault:
    match error:
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return Fault(code="dns", message="the destination's name cannot be resolved", reached=False)
        case aiohttp.ClientConnectorError():
            return _not_connected(error)
    return Fault(code="disconnected", message="the connection ended before the answer")


def _not_connected(error: aiohttp.ClientConnectorError) -> Fault:
    """No connection: to the destination, or to the proxy before it."""
    code, message = SOCKET_CODES.get(error.errno or 0, ("connect_failed", "no connection came about"))
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        message = f"the proxy cannot be reached ({code})"
    return Fault(code=code, message=message, reached=False)


def _verdict(error: BaseException) -> str:
    """What OpenSSL has against a certificate."""
    cause = getattr(error, "certificate_error", error)
    text = getattr(cause, "verify_message", "")
    return f": {text}" if text else ""
