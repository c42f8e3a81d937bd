"""Every error of aiohttp and of the sockets below it has a name."""

from __future__ import annotations

import asyncio
import errno
import inspect
import socket
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import client_exceptions, http_exceptions
from aiohttp.client_reqrep import ConnectionKey

from carrick.sinks.faults import KNOWN_ERRORS, SOCKET_CODES, Fault, fault_of

KEY = ConnectionKey("cloud.example", 443, True, True, None, None, None)


def errors_of(module: Any) -> list[type[Exception]]:
    kinds = (kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Exception))
    return [kind for kind in kinds if kind.__module__ == module.__name__]


NOT_RAISED_BY_A_REQUEST = {client_exceptions.WSMessageTypeError}
ERRORS_OF_AIOHTTP = [
    kind
    for kind in errors_of(client_exceptions) + errors_of(http_exceptions)
    if kind not in NOT_RAISED_BY_A_REQUEST and kind is not aiohttp.ClientHttpProxyError
]


def bare(kind: type[Exception]) -> Exception:
    """An error of that kind with what every error of the kind has, however it is made."""
    error: Any = kind.__new__(kind)
    if issubclass(kind, aiohttp.ClientConnectorError):
        error._conn_key, error._os_error = KEY, OSError()
    if kind is aiohttp.ClientConnectorCertificateError:
        error._certificate_error = ssl.SSLCertVerificationError()
    assert isinstance(error, Exception)
    return error


CODES = {
    client_exceptions.ClientResponseError: "broken_answer",
    client_exceptions.ContentTypeError: "broken_answer",
    client_exceptions.WSServerHandshakeError: "broken_answer",
    client_exceptions.TooManyRedirects: "broken_answer",
    client_exceptions.ClientPayloadError: "broken_answer",
    client_exceptions.ClientConnectorError: "connect_failed",
    client_exceptions.ClientProxyConnectionError: "connect_failed",
    client_exceptions.UnixClientConnectorError: "connect_failed",
    client_exceptions.ClientConnectorDNSError: "dns",
    client_exceptions.ClientSSLError: "tls",
    client_exceptions.ClientConnectorSSLError: "tls",
    client_exceptions.ClientConnectorCertificateError: "tls",
    client_exceptions.ServerFingerprintMismatch: "tls",
    client_exceptions.ServerTimeoutError: "timeout",
    client_exceptions.ConnectionTimeoutError: "timeout",
    client_exceptions.SocketTimeoutError: "timeout",
    client_exceptions.InvalidURL: "invalid_url",
    client_exceptions.InvalidUrlClientError: "invalid_url",
    client_exceptions.RedirectClientError: "invalid_url",
    client_exceptions.NonHttpUrlClientError: "invalid_url",
    client_exceptions.InvalidUrlRedirectClientError: "invalid_url",
    client_exceptions.NonHttpUrlRedirectClientError: "invalid_url",
    client_exceptions.ClientError: "disconnected",
    client_exceptions.ClientConnectionError: "disconnected",
    client_exceptions.ClientConnectionResetError: "disconnected",
    client_exceptions.ClientOSError: "disconnected",
    client_exceptions.ServerConnectionError: "disconnected",
    client_exceptions.ServerDisconnectedError: "disconnected",
    getattr(client_exceptions, "UploadAbortedError", client_exceptions.ClientError): "disconnected",
    **dict.fromkeys(errors_of(http_exceptions), "broken_answer"),
}
"""What each of them is called. An error that a new aiohttp brings is missing here, and the test says so."""


@pytest.mark.parametrize("kind", ERRORS_OF_AIOHTTP)
def test_every_error_of_aiohttp_is_caught_and_named(kind: type[Exception]) -> None:
    assert issubclass(kind, KNOWN_ERRORS)
    assert fault_of(bare(kind), begun=True).code == CODES[kind]


def test_every_name_is_in_the_reference() -> None:
    reference = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "http-sink.md").read_text(
        encoding="utf-8"
    )
    names = {*CODES.values(), *(name for name, _ in SOCKET_CODES.values())}
    assert [name for name in sorted(names) if f"| `{name}` |" not in reference] == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ECONNREFUSED, "connect_refused"),
        (errno.ENETUNREACH, "no_route"),
        (errno.EHOSTUNREACH, "no_route"),
        (errno.ENETDOWN, "no_route"),
        (errno.ETIMEDOUT, "connect_timeout"),
        (errno.EACCES, "connect_failed"),
    ],
)
@pytest.mark.parametrize("kind", [aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError])
def test_no_connection_is_named_after_its_cause(
    number: int, code: str, kind: type[aiohttp.ClientConnectorError]
) -> None:
    fault = fault_of(kind(KEY, OSError(number, "whatever")), begun=False)
    assert (fault.code, fault.reached) == (code, False)


def test_a_proxy_that_cannot_be_reached_is_told_as_such() -> None:
    error = aiohttp.ClientProxyConnectionError(KEY, OSError(errno.ECONNREFUSED, "refused"))
    assert fault_of(error, begun=False).message == "the proxy cannot be reached (connect_refused)"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (ConnectionResetError(), "disconnected"),
        (BrokenPipeError(), "disconnected"),
        (asyncio.IncompleteReadError(b"", 1), "disconnected"),
        (ssl.SSLError(), "tls"),
        (ssl.SSLCertVerificationError(), "tls"),
        (socket.gaierror(), "dns"),
        (UnicodeError("label too long"), "invalid_url"),
    ],
)
def test_every_error_of_the_sockets_is_caught_and_named(error: Exception, code: str) -> None:
    assert isinstance(error, KNOWN_ERRORS)
    assert fault_of(error, begun=True).code == code


def test_a_timeout_before_anything_was_sent_means_that_nobody_was_reached() -> None:
    fault = fault_of(TimeoutError(), begun=False)
    assert (fault.code, fault.reached) == ("connect_timeout", False)


def test_a_connection_that_ended_in_a_tls_alert_is_a_tls_fault() -> None:
    error = aiohttp.ClientOSError(1, "alert")
    error.__cause__ = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED]")
    assert fault_of(error, begun=True).code == "tls"


def test_a_certificate_fault_says_what_is_wrong_with_it() -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_message = "certificate has expired"
    expected = "the destination's certificate is not trusted: certificate has expired"
    assert fault_of(aiohttp.ClientConnectorCertificateError(KEY, error), begun=False) == Fault(
        code="tls", message=expected
    )
