"""The device flow for tests: on a real socket, with a real database and the OSM simulator; browsers and devices."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from html.parser import HTMLParser
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from carrick import wiring
from carrick.relay.threads import Threads
from carrick.state.postgres.tables import PostgresTables as PostgresState
from carrick.state.shared import SharedState
from carrick.state.sqlite.tables import SqliteTables as SqliteState
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.web.headers import secure
from carrick.web.routes import application
from carrick.web.server import serving
from carrick_scoreboard.osm.answers import Profile
from carrick_scoreboard.osm.client import Application, OsmClient, Tokens
from carrick_scoreboard.routes import device_flow, pages
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import Rate, ScoreboardSettings
from carrick_scoreboard.sign_in import ADMIN, DEVICE, SignIn
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.store.tables import Tables
from carrick_scoreboard.web_security import Limits
from tests.osm import EVENING, ROBIN, Osm
from tests.ports import free_port
from tests.unit.scoreboard.osm.test_client import Calls, Notes

CLIENT = "wall-display"
PROXY = "127.0.0.1"
"""Tests come from here; where it is trusted, X-Forwarded-For says who they are."""
OFTEN = Rate(100_000, 60)


class Kept:
    """Keeps who has signed in."""

    def __init__(self) -> None:
        self.signed_in: list[tuple[Tokens, Profile]] = []

    async def sign_in(self, tokens: Tokens, profile: Profile) -> None:
        self.signed_in.append((tokens, profile))


class Board:
    """A scoreboard that is running."""

    def __init__(
        self, url: str, osm: Osm, tables: Tables, kv: SharedState, sign_in: SignIn, kept: Kept, clock: Clock
    ) -> None:
        self.url = url
        self.osm = osm
        self.devices = Devices(tables)
        self.clients = Clients(tables)
        self.kv = kv
        self.sign_in = sign_in
        self.kept = kept
        self.notes = Notes()
        self.clock = clock


@asynccontextmanager
async def board(osm: Osm, database: Path | str, *, port: int | None = None, **changed: Any) -> AsyncIterator[Board]:
    """The device flow on a free port; `changed` are settings that are not the usual ones of tests."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    settings = _settings(osm, url, changed)
    await osm.control(
        "app",
        client_id="carrick-demo",
        client_secret="not-a-secret",
        redirect_uris=[settings.exposed_domain + purpose.callback for purpose in (DEVICE, ADMIN)],
    )
    keys = KeyRing({"k": bytes(32)})
    tables, state, clock = _database(database)
    threads, kept, notes = Threads(4), Kept(), Notes()
    kv = SharedState(state, threads)
    client = OsmClient(settings.osm, notes, Calls(), timeout_seconds=5.0, now=lambda: EVENING)
    sign_in = SignIn(settings.osm, settings.exposed_domain, client, kept, kv, keys)
    made = Board(url, osm, tables, kv, sign_in, kept, clock)
    made.notes = notes
    made.clients.add(CLIENT, "Wall display", "", actor="test")
    routes = [
        *device_flow.routes(settings, made.devices, made.clients, threads, Limits(kv)),
        *pages.routes(settings, made.devices, made.clients, threads, kv, keys, sign_in, lambda: EVENING),
    ]
    app = application(routes, max_body_bytes=1024 * 1024)
    secure(app, is_https=settings.is_https)
    try:
        async with serving(app, "127.0.0.1", port, unfold=False):
            yield made
    finally:
        await client.close()
        await kv.close()
        threads.close()
        tables.close()


def _settings(osm: Osm, url: str, changed: Mapping[str, Any]) -> ScoreboardSettings:
    usual = {
        "osm": Application(osm.url, "carrick-demo", "not-a-secret"),
        "exposed_domain": url,
        "keys": None,
        "authorize_rate": OFTEN,
        "entry_rate": OFTEN,
        "trusted_proxies": (ip_network(PROXY),),
    }
    return ScoreboardSettings(**{**usual, **changed})


def _database(database: Path | str) -> tuple[Tables, SqliteState | PostgresState, Clock]:
    if isinstance(database, str):
        wiring.migrate(database)
        return PostgresTables(database), PostgresState(database), PostgresClock(database)
    wiring.migrate(f"sqlite:///{database}")
    return SqliteTables(database), SqliteState(database), SqliteClock(database)


class Form(HTMLParser):
    """The one form that is posted on a page: where to, and its hidden fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self.action = given["action"]
        if tag == "input" and given.get("type") == "hidden":
            self.fields[given["name"]] = given["value"]


class Page:
    """What a browser got: the address it ended at, and the page."""

    def __init__(self, url: str, status: int, headers: Mapping[str, str], text: str) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.text = text

    @property
    def title(self) -> str:
        found = re.search(r"<title>(.*?)( \u2013 Scoreboard)?</title>", self.text)
        return unescape(found[1]) if found else ""

    @property
    def form(self) -> Form:
        return Form(self.text)


class Browser:
    """A browser of one person: keeps cookies, follows redirects, fills in forms."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self.headers = dict(headers or {})
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    def cookies(self) -> dict[str, str]:
        return {cookie.key: cookie.value for cookie in self.session.cookie_jar}

    async def get(self, path: str, *, follow: bool = True) -> Page:
        return await self._ask("GET", path, None, follow=follow, headers={})

    async def post(
        self, path: str, form: Mapping[str, str], *, follow: bool = True, headers: Mapping[str, str] | None = None
    ) -> Page:
        return await self._ask("POST", path, form, follow=follow, headers=headers or {})

    async def send(self, page: Page, *, follow: bool = True, **fields: str) -> Page:
        """Send the form of that page, with these fields filled in."""
        form = page.form
        place = urlsplit(page.url)
        address = form.action if form.action.startswith("http") else f"{place.scheme}://{place.netloc}{form.action}"
        return await self.post(address, {**form.fields, **fields}, follow=follow)

    async def _ask(
        self, method: str, path: str, form: Mapping[str, str] | None, *, follow: bool, headers: Mapping[str, str]
    ) -> Page:
        url = path if path.startswith("http") else self._url + path
        asking = self.session.request(
            method, url, data=form, headers={**self.headers, **headers}, allow_redirects=follow
        )
        async with asking as answer:
            return Page(str(answer.url), answer.status, answer.headers.copy(), await answer.text())

    async def at_osm(self, user_code: str) -> Page:
        """Confirm the code; the sign-in page of OSM."""
        return await self.send(await self.get(f"/device?user_code={user_code}"))

    async def consent(self, user_code: str, user_id: int = ROBIN) -> Page:
        """Sign in at OSM; its page that asks for consent."""
        return await self.send(await self.at_osm(user_code), pick=str(user_id))

    async def signed_in(self, user_code: str, user_id: int = ROBIN) -> Page:
        """Allow it; the page to choose a section on."""
        return await self.send(await self.consent(user_code, user_id), decision="allow")


class Device:
    """A client of RFC 8628, written from its text: forms out, JSON in."""

    def __init__(self, url: str, client_id: str = CLIENT) -> None:
        self._url = url
        self._client_id = client_id
        self.granted: dict[str, Any] = {}

    async def ask(self, path: str, form: Mapping[str, str], **headers: str) -> tuple[int, dict[str, Any]]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(self._url + path, data=form, headers=headers) as answer,
        ):
            assert answer.content_type == "application/json"
            assert answer.headers["Cache-Control"] == "no-store"
            return answer.status, await answer.json()

    async def begin(self, **headers: str) -> str:
        """The device authorization request (3.1); the code for the person."""
        status, self.granted = await self.ask("/device/authorize", {"client_id": self._client_id}, **headers)
        assert status == 200, self.granted
        code: str = self.granted["user_code"]
        return code

    async def poll(self) -> tuple[int, dict[str, Any]]:
        """The device access token request (3.4)."""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "device_code": self.granted["device_code"],
            "client_id": self._client_id,
        }
        return await self.ask("/device/token", form)
