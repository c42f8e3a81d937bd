"""Who may see the console and who may act in it, over real sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request

from carrick.console import door
from carrick.console.api import Console
from carrick.console.door import Door
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.relay.threads import Threads
from carrick.settings import Settings
from carrick.testing.samples import declare
from carrick.web import tokens
from carrick.web.headers import secure
from carrick.web.routes import application
from carrick.web.server import serving
from carrick.web.tokens import AdminToken

TOKEN = "a-token-for-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
GATE = {"channel": "things", "scope": "*"}
SIGN_IN = {"token": TOKEN, "name": "Robin"}


@dataclass
class Visitor:
    """Somebody with a browser's cookies."""

    url: str
    session: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, self.url + path, json=body, headers=self.headers | sent, allow_redirects=False
        ) as answer:
            text = await answer.read()
            value = msgspec.json.decode(text) if answer.content_type == "application/json" and text else text
            return answer.status, value, answer.headers

    async def api(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        status, value, _ = await self.ask(method, f"/api/console/{path}", body, **headers)
        return status, value

    async def mark(self) -> str:
        return str((await self.api("GET", "session"))[1]["mark"])


@asynccontextmanager
async def visiting(path: Path, *, is_demo: bool = False, **changed: Any) -> AsyncIterator[Visitor]:
    """A console of a store with one channel, and a visitor."""
    settings = Settings(instance_id="one", **{"internal_admin_enabled": True, "admin_token": TOKEN, **changed})
    migrate(path)
    jar = aiohttp.CookieJar(unsafe=True)
    with closing(SqliteStore(path)) as store, closing(Threads(2)) as threads:
        declare(store)
        console = Console(store, threads, settings, AdminToken(settings.admin_token), service="test", is_demo=is_demo)
        app = application(console.routes(), max_body_bytes=100_000)
        app.on_shutdown.append(console.close)
        secure(app, is_https=False)
        async with serving(app, "127.0.0.1", 0) as port, aiohttp.ClientSession(cookie_jar=jar) as session:
            yield Visitor(f"http://127.0.0.1:{port}", session)


def run(path: Path, story: Callable[[Visitor], Awaitable[None]], **changed: Any) -> None:
    async def told() -> None:
        async with asyncio.timeout(30), visiting(path, **changed) as visitor:
            await story(visitor)

    asyncio.run(told())


EVERY = [
    ("GET", "/console/"),
    ("GET", "/api/console/session"),
    ("POST", "/api/console/session"),
    ("DELETE", "/api/console/session"),
    ("GET", "/api/console/overview"),
    ("GET", "/api/console/events"),
    ("GET", "/api/console/entries?channel=things"),
    ("GET", "/api/console/entries/0190b0f0-0000-7000-8000-000000000000"),
    ("POST", "/api/console/redrive"),
    ("POST", "/api/console/discard"),
    ("POST", "/api/console/gates/open"),
    ("POST", "/api/console/gates/close"),
    ("POST", "/api/console/release-expired"),
]
OPEN_TO_ALL = {("GET", "/console/"), ("GET", "/api/console/session"), ("POST", "/api/console/session")}


def test_there_is_no_console_unless_it_is_enabled(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        for method, path in EVERY:
            status, said, _ = await visitor.ask(method, path, **BEARER)
            assert (status, said["error"]) == (404, "not_found"), path

    run(sqlite_path, story, internal_admin_enabled=False)


def test_without_the_token_nothing_is_told_and_nothing_changes(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        for method, path in EVERY:
            if (method, path) not in OPEN_TO_ALL:
                assert (await visitor.ask(method, path, {}))[0] == 401, path
        session = (await visitor.api("GET", "session"))[1]
        assert (session["signed_in"], session["mark"], session["instance"], session["panels"]) == (False, "", "", [])

    run(sqlite_path, story)


@pytest.mark.parametrize("header", ["Bearer wrong", "Basic abc", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x"])
def test_a_wrong_token_is_refused(sqlite_path: Path, header: str) -> None:
    async def story(visitor: Visitor) -> None:
        assert (await visitor.api("GET", "overview", Authorization=header))[0] == 401

    run(sqlite_path, story)


def test_a_bearer_token_reads_and_acts_without_a_mark(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        assert (await visitor.api("GET", "overview", **BEARER))[0] == 200
        assert (await visitor.api("POST", "gates/open", GATE, **BEARER))[0] == 200

    run(sqlite_path, story)


def test_signing_in_gives_a_cookie_that_no_script_and_no_other_site_gets(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        status, _, headers = await visitor.ask("POST", "/api/console/session", SIGN_IN)
        cookie = headers["Set-Cookie"]
        assert status == 204
        assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/api/console", "Max-Age=28800"))
        assert TOKEN not in cookie
        assert "Secure" not in cookie
        session = (await visitor.api("GET", "session"))[1]
        assert (session["signed_in"], session["name"], session["instance"]) == (True, "Robin", "one")
        assert (await visitor.api("GET", "overview"))[0] == 200
        _, _, behind_tls = await visitor.ask("POST", "/api/console/session", SIGN_IN, X_Forwarded_Proto="https")
        assert "Secure" in behind_tls["Set-Cookie"]

    run(sqlite_path, story)


def test_a_change_needs_the_mark_of_this_very_sign_in(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.api("POST", "session", SIGN_IN)
        mark = await visitor.mark()
        assert (await visitor.api("POST", "gates/open", GATE))[0] == 403
        assert (await visitor.api("POST", "gates/open", GATE, X_Console_Mark="f" * 64))[0] == 403
        assert (await visitor.api("POST", "gates/open", GATE, X_Console_Mark=mark))[0] == 200
        await visitor.api("POST", "session", SIGN_IN)
        assert (await visitor.api("POST", "gates/open", GATE, X_Console_Mark=mark))[0] == 403

    run(sqlite_path, story)


def test_a_page_of_another_site_can_neither_act_nor_sign_in(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        foreign = [{"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}]
        for header in foreign:
            assert (await visitor.api("POST", "session", SIGN_IN, **header))[0] == 403
        assert (await visitor.api("POST", "session", SIGN_IN, Origin=visitor.url))[0] == 204
        mark = await visitor.mark()
        for header in foreign:
            assert (await visitor.api("POST", "gates/open", GATE, X_Console_Mark=mark, **header))[0] == 403

    run(sqlite_path, story)


def test_a_cookie_that_was_changed_or_is_too_old_lets_nobody_in(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        _, _, headers = await visitor.ask("POST", "/api/console/session", SIGN_IN)
        value = headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        visitor.session.cookie_jar.clear()
        assert (await visitor.api("GET", "overview", Cookie=f"{door.COOKIE}={value}"))[0] == 200
        for other in (value[:-1] + ("0" if value[-1] != "0" else "1"), "x" + value, "é.", value * 9, "a.b", "."):
            assert (await visitor.api("GET", "overview", Cookie=f"{door.COOKIE}={other}"))[0] == 401

    run(sqlite_path, story)


async def status_of(visitor: Visitor, request: bytes) -> bytes:
    """What bytes on the wire are answered with."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(visitor.url.rpartition(":")[2]))
    writer.write(request)
    line = await reader.readline()
    writer.close()
    return line.split(b" ")[1]


def test_bytes_that_are_no_text_are_neither_token_nor_cookie_nor_mark(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        look = b"GET /api/console/overview HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n"
        assert await status_of(visitor, look % b"Authorization: Bearer \xff") == b"401"
        assert await status_of(visitor, look % b"Cookie: carrick_console=a.\xff") == b"401"
        assert await status_of(visitor, look % b"Cookie: carrick_console=\xff.a") == b"401"
        _, _, headers = await visitor.ask("POST", "/api/console/session", SIGN_IN)
        cookie = headers["Set-Cookie"].partition(";")[0].encode()
        act = b"POST /api/console/gates/open HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nCookie: %b\r\n%b\r\n\r\n"
        assert await status_of(visitor, act % (cookie, b"X-Console-Mark: \xff")) == b"403"

    run(sqlite_path, story)


def test_signing_out_takes_the_cookie_away(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.api("POST", "session", SIGN_IN)
        assert (await visitor.api("DELETE", "session", X_Console_Mark=await visitor.mark()))[0] == 204
        assert (await visitor.api("GET", "session"))[1]["signed_in"] is False

    run(sqlite_path, story)


def test_who_has_kept_a_cookie_cannot_use_it_after_the_sign_out(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        _, _, headers = await visitor.ask("POST", "/api/console/session", SIGN_IN)
        kept = headers["Set-Cookie"].partition(";")[0]
        await visitor.api("DELETE", "session", X_Console_Mark=await visitor.mark())
        assert (await visitor.api("GET", "overview", Cookie=kept))[0] == 401
        await visitor.api("POST", "session", SIGN_IN)
        assert (await visitor.api("GET", "overview"))[0] == 200

    run(sqlite_path, story)


def test_guesses_are_told_to_wait_and_the_right_token_never(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        for guess in range(tokens.WRONG_TOKENS):
            if guess % 2:
                assert (await visitor.api("GET", "overview", Authorization=f"Bearer {guess}"))[0] == 401
            else:
                assert (await visitor.api("POST", "session", {"token": f"{guess}", "name": "x"}))[0] == 401
        status, _, headers = await visitor.ask("POST", "/api/console/session", SIGN_IN | {"token": "one more"})
        assert status == 429
        assert 1 <= int(headers["Retry-After"]) <= tokens.WRONG_SECONDS
        assert (await visitor.api("GET", "overview", **BEARER))[0] == 200
        assert (await visitor.api("POST", "session", SIGN_IN))[0] == 204

    run(sqlite_path, story)


def test_who_is_signed_in_is_not_stopped_by_the_guesses_of_others(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.api("POST", "session", SIGN_IN)
        for guess in range(tokens.WRONG_TOKENS + 1):
            await visitor.api("GET", "overview", Authorization=f"Bearer {guess}")
        assert (await visitor.api("GET", "overview"))[0] == 200

    run(sqlite_path, story)


def test_without_a_token_it_is_closed_but_in_the_demo(sqlite_path: Path) -> None:
    async def closed(visitor: Visitor) -> None:
        for method, path in EVERY:
            status, said, _ = await visitor.ask(method, path)
            assert (status, said["error"]) == (403, "closed")
            assert "ADMIN_TOKEN" in said["message"]

    run(sqlite_path, closed, admin_token="")

    async def demo(visitor: Visitor) -> None:
        assert (await visitor.api("GET", "session"))[1]["is_demo"] is True
        assert (await visitor.api("GET", "overview"))[0] == 200
        assert (await visitor.api("POST", "gates/open", GATE))[0] == 403
        assert (await visitor.api("POST", "gates/open", GATE, X_Console_Mark=await visitor.mark()))[0] == 200
        for header in ({"Host": "evil.example"}, {"X_Forwarded_For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}):
            assert (await visitor.api("GET", "overview", **header))[0] == 403

    run(sqlite_path, demo, admin_token="", is_demo=True)


def test_in_a_demo_with_a_token_the_token_counts(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        assert (await visitor.api("GET", "overview"))[0] == 401

    run(sqlite_path, story, is_demo=True)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 61])
def test_a_name_that_is_none_is_refused(sqlite_path: Path, name: str) -> None:
    async def story(visitor: Visitor) -> None:
        status, said = await visitor.api("POST", "session", {"token": TOKEN, "name": name})
        assert status == 400
        assert "name" in said["message"]

    run(sqlite_path, story)


def test_the_token_is_in_no_log(sqlite_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def story(visitor: Visitor) -> None:
        await visitor.api("POST", "session", SIGN_IN)
        await visitor.api("POST", "gates/open", GATE, **BEARER)
        await visitor.api("GET", "overview", Authorization="Bearer another-token")

    run(sqlite_path, story)
    assert "console.action" in caplog.text
    assert TOKEN not in caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert "another-token" not in "".join(str(record.__dict__) for record in caplog.records)


def test_the_page_may_load_its_own_scripts_only(sqlite_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        status, _, headers = await visitor.ask("GET", "/console/")
        policy = headers["Content-Security-Policy"]
        assert status == 200
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        _, _, told = await visitor.ask("GET", "/api/console/overview", **BEARER)
        assert told["Cache-Control"] == "no-store"
        assert told["X-Content-Type-Options"] == "nosniff"
        assert (await visitor.ask("GET", "/console"))[0] == 308
        assert (await visitor.ask("GET", "/console/../../settings.py"))[0] == 404

    run(sqlite_path, story)


def test_a_pass_ends_by_itself() -> None:
    now = [0.0]
    guarded = Door(AdminToken(TOKEN), enabled=True, clock=lambda: now[0])
    value = guarded.sign_in(make_mocked_request("POST", "/", headers={"Host": "x"}), TOKEN, "Robin")
    assert guarded._pass(value) is not None
    assert Door(AdminToken("another"), enabled=True, clock=lambda: 0.0)._pass(value) is None
    now[0] = door.SIGNED_IN_SECONDS
    assert guarded._pass(value) is None
