"""The HTTP sink: posts batches to an ingest endpoint, one tenant at a time, and reads what became of each event."""

from __future__ import annotations

import asyncio
import base64
import gzip
import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, assert_never
from uuid import UUID, uuid4
from weakref import WeakSet

import aiohttp
from yarl import URL

from carrick import tracing
from carrick.entry import Entry, Outcome
from carrick.settings import CloudSettings
from carrick.sinks.answers import LIMIT_BYTES, Answer, report_of
from carrick.sinks.bandwidth import Bandwidth
from carrick.sinks.body import Body
from carrick.sinks.connecting import destination_of, proxy_of, tls_context
from carrick.sinks.envelope import body_of, by_tenant, faults_in
from carrick.sinks.faults import KNOWN_ERRORS, fault_of, unavailable
from carrick.sinks.signing import signature
from carrick.sinks.sink import Delivery, Refused, Report, Results, Sink, Unavailable, unfit
from carrick.sinks.traceparent import child_of
from carrick.variables import listed, refused

log = logging.getLogger("carrick.sinks")

LEAST_SECONDS = 0.2
"""With less than this left, no request is started."""
SPARE_SECONDS = 0.05
"""A request is over this long before the delivery must be."""
CONNECT_SECONDS = 10.0
REACHABLE_SECONDS = 2.0
KNOCK_SECONDS = 5.0
IDLE_SECONDS = 30.0
"""How long a connection is kept for the next request."""
GZIP_LEVEL = 3
"""Half the work of the usual 6 for a tenth more bytes; zstd is better at both, where the receiver knows it."""
ZSTD_LEVEL = 3
THREAD_BYTES = 256 * 1024
"""What is larger is compressed in a thread, so that other deliveries go on meanwhile."""


HANDSHAKE_PATH = "/diagnostics/handshake"


class Greeting(NamedTuple):
    """What the destination said when it was asked for nothing but itself, or why it did not."""

    status: int | None = None
    date: str | None = None
    text: bytes | None = None
    error: str | None = None


class Now(Protocol):
    """The time of day, with its zone."""

    def __call__(self) -> datetime: ...


def utc_now() -> datetime:
    return datetime.now(UTC)


class HttpSink(Sink):
    """Posts to the endpoint of the settings. Used by several deliveries at once, from one event loop.

    `idempotent`: the destination tells a repeated event by its id, so what may have arrived is simply sent again.
    Raises SettingsError when made with an address, a credential or a certificate that cannot be used.
    """

    def __init__(
        self,
        cloud: CloudSettings,
        *,
        edge_id: str,
        idempotent: bool = True,
        bandwidth: Bandwidth | None = None,
        now: Now = utc_now,
    ) -> None:
        self._url = destination_of(cloud)
        self._proxy = proxy_of(cloud, self._url)
        self._tls = tls_context(cloud) if "https" in (self._url.scheme, self._proxy and self._proxy.scheme) else None
        self._auth_mode = cloud.auth_mode
        self._api_key = _credential("CLOUD_API_KEY", cloud.api_key)
        self._hmac_secret = _credential("CLOUD_HMAC_SECRET", cloud.hmac_secret)
        self._secrets = _secrets(self._api_key, self._hmac_secret, self._url, self._proxy)
        self._compression = cloud.compression
        self._timeout_seconds = cloud.timeout_seconds
        limited = Bandwidth(cloud.bytes_per_second) if cloud.bytes_per_second else None
        self._bandwidth = bandwidth if bandwidth is not None else limited
        self._edge_id = edge_id
        self.idempotent = self.side_by_side = idempotent
        self._now = now
        self._last_timestamp = 0
        self._connections: WeakSet[Any] = WeakSet()
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpSink({str(self._url.origin())!r})"

    async def deliver(self, delivery: Delivery) -> Report:
        """One request per tenant, in order. After one that did not get through, the rest is not tried.

        What a tenant's request has achieved is never hidden by the failure of another's: then there are results, and
        the entries they do not name go back unspent and will be the first of their next delivery.
        """
        tenants = by_tenant(delivery.entries)
        if len(tenants) == 1:
            return await self._send(tenants[0], delivery)
        outcomes: dict[UUID, Outcome] = {}
        for entries in tenants:
            report = await self._send(entries, delivery)
            match report:
                case Results():
                    outcomes.update(report.outcomes)
                case Refused() | Unavailable() if not outcomes:
                    return report
                case Unavailable(unsure=True):
                    unsure = Outcome.unsure(code=report.code, message=report.message)
                    outcomes.update(dict.fromkeys((entry.id for entry in entries), unsure))
                    break
                case Refused() | Unavailable():
                    break
                case _:
                    assert_never(report)
        return Results(outcomes=outcomes)

    async def reachable(self) -> bool:
        """Whether the destination, or the proxy before it, takes a connection."""
        target = self._proxy or self._url
        try:
            async with asyncio.timeout(REACHABLE_SECONDS):
                _, writer = await asyncio.open_connection(target.host, target.port)
        except (OSError, UnicodeError):
            return False
        writer.transport.abort()
        return True

    async def greet(self) -> Greeting:
        """Ask the destination for its handshake, beside the address that batches go to. Sends nothing of ours."""
        url = self._url.with_path(self._url.path.rpartition("/")[0] + HANDSHAKE_PATH)
        try:
            async with asyncio.timeout(REACHABLE_SECONDS):
                response = await self._opened().get(url, proxy=self._proxy, allow_redirects=False)
                async with response:
                    text = await _read(response)
        except KNOWN_ERRORS as error:
            fault = fault_of(error, begun=False)
            return Greeting(error=f"{fault.code}: {fault.message}")
        return Greeting(status=response.status, date=response.headers.get("Date"), text=text)

    async def knock(self) -> Greeting:
        """Post a batch without events, with our credential: the status tells whether it is accepted."""
        content = self._pack(body_of((), edge_id=self._edge_id, sent_at=self._now()))
        body = Body(content, None, self._connections)
        until = asyncio.get_running_loop().time() + KNOCK_SECONDS
        try:
            answer = await self._exchange(body, self._headers((), content, str(uuid4())), until)
        except KNOWN_ERRORS as error:
            fault = fault_of(error, begun=body.begun)
            return Greeting(error=f"{fault.code}: {fault.message}")
        return Greeting(status=answer.status, date=answer.headers.get("Date"))

    async def close(self) -> None:
        """End the connections. Closing again changes nothing."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _send(self, entries: Sequence[Entry], delivery: Delivery) -> Report:
        """The entries of one tenant. A connection that the other side ended while it was idle is worth a second try.

        Where no event can be made of some entries, those are rejected; the others go back, and come again without them.
        """
        request_id = str(uuid4())
        try:
            content = await self._packed(entries)
        except Exception:
            faults = faults_in(entries)
            if not faults:
                raise
            return Results(outcomes={entry_id: unfit(fault) for entry_id, fault in faults.items()})
        report, stale = await self._try(entries, content, request_id, delivery)
        if stale and self.idempotent:
            report, _ = await self._try(entries, content, request_id, delivery)
        if isinstance(report, Refused | Unavailable):
            log.info("sink.http_failed", extra={"code": report.code, "request_id": request_id})
        return report

    async def _try(
        self, entries: Sequence[Entry], content: bytes, request_id: str, delivery: Delivery
    ) -> tuple[Report, bool]:
        """One request, and whether it failed only because its connection was stale."""
        seconds = delivery.seconds_left() - SPARE_SECONDS
        problem = self._not_started(entries, content, seconds)
        if problem is not None:
            return problem, False
        body = Body(content, self._bandwidth, self._connections)
        until = asyncio.get_running_loop().time() + min(seconds, self._patience(content))
        try:
            answer = await self._exchange(body, self._headers(entries, content, request_id), until)
        except KNOWN_ERRORS as error:
            fault = fault_of(error, begun=body.begun)
            unsure = body.begun and not self.idempotent
            return unavailable(fault, unsure=unsure), body.reused and fault.code == "disconnected"
        sent = [entry.id for entry in entries]
        return report_of(answer, sent, now=self._now(), idempotent=self.idempotent), False

    def _not_started(self, entries: Sequence[Entry], content: bytes, seconds: float) -> Report | None:
        """Why the request cannot be made in the time that is left, if so.

        What is too much for the bandwidth is reported as too large: it is split, and the next batches are smaller.
        """
        if self._closed:
            return Unavailable(code="closed", message="the sink is closed")
        needed = self._bandwidth.seconds_for(len(content)) if self._bandwidth is not None else 0.0
        if seconds >= max(needed, LEAST_SECONDS):
            return None
        if seconds >= LEAST_SECONDS and len(entries) > 1:
            message = f"{len(content)} bytes do not go out within the lease at this bandwidth"
            return Refused(code="too_slow", message=message, too_large=True)
        return Unavailable(code="lease_short", message="the lease leaves no time for a request")

    def _patience(self, content: bytes) -> float:
        """How long the destination may take; the time that our own bandwidth limit takes is not its fault."""
        limited = self._bandwidth.seconds_for(len(content)) if self._bandwidth is not None else 0.0
        return self._timeout_seconds + limited

    async def _exchange(self, body: Body, headers: dict[str, str], until: float) -> Answer:
        """Post and read the answer. Raises KNOWN_ERRORS; not if only the text of a status other than 2xx is missing."""
        async with asyncio.timeout_at(until):
            response = await self._opened().post(
                self._url, data=body, headers=headers, proxy=self._proxy, allow_redirects=False
            )
        text: bytes | None = None
        async with response:
            try:
                async with asyncio.timeout_at(until):
                    text = await _read(response)
            except KNOWN_ERRORS:
                if 200 <= response.status < 300:
                    raise
        return Answer(status=response.status, headers=response.headers, body=text, secrets=self._secrets)

    def _headers(self, entries: Sequence[Entry], content: bytes, request_id: str) -> dict[str, str]:
        headers = {"x-request-id": request_id}
        if self._compression != "none":
            headers["content-encoding"] = self._compression
        tenant = entries[0].tenant_id if entries else ""
        if tenant and tenant.isascii() and tenant.isprintable() and tenant == tenant.strip():
            headers["x-tenant-id"] = tenant
        traceparent = self._traceparent(entries)
        if traceparent is not None:
            headers["traceparent"] = traceparent
        match self._auth_mode:
            case "api_key":
                headers["x-api-key"] = self._api_key
            case "hmac":
                timestamp = self._timestamp()
                headers["x-edge-timestamp"] = str(timestamp)
                headers["x-edge-signature"] = signature(self._hmac_secret, timestamp, self._url.raw_path, content)
            case "none":
                pass
            case _:
                assert_never(self._auth_mode)
        return headers

    def _timestamp(self) -> int:
        """Milliseconds, never the same twice: a receiver may take two equal signatures for a replay."""
        self._last_timestamp = max(int(self._now().timestamp() * 1000), self._last_timestamp + 1)
        return self._last_timestamp

    def _traceparent(self, entries: Sequence[Entry]) -> str | None:
        """The span of this delivery where there is one, else a new one in the trace of the first entry that has one."""
        if here := tracing.current():
            return here
        traced = (child_of(entry.traceparent, os.urandom(8).hex()) for entry in entries if entry.traceparent)
        return next(filter(None, traced), None)

    async def _packed(self, entries: Sequence[Entry]) -> bytes:
        """The body as it is sent."""
        body = body_of(entries, edge_id=self._edge_id, sent_at=self._now())
        return self._pack(body) if len(body) < THREAD_BYTES else await asyncio.to_thread(self._pack, body)

    def _pack(self, body: bytes) -> bytes:
        match self._compression:
            case "none":
                return body
            case "gzip":
                return gzip.compress(body, GZIP_LEVEL, mtime=0)
            case "zstd":
                import zstandard

                return zstandard.ZstdCompressor(ZSTD_LEVEL).compress(body)
            case _:
                assert_never(self._compression)

    def _opened(self) -> aiohttp.ClientSession:
        """The session, made when the first request needs it: it belongs to the event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls or True, limit=0, keepalive_timeout=IDLE_SECONDS),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, ceil_threshold=float("inf")),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"user-agent": "carrick", "accept": "application/json", "accept-encoding": "gzip"},
                auto_decompress=False,
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    """The answer's text as it came; None when it is longer than the limit, and then the connection is ended."""
    pieces: list[bytes] = []
    size = 0
    while piece := await response.content.readany():
        pieces.append(piece)
        size += len(piece)
        if size > LIMIT_BYTES:
            response.close()
            return None
    return b"".join(pieces)


def _secrets(api_key: str, hmac_secret: str, *addresses: URL | None) -> tuple[str, ...]:
    """What must not be passed on where an answer repeats it, in every form in which it is sent."""
    secrets = [api_key, hmac_secret]
    for address in filter(None, addresses):
        secrets += [address.query_string, address.raw_query_string]
        if address.password:
            login = f"{address.user or ''}:{address.password}".encode("latin-1", "replace")
            secrets += [address.password, address.raw_password or "", base64.b64encode(login).decode()]
    return tuple(filter(None, secrets))


def _credential(variable: str, value: str) -> str:
    """The first of a list with commas: the receiver accepts all of them while one replaces the other."""
    first = next(iter(listed(value)), "")
    if not (first.isascii() and first.isprintable()):
        raise refused(variable, "***", "printable ASCII characters")
    return first
