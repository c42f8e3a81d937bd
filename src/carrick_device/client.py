"""The server over HTTP. Every failure to get an answer is a value; nothing is believed or followed here."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp

from carrick_device.answers import Reply, Response, Unreachable
from carrick_device.errors import DeviceError
from carrick_device.signing_in import GRANT_TYPE

TIMEOUT_SECONDS = 20.0
"""Longer than the server ever takes for an answer: it waits 9 seconds for OSM, and a little for its database."""
MAX_ANSWER_BYTES = 512 * 1024
MAX_MESSAGE_BYTES = 16 * 1024
PING_SECONDS = 30.0
AGENT = "carrick-device"


class Server:
    """One server, with the connections to it. One per process; close it at the end."""

    def __init__(self, url: str, client_id: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.url = checked_url(url)
        self._client_id = client_id
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    @property
    def client_id(self) -> str:
        """How the server knows this kind of device."""
        return self._client_id

    @property
    def host(self) -> str:
        """The name of the server, for people."""
        return urlsplit(self.url).netloc

    async def close(self) -> None:
        """End the connections. Closing again changes nothing."""
        if self._session is not None:
            await self._session.close()

    async def authorize(self) -> Reply:
        """Ask for a code."""
        return await self._ask("POST", "/device/authorize", form={"client_id": self._client_id})

    async def token(self, device_code: str) -> Reply:
        """Ask whether the code has been confirmed."""
        form = {"grant_type": GRANT_TYPE, "device_code": device_code, "client_id": self._client_id}
        return await self._ask("POST", "/device/token", form=form)

    async def patrols(self, token: str) -> Reply:
        """Ask for the scores."""
        return await self._ask("GET", "/api/v1/patrols", headers=_bearer(token))

    @asynccontextmanager
    async def listening(self, token: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """The connection on which the server tells that there is news. Raises aiohttp.ClientError or TimeoutError."""
        async with asyncio.timeout(self._timeout.total):
            socket = await self._opened().ws_connect(
                f"{self.url}/ws/device", headers=_bearer(token), heartbeat=PING_SECONDS, max_msg_size=MAX_MESSAGE_BYTES
            )
        async with socket:
            yield socket

    async def _ask(
        self, method: str, path: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        call = self._opened().request(
            method, f"{self.url}{path}", data=form, headers=headers, allow_redirects=False, timeout=self._timeout
        )
        try:
            async with call as answer:
                body = await answer.content.read(MAX_ANSWER_BYTES + 1)
                while len(body) <= MAX_ANSWER_BYTES and (more := await answer.content.read(MAX_ANSWER_BYTES)):
                    body += more
                if len(body) > MAX_ANSWER_BYTES:
                    return Unreachable(f"The answer of {self.host} is too long.")
                return Response(answer.status, {name.lower(): value for name, value in answer.headers.items()}, body)
        except TimeoutError:
            return Unreachable(f"{self.host} does not answer.")
        except aiohttp.ClientError as error:
            return Unreachable(_why(error, self.host))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True),  # minutes lie between two requests
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": AGENT, "Accept": "application/json", "Accept-Encoding": "identity"},
                auto_decompress=False,  # a few bytes must not become many
                middlewares=[_once],
            )
        return self._session


def checked_url(url: str) -> str:
    """The address of a server without a slash at its end. Raises DeviceError when it is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = not (parts.query or parts.fragment or "@" in parts.netloc) and port != 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or not url.isprintable() or " " in url:
        raise DeviceError(
            f"--server {url!r} is no address of a server; accepted is one such as https://scores.example.org"
        )
    return url.rstrip("/")


def is_open_to_listeners(url: str) -> bool:
    """Whether others on the network could read the token on its way."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not _is_this_machine(parts.hostname or "")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending a request again by itself when the connection is lost: when to ask is our business."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error)) from error


def _why(error: aiohttp.ClientError, host: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"The certificate of {host} is not accepted; is the clock of this device right?"
    if isinstance(error, aiohttp.ClientConnectionError):
        return f"Cannot reach {host}."
    return f"The answer of {host} makes no sense."
