"""The HTTP sink on real sockets: connections, certificates and proxies."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from carrick.settings import CloudSettings
from carrick.sinks import http
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Report, Unavailable
from carrick.testing.samples import claimed
from tests.ports import free_port
from tests.receivers import (
    Line,
    Receiver,
    Reply,
    Request,
    accepting,
    answering,
    head,
    raw,
    receiving,
    run,
    tunnelling,
)
from tests.unit.sinks.sending import (
    ALL_DELIVERED,
    delivery,
    sending,
    sent_by,
    unavailable,
)

pytestmark = pytest.mark.filterwarnings("error")


# Connections


def test_a_connection_that_ended_while_idle_is_replaced_without_a_report() -> None:
    async def hanging_up(request: Request, line: Line) -> bool:
        return False

    async def story() -> tuple[Report, list[list[str]], int]:
        async with (
            receiving(accepting, hanging_up, accepting) as receiver,
            sending(receiver.port, auth_mode="hmac", hmac_secret="s3cret") as sink,
        ):
            await sink.deliver(delivery([claimed()]))
            report = await sink.deliver(delivery([claimed()]))
            signatures = [request.headers["x-edge-signature"] for request in receiver.requests]
            return report, [request.event_ids for request in receiver.requests], len(set(signatures))

    report, requests, signatures = run(story())
    assert report == ALL_DELIVERED
    assert (len(requests), signatures) == (3, 3)


def test_a_connection_that_ended_while_idle_is_unsure_where_a_repetition_counts() -> None:
    async def story() -> tuple[Report, int]:
        async with receiving(accepting, raw(b"")) as receiver, sending(receiver.port, idempotent=False) as sink:
            await sink.deliver(delivery([claimed()]))
            return await sink.deliver(delivery([claimed()])), len(receiver.requests)

    report, requests = run(story())
    assert unavailable(report).unsure
    assert requests == 2


def test_a_fresh_connection_that_ends_is_not_tried_again() -> None:
    report, receiver = sent_by(raw(b""))
    assert unavailable(report).code == "disconnected"
    assert receiver.connections == 1


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_refused_connection_is_told_as_such_and_nothing_was_sent(idempotent: bool) -> None:
    async def story() -> Report:
        async with sending(free_port(), idempotent=idempotent) as sink:
            return await sink.deliver(delivery([claimed()]))

    found = unavailable(run(story()))
    assert (found.code, found.connection, found.unsure) == ("connect_refused", True, False)


def test_a_name_that_cannot_be_resolved_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> tuple[Report, bool]:
        async def getaddrinfo(*args: object, **kwargs: object) -> object:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        sink = HttpSink(CloudSettings(url="http://nowhere.invalid/"), edge_id="edge-1")
        report, reachable = await sink.deliver(delivery([claimed()])), await sink.reachable()
        await sink.close()
        return report, reachable

    report, reachable = run(story())
    found = unavailable(report)
    assert (found.code, found.connection, reachable) == ("dns", True, False)


def test_a_connection_that_does_not_come_about_is_a_timeout_before_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.1)

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.transport.abort()

    async def story() -> Report:
        server = await asyncio.start_server(mute, "127.0.0.1", 0)  # takes connections, never speaks TLS
        async with server, sending(server.sockets[0].getsockname()[1], scheme="https", idempotent=False) as sink:
            return await sink.deliver(delivery([claimed()]))

    found = unavailable(run(story()))
    assert (found.code, found.connection, found.unsure) == ("connect_timeout", True, False)


def test_a_closed_sink_sends_nothing() -> None:
    async def story() -> tuple[Report, int]:
        async with receiving() as receiver, sending(receiver.port) as sink:
            await sink.close()
            return await sink.deliver(delivery([claimed()])), receiver.connections

    report, connections = run(story())
    assert (unavailable(report).code, connections) == ("closed", 0)


# TLS and proxies


class Certificates:
    """An authority, and files with what it has issued."""

    def __init__(self, folder: Path) -> None:
        self._ca = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self.client_cert = str(folder / "client.pem")
        self._ca.cert_pem.write_to_path(self.ca_file)
        self._ca.issue_cert("edge-1.example").private_key_and_cert_chain_pem.write_to_path(self.client_cert)

    def server(self, *, host: str = "127.0.0.1", ask_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(host).configure_cert(context)
        if ask_client:
            context.verify_mode = ssl.CERT_REQUIRED
            self._ca.configure_trust(context)
        return context


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def report_over_tls(context: ssl.SSLContext, **settings: Any) -> Report:
    async def story() -> Report:
        async with (
            receiving(tls=context) as receiver,
            sending(receiver.port, scheme="https", **settings) as sink,
        ):
            return await sink.deliver(delivery([claimed()]))

    return run(story())


def test_a_certificate_of_the_ca_file_is_trusted(certificates: Certificates) -> None:
    assert report_over_tls(certificates.server(), ca_file=certificates.ca_file) == ALL_DELIVERED


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_certificate_of_somebody_else_is_a_tls_fault(certificates: Certificates, idempotent: bool) -> None:
    found = unavailable(report_over_tls(certificates.server(), idempotent=idempotent))
    assert (found.code, found.connection, found.unsure) == ("tls", False, False)


def test_a_certificate_of_another_host_is_a_tls_fault(certificates: Certificates) -> None:
    context = certificates.server(host="other.example")
    assert unavailable(report_over_tls(context, ca_file=certificates.ca_file)).code == "tls"


@pytest.mark.parametrize("auth_mode", ["none", "api_key", "hmac"])
def test_a_client_certificate_goes_with_any_authentication(certificates: Certificates, auth_mode: str) -> None:
    report = report_over_tls(
        certificates.server(ask_client=True),
        ca_file=certificates.ca_file,
        client_cert=certificates.client_cert,
        auth_mode=auth_mode,
        api_key="k",
        hmac_secret="s",
    )
    assert report == ALL_DELIVERED


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_client_certificate_is_no_fault_of_the_entries(
    certificates: Certificates, version: ssl.TLSVersion
) -> None:
    context = certificates.server(ask_client=True)
    context.minimum_version = context.maximum_version = version
    assert isinstance(report_over_tls(context, ca_file=certificates.ca_file), Unavailable)


def test_plain_http_where_tls_is_expected_is_a_tls_fault() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(head(400, {"content-length": "0"}))
        await writer.drain()
        await reader.read()
        writer.transport.abort()

    async def story() -> Report:
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with server, sending(server.sockets[0].getsockname()[1], scheme="https") as sink:
            return await sink.deliver(delivery([claimed()]))

    assert unavailable(run(story())).code == "tls"


def with_proxy(story: Callable[[Receiver, Receiver], Awaitable[Report]], *replies: Reply) -> Report:
    """Run the story with a destination and a proxy that replies so."""

    async def told() -> Report:
        async with receiving() as destination, receiving(*replies) as proxy:
            return await story(destination, proxy)

    return run(told())


def test_plain_http_goes_to_the_proxy_with_the_whole_address_and_its_password() -> None:
    async def story(destination: Receiver, proxy: Receiver) -> Report:
        proxy_url = f"http://me:pass@127.0.0.1:{proxy.port}"
        async with sending(destination.port, proxy=proxy_url) as sink:
            report = await sink.deliver(delivery([claimed()]))
        (request,) = proxy.requests
        assert request.target == f"http://127.0.0.1:{destination.port}/api/v1/edge/batch"
        assert request.headers["proxy-authorization"] == "Basic bWU6cGFzcw=="
        assert destination.connections == 0
        return report

    assert with_proxy(story, accepting) == ALL_DELIVERED


def test_tls_goes_through_a_tunnel_of_the_proxy(certificates: Certificates) -> None:
    async def story() -> tuple[Report, Request]:
        async with (
            receiving(tls=certificates.server()) as destination,
            receiving(tunnelling(destination.port)) as proxy,
            sending(
                destination.port,
                scheme="https",
                ca_file=certificates.ca_file,
                proxy=f"http://127.0.0.1:{proxy.port}",
                auth_mode="api_key",
                api_key="s3cret",
            ) as sink,
        ):
            return await sink.deliver(delivery([claimed()])), proxy.requests[0]

    report, request = run(story())
    assert report == ALL_DELIVERED
    assert request.method == "CONNECT"
    assert "x-api-key" not in request.headers


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(destination: Receiver, proxy: Receiver) -> Report:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with sending(destination.port) as sink:
            report = await sink.deliver(delivery([claimed()]))
        assert (proxy.connections, destination.connections) == (1, 0)
        return report

    assert with_proxy(story, accepting) == ALL_DELIVERED


def test_a_proxy_that_refuses_the_tunnel_is_told_as_such() -> None:
    async def story(destination: Receiver, proxy: Receiver) -> Report:
        async with sending(destination.port, scheme="https", proxy=f"http://127.0.0.1:{proxy.port}") as sink:
            return await sink.deliver(delivery([claimed()]))

    found = unavailable(with_proxy(story, answering(407)))
    assert (found.code, found.connection, found.unsure) == ("proxy_407", False, False)


def test_a_proxy_that_is_not_there_is_told_as_such() -> None:
    async def story() -> tuple[Report, bool]:
        async with receiving() as receiver, sending(receiver.port, proxy=f"http://127.0.0.1:{free_port()}") as sink:
            return await sink.deliver(delivery([claimed()])), await sink.reachable()

    report, reachable = run(story())
    found = unavailable(report)
    assert (found.code, found.connection, reachable) == ("connect_refused", True, False)
    assert "proxy" in found.message


def test_reachable_sends_nothing() -> None:
    async def story() -> tuple[bool, list[Request]]:
        async with receiving() as receiver, sending(receiver.port) as sink:
            return await sink.reachable(), receiver.requests

    assert run(story()) == (True, [])
