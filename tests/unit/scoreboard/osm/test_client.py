"""The client against a server on a real socket that answers as told."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from carrick.web.server import serving
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Patrol
from carrick_scoreboard.osm.classify import Budget, Deprecated
from carrick_scoreboard.osm.client import Application, Credential, OsmClient, Tokens
from carrick_scoreboard.osm.standing import KnownBudget, ServiceBlock, UserBlock

NOW = datetime(2026, 1, 8, 14, 30, tzinfo=UTC)
WHO = Credential(17, "secret-access-token")
PATROLS = {"7": {"patrolid": "7", "name": "Eagles", "points": "32", "members": [{}]}}
LIMITS = {"X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "950", "X-RateLimit-Reset": "600"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Notes:
    """A standing that writes down what it is told."""

    def __init__(self) -> None:
        self.service: ServiceBlock | None = None
        self.users: dict[int, UserBlock] = {}
        self.budgets: dict[int, KnownBudget] = {}
        self.deprecated: dict[str, Deprecated | None] = {}

    async def service_block(self) -> ServiceBlock | None:
        return self.service

    async def user_block(self, user_id: int) -> UserBlock | None:
        return self.users.get(user_id)

    async def budget(self, user_id: int) -> KnownBudget | None:
        return self.budgets.get(user_id)

    async def note_service_block(self, header: str) -> None:
        self.service = ServiceBlock(blocked_at=NOW, blocked_header_value=header)

    async def note_user_block(self, user_id: int, seconds: int) -> None:
        self.users[user_id] = UserBlock(blocked_at=NOW, retry_after=seconds)

    async def note_budget(self, user_id: int, budget: Budget) -> None:
        self.budgets[user_id] = KnownBudget(
            limit=budget.limit, remaining=budget.remaining, reset_at=NOW + timedelta(hours=1), last_updated=NOW
        )

    async def note_deprecated(self, endpoint: str, deprecated: Deprecated | None) -> None:
        self.deprecated[endpoint] = deprecated


class Calls:
    """Counts calls, by endpoint and status."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def called(self, endpoint: str, status: str, seconds: float) -> None:
        self.made.append((endpoint, status))


class Bench:
    """A client, what it notes, and the requests that came."""

    def __init__(self, client: OsmClient, notes: Notes, calls: Calls, requests: list[Any]) -> None:
        self.client = client
        self.notes = notes
        self.calls = calls
        self.requests = requests


@asynccontextmanager
async def bench(handler: Handler, timeout_seconds: float = 5.0) -> AsyncIterator[Bench]:
    requests: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        form = dict(await request.post())
        requests.append((request.method, request.path, dict(request.query), form, dict(request.headers)))
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", handle)
    notes, calls = Notes(), Calls()
    async with serving(app, "127.0.0.1", 0) as port:
        application = Application(f"http://127.0.0.1:{port}", "app-1", "secret-of-app")
        client = OsmClient(application, notes, calls, timeout_seconds=timeout_seconds, now=lambda: NOW)
        try:
            yield Bench(client, notes, calls, requests)
        finally:
            await client.close()


def answering(body: Any, status: int = 200, **headers: str) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        given = {**LIMITS, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return web.Response(text=body if isinstance(body, str) else json.dumps(body), status=status, headers=given)

    return handle


def test_patrols_are_asked_for_as_osm_wants_it() -> None:
    async def story() -> None:
        async with bench(answering(PATROLS)) as at:
            assert await at.client.patrols(WHO, 4001, 22) == (Patrol("7", "Eagles", 32),)
            ((method, path, query, _, headers),) = at.requests
        assert (method, path) == ("GET", "/ext/members/patrols/")
        assert query == {
            "action": "getPatrolsWithPeople",
            "sectionid": "4001",
            "termid": "22",
            "include_no_patrol": "y",
        }
        assert headers["Authorization"] == "Bearer secret-access-token"
        assert at.calls.made == [("patrols", "200")]
        assert (at.notes.budgets[17].limit, at.notes.budgets[17].remaining) == (1000, 950)

    asyncio.run(story())


def test_points_are_set_by_a_form() -> None:
    async def story() -> None:
        async with bench(answering([])) as at:
            await at.client.set_points(WHO, 4001, "7", -5)
        ((method, _, query, form, _),) = at.requests
        assert (method, query) == ("POST", {"action": "updatePatrolPoints", "sectionid": "4001"})
        assert form == {"points": "-5", "patrolid": "7"}

    asyncio.run(story())


def test_tokens_are_asked_for_with_the_secret_in_the_body() -> None:
    async def story() -> None:
        async with bench(answering({"access_token": "a", "refresh_token": "r", "expires_in": 3600})) as at:
            tokens = await at.client.refresh("old")
            await at.client.exchange("code", "http://localhost/cb", "verifier")
        assert tokens == Tokens(access_token="a", refresh_token="r", expires_in=3600)
        own = {"client_id": "app-1", "client_secret": "secret-of-app"}
        assert [request[3] for request in at.requests] == [
            {"grant_type": "refresh_token", "refresh_token": "old", **own},
            {
                "grant_type": "authorization_code",
                "code": "code",
                "redirect_uri": "http://localhost/cb",
                "code_verifier": "verifier",
                **own,
            },
        ]

    asyncio.run(story())


@pytest.mark.parametrize("call", ["patrols", "set_points", "profile", "refresh"])
def test_nothing_leaves_while_the_application_is_blocked(call: str) -> None:
    calls: dict[str, Callable[[OsmClient], Awaitable[Any]]] = {
        "patrols": lambda client: client.patrols(WHO, 1, 2),
        "set_points": lambda client: client.set_points(WHO, 1, "7", 5),
        "profile": lambda client: client.profile("token", 17),
        "refresh": lambda client: client.refresh("old"),
    }

    async def story() -> None:
        async with bench(answering("[]", X_Blocked="abuse")) as at:
            with pytest.raises(errors.ServiceBlocked):
                await calls[call](at.client)
            for other in calls.values():
                with pytest.raises(errors.ServiceBlocked):
                    await other(at.client)
        assert len(at.requests) == 1
        assert at.notes.service is not None
        assert at.notes.service.blocked_header_value == "abuse"

    asyncio.run(story())


def test_a_limited_user_is_not_asked_for_again_but_others_are() -> None:
    async def story() -> None:
        async with bench(answering("", status=429, Retry_After="1800")) as at:
            with pytest.raises(errors.RateLimited) as first:
                await at.client.patrols(WHO, 1, 2)
            with pytest.raises(errors.RateLimited) as second:
                await at.client.set_points(WHO, 1, "7", 5)
            with pytest.raises(errors.RateLimited):
                await at.client.patrols(Credential(18, "other"), 1, 2)
        assert first.value.until == second.value.until == NOW + timedelta(minutes=30)
        assert len(at.requests) == 2

    asyncio.run(story())


def test_what_a_persons_looks_leave_over_is_for_reads_at_their_pace() -> None:
    async def story() -> None:
        async with bench(answering(PATROLS, X_RateLimit_Remaining="20")) as at:
            await at.client.patrols(WHO, 1, 2, purpose="look")
            with pytest.raises(errors.OutOfBudget) as refused:
                await at.client.patrols(WHO, 1, 2, purpose="look")
            await at.client.patrols(WHO, 1, 2)
            assert len(at.requests) == 2
        assert refused.value.until == NOW + timedelta(hours=1)

    asyncio.run(story())


def test_what_reads_leave_over_is_for_writes() -> None:
    async def story() -> None:
        async with bench(answering("[]", X_RateLimit_Remaining="10")) as at:
            await at.client.patrols(WHO, 1, 2)
            for refused in (at.client.patrols(WHO, 1, 2), at.client.profile("token", 17)):
                with pytest.raises(errors.OutOfBudget):
                    await refused
            await at.client.patrols(WHO, 1, 2, purpose="write")
            await at.client.set_points(WHO, 1, "7", 5)
        assert [request[0] for request in at.requests] == ["GET", "GET", "POST"]

    asyncio.run(story())


def test_all_who_ask_for_a_section_at_once_share_one_call() -> None:
    async def story() -> None:
        go = asyncio.Event()
        arrived = asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            arrived.set()
            await go.wait()
            return await answering(PATROLS)(request)

        async with bench(slow) as at:
            first = asyncio.create_task(at.client.patrols(WHO, 1, 2))
            await arrived.wait()
            others = [asyncio.create_task(at.client.patrols(WHO, 1, 2)) for _ in range(20)]
            await asyncio.sleep(0)
            first.cancel()  # who goes does not take the answer from the others
            go.set()
            answers = await asyncio.gather(*others)
        assert set(answers) == {(Patrol("7", "Eagles", 32),)}
        assert len(at.requests) == 1

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ("", 401, errors.AuthRevoked),
        ("oops", 500, errors.Unavailable),
        ('{"error":"no"}', 200, errors.Denied),
        ('{"error":"no"}', 400, errors.Denied),
        ("{}", 200, errors.BadData),
        ("{", 200, errors.BadData),
        ('{"7":5}', 200, errors.BadData),
    ],
)
def test_every_other_answer_is_an_error_of_its_kind(body: str, status: int, error: type[Exception]) -> None:
    async def story() -> None:
        async with bench(answering(body, status)) as at:
            with pytest.raises(error):
                await at.client.patrols(WHO, 1, 2)

    asyncio.run(story())


@pytest.mark.parametrize("body", ["{}", '{"title":"Sign in to the network"}', "true", "[1]"])
def test_a_write_has_worked_only_when_osm_says_so_in_its_own_form(body: str) -> None:
    async def story() -> None:
        async with bench(answering(body)) as at:
            with pytest.raises(errors.BadData):
                await at.client.set_points(WHO, 4001, "7", 5)

    asyncio.run(story())


def test_a_redirect_is_not_followed() -> None:
    async def story() -> None:
        async with bench(answering("", 307, Location="/elsewhere")) as at:
            with pytest.raises(errors.Unavailable):
                await at.client.set_points(WHO, 4001, "7", 5)
        assert len(at.requests) == 1

    asyncio.run(story())


def test_a_wrong_secret_is_nobodys_revocation() -> None:
    async def story() -> None:
        async with bench(answering({"error": "invalid_client"}, 401)) as at:
            with pytest.raises(errors.Misconfigured, match="OSM_CLIENT_SECRET"):
                await at.client.refresh("old")

    asyncio.run(story())


def test_a_request_that_found_nobody_had_not_left() -> None:
    async def story() -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            application = Application(f"http://127.0.0.1:{nobody.getsockname()[1]}", "app", "secret")
            client = OsmClient(application, Notes(), Calls())
            with pytest.raises(errors.TimedOut) as failed:
                await client.set_points(WHO, 1, "7", 5)
            await client.close()
        assert not failed.value.sent

    asyncio.run(story())


def test_a_request_whose_connection_broke_may_have_been_carried_out() -> None:
    async def drop(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def story() -> None:
        async with bench(drop) as at:
            with pytest.raises(errors.TimedOut) as failed:
                await at.client.set_points(WHO, 1, "7", 5)
        assert failed.value.sent
        assert at.calls.made == [("set_points", "failed")]

    asyncio.run(story())


def test_a_request_without_an_answer_ends_in_time_and_had_left() -> None:
    async def story() -> None:
        go = asyncio.Event()

        async def never(_: web.Request) -> web.StreamResponse:
            await go.wait()
            return web.Response()

        async with bench(never, timeout_seconds=0.2) as at:
            with pytest.raises(errors.TimedOut, match="too long") as failed:
                await at.client.set_points(WHO, 1, "7", 5)
            go.set()
        assert failed.value.sent

    asyncio.run(story())


def test_an_answer_without_an_end_is_given_up() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(8):
            await response.write(b" " * 1024 * 1024)
        return response

    async def story() -> None:
        async with bench(endless) as at:
            with pytest.raises(errors.TimedOut):
                await at.client.patrols(WHO, 1, 2)

    asyncio.run(story())


@pytest.mark.parametrize("patrol", ["", "-2", "7; drop", "unallocated", "\u0667", "1" * 17])
def test_a_patrol_that_cannot_be_is_never_sent(patrol: str) -> None:
    async def story() -> None:
        async with bench(answering([])) as at:
            with pytest.raises(ValueError, match="accepted: digits"):
                await at.client.set_points(WHO, 1, patrol, 5)
            with pytest.raises(ValueError, match="accepted: 1 to"):
                await at.client.set_points(WHO, 0, "7", 5)
            with pytest.raises(ValueError, match="accepted: 1 to"):
                await at.client.patrols(WHO, 1, -1)
        assert at.requests == []

    asyncio.run(story())


def test_no_secret_is_in_any_log_or_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def story() -> None:
        for body, status in (("", 401), ("x", 500), ("{", 200), ("", 429)):
            async with bench(answering(body, status, X_Deprecated="2027-01-01")) as at:
                with pytest.raises(errors.OsmError) as failed:
                    await at.client.patrols(WHO, 1, 2)
                assert "secret" not in f"{failed.value!r} {failed.value}"
                assert "secret" not in f"{WHO!r} {at.client._application!r}"

    asyncio.run(story())
    assert "secret" not in caplog.text
