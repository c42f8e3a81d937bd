"""The forwarder's endpoints over real sockets: what they refuse, and how they say where it is wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import aiohttp
import pytest

from carrick.entry import State
from carrick.forward import answers
from carrick.forward.api import Api, Engine
from carrick.forward.events import CHANNEL
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.relay.meter import Tally
from carrick.relay.threads import Threads
from carrick.testing import SqliteClock
from carrick.testing.samples import declare
from carrick.web.routes import application
from carrick.web.server import serving
from carrick.web.tokens import WRONG_TOKENS, AdminToken

EVENT: dict[str, Any] = {"tenant_id": "farm-1", "event_type": "reading.taken", "payload": {"n": 1}}
JSON = {"Content-Type": "application/json"}
EVENTS = "/api/v1/events"
DLQ = "/api/v1/sync/dlq"
TAKEN = uuid4()

T = TypeVar("T")
Said = tuple[int, dict[str, Any]]


async def no_cycle() -> Tally:
    return Tally()


async def no_diagnosis() -> answers.Diagnostics:
    raise NotImplementedError


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[SqliteStore]:
    migrate(sqlite_path)
    with closing(SqliteStore(sqlite_path)) as store:
        declare(store, CHANNEL, max_payload_bytes=1000)
        yield store


class Forwarder:
    """The API of a forwarder without a relay; every question is asked of a server of its own."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        admin: bool = True,
        token: str = "",
        cycle: Callable[[], Awaitable[Tally]] = no_cycle,
    ) -> None:
        self.store = store
        self._cycle = cycle
        self._admin = admin
        self._token = token
        self.problem = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Said:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()

        async def asked(port: int) -> Said:
            async with (
                aiohttp.ClientSession() as session,
                session.request(method, f"http://127.0.0.1:{port}{path}", data=data, headers=JSON | headers) as answer,
            ):
                return answer.status, await answer.json()

        return self.served(asked)

    def send(self, request: bytes) -> bytes:
        """What bytes on the wire are answered with."""

        async def sent(port: int) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            answer = await reader.read()
            writer.close()
            return answer

        return self.served(sent)

    def served(self, story: Callable[[int], Awaitable[T]]) -> T:
        async def main() -> T:
            engine = Engine(
                mode="send",
                cycle=self._cycle,
                catching_up=lambda: False,
                diagnose=no_diagnosis,
                problem=lambda: self.problem,
            )
            with closing(Threads(2)) as threads:
                api = Api(self.store, threads, engine, AdminToken(self._token), admin=self._admin)
                async with serving(application(api.routes(), max_body_bytes=100_000), "127.0.0.1", 0) as port:
                    return await story(port)

        return asyncio.run(main())

    def waiting(self) -> int:
        return len(self.store.entries(CHANNEL, state=State.PENDING).lines)


@pytest.fixture
def forwarder(store: SqliteStore) -> Forwarder:
    return Forwarder(store)


def test_readiness_says_why_it_works_slower(forwarder: Forwarder) -> None:
    assert forwarder.ask("GET", "/api/ready") == (200, {"status": "ready", "problem": "", "mode": "send"})
    forwarder.problem = "nothing is heard"
    assert forwarder.ask("GET", "/api/ready")[1]["status"] == "degraded"


FAULTS: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "a time before the calendar": ({"occurred_at": "0001-01-01T00:00:00+14:00"}, 400, "occurred_at", "2 to 9998"),
    "a time after the calendar": ({"occurred_at": "9999-12-31T23:59:59-14:00"}, 400, "occurred_at", "2 to 9998"),
    "the first year": ({"occurred_at": "0001-06-01T00:00:00Z"}, 400, "occurred_at", "2 to 9998"),
    "the last year": ({"occurred_at": "9999-06-01T00:00:00Z"}, 400, "occurred_at", "2 to 9998"),
    "a payload that is too large": ({"payload": "x" * 1000}, 400, "payload", "at most 1000 bytes"),
    "the id of another entry": ({"event_id": str(TAKEN), "key": "new"}, 400, "event_id", "entry with another key"),
    "the id of another tenant's entry": (
        {"event_id": str(TAKEN), "key": "old", "tenant_id": "farm-2"},
        400,
        "event_id",
        "entry with another key",
    ),
    "a key with other content": ({"key": "old", "payload": 2}, 409, "key", "key 'old'"),
    "a wrong type": ({"priority": "high"}, 400, "priority", "got `str`"),
    "an unknown field": ({"more": 1}, 400, "more", "unknown field"),
    "a field in a header": ({"headers": 5}, 400, "headers", "got `int`"),
    "a NUL": ({"key": "a\x00b"}, 400, "key", "NUL"),
    "a lone surrogate in the payload": ({"payload": {"a": "\ud83d"}}, 400, "payload", "lone surrogate"),
    "a lone surrogate in a name": ({"group": "\ud83d"}, 400, "group", "lone surrogate"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_wrong_with_one_event_of_a_list_is_said_with_its_place_and_its_field(
    forwarder: Forwarder, case: str
) -> None:
    changed, status, field, says = FAULTS[case]
    old = EVENT | {"event_id": str(TAKEN), "key": "old"}
    assert forwarder.ask("POST", EVENTS, old)[0] == 202
    given, problem = forwarder.ask("POST", EVENTS, [EVENT | {"event_id": str(uuid4())}, EVENT | changed, EVENT])
    assert (given, problem.get("field"), problem.get("index")) == (status, field, 1), problem
    assert says in problem["message"]
    assert forwarder.waiting() == 1


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_wrong_with_a_single_event_is_said_with_its_field(forwarder: Forwarder, case: str) -> None:
    changed, status, field, says = FAULTS[case]
    forwarder.ask("POST", EVENTS, EVENT | {"event_id": str(TAKEN), "key": "old"})
    given, problem = forwarder.ask("POST", EVENTS, EVENT | changed)
    assert (given, problem.get("field")) == (status, field), problem
    assert says in problem["message"]


def test_an_event_id_with_other_content_is_named_as_the_event_id(forwarder: Forwarder) -> None:
    known = EVENT | {"event_id": str(TAKEN)}
    forwarder.ask("POST", EVENTS, known)
    status, problem = forwarder.ask("POST", EVENTS, [EVENT, EVENT, known | {"payload": 2}])
    assert (status, problem["field"], problem["index"]) == (409, "event_id", 2)


@pytest.mark.parametrize(
    ("second", "status"), [({"key": "k", "payload": 2}, 409), ({"event_id": str(TAKEN), "key": "m"}, 400)]
)
def test_of_two_events_that_do_not_go_together_the_second_is_named(
    forwarder: Forwarder, second: dict[str, Any], status: int
) -> None:
    first = EVENT | {"key": "k", "event_id": str(TAKEN)}
    given, problem = forwarder.ask("POST", EVENTS, [EVENT, first, first, EVENT | second])
    assert (given, problem.get("index")) == (status, 3), problem


def test_the_place_is_told_with_an_idempotency_key_too(forwarder: Forwarder) -> None:
    large = EVENT | {"payload": "x" * 1000}
    status, problem = forwarder.ask("POST", EVENTS, [EVENT, large], **{"Idempotency-Key": "k"})
    assert (status, problem["field"], problem["index"]) == (400, "payload", 1)


@pytest.mark.parametrize("header", [b"Bearer \xff", b"\xff", b"\xff \xff", b"Bearer op\xe9n"])
def test_bytes_that_are_no_text_are_no_token(store: SqliteStore, header: bytes) -> None:
    request = b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: %b\r\n\r\n"
    answer = Forwarder(store, token="open-sesame").send(request % (DLQ.encode(), header))
    assert answer.startswith(b"HTTP/1.1 401 ")


def test_a_token_that_is_not_ascii_is_accepted(store: SqliteStore) -> None:
    forwarder = Forwarder(store, token="öffne-dich")
    assert forwarder.ask("GET", DLQ, Authorization="Bearer öffne-dich")[0] == 200
    assert forwarder.ask("GET", DLQ, Authorization="Bearer öffne-mich")[0] == 401


ADMIN = ["dlq", "redrive", "unclaim-stuck", "diagnostics"]


@pytest.mark.parametrize("path", ADMIN)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_where_the_admin_api_is_off_no_method_gives_it_away(store: SqliteStore, method: str, path: str) -> None:
    status, problem = Forwarder(store, admin=False).ask(method, f"/api/v1/sync/{path}")
    assert (status, problem["error"]) == (404, "not_found")
    assert "accepted" not in problem["message"]


@pytest.mark.parametrize("path", ["/api/v1/sync/outbox", DLQ])
@pytest.mark.parametrize("tenant", ["%00", "a%00b", "x" * 256])
def test_a_tenant_that_no_database_can_hold_is_refused_by_name(forwarder: Forwarder, path: str, tenant: str) -> None:
    status, problem = forwarder.ask("GET", f"{path}?tenant={tenant}")
    assert (status, problem.get("field")) == (400, "tenant"), problem


def test_a_reason_that_no_database_can_hold_is_refused_by_name(forwarder: Forwarder) -> None:
    status, problem = forwarder.ask("POST", "/api/v1/sync/redrive", {"allDlq": True, "reason": "a\x00b"})
    assert (status, problem.get("field")) == (400, "reason"), problem


def test_wrong_tokens_of_the_admin_api_are_told_to_wait_and_the_right_one_never(store: SqliteStore) -> None:
    async def guessed(port: int) -> list[int]:
        statuses = []
        async with aiohttp.ClientSession() as session:
            for given in [*["wrong"] * (WRONG_TOKENS + 1), "right"]:
                headers = {"Authorization": f"Bearer {given}"}
                async with session.get(f"http://127.0.0.1:{port}{DLQ}", headers=headers) as answer:
                    statuses.append(answer.status)
        return statuses

    assert Forwarder(store, token="right").served(guessed) == [*[401] * WRONG_TOKENS, 429, 200]


@pytest.mark.parametrize("body", [{}, {"ids": [str(TAKEN)], "allDlq": True}])
def test_a_redrive_of_nothing_and_one_of_some_and_all_are_refused_with_both_forms(
    forwarder: Forwarder, body: dict[str, Any]
) -> None:
    status, problem = forwarder.ask("POST", "/api/v1/sync/redrive", body)
    assert status == 400
    assert ("both ids and allDlq" if body else "neither ids nor allDlq") in problem["message"]
    assert '{"ids": ["…", "…"]}' in problem["message"]
    assert '{"allDlq": true}' in problem["message"]


def test_leases_that_ended_too_lately_are_counted_and_left_alone(forwarder: Forwarder, sqlite_path: Path) -> None:
    forwarder.ask("POST", EVENTS, [EVENT, EVENT, EVENT])
    forwarder.store.claim(CHANNEL, "dead-pod", max_rows=1, lease_seconds=1)
    forwarder.store.claim(CHANNEL, "other-pod", max_rows=1, lease_seconds=300)
    SqliteClock(sqlite_path).shift(360)
    path, asked = "/api/v1/sync/unclaim-stuck", {"olderThanSeconds": 300}
    assert forwarder.ask("POST", path, asked) == (200, {"unclaimed": 1, "expired_younger": 1})
    assert forwarder.ask("POST", path, asked) == (200, {"unclaimed": 0, "expired_younger": 1})
    assert forwarder.ask("POST", path, {"olderThanSeconds": 0}) == (200, {"unclaimed": 1, "expired_younger": 0})


def test_cycles_are_triggered_one_at_a_time(store: SqliteStore) -> None:
    trigger = "/api/v1/sync/trigger"
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> Tally:
        begun.set()
        await go_on.wait()
        return Tally(claimed=1)

    async def story(port: int) -> list[tuple[int, str | None]]:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

            async def asked() -> tuple[int, str | None]:
                async with session.post(trigger) as answer:
                    return answer.status, answer.headers.get("Retry-After")

            first = asyncio.create_task(asked())
            await begun.wait()
            second = await asked()
            go_on.set()
            return [await first, second, await asked()]

    assert Forwarder(store, cycle=slow).served(story) == [(200, None), (429, "1"), (200, None)]
