"""What the console tells and does, over real sockets, on each database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec
import pytest

from carrick.console import broadcast, lists, overview
from carrick.console.api import PAYLOAD_CHARACTERS, Console
from carrick.console.broadcast import Broadcast
from carrick.console.door import SIGNED_IN_SECONDS
from carrick.console.history import History
from carrick.console.overview import TENANTS_EVERY_SECONDS, Looker
from carrick.entry import Outcome, State
from carrick.errors import StoreUnavailable
from carrick.outbox.store import Store
from carrick.relay.threads import Threads
from carrick.settings import Settings
from carrick.testing.samples import OWNER, claim, declare, finish_each, put, put_run
from carrick.web.routes import application
from carrick.web.server import serving
from carrick.web.tokens import AdminToken

SETTINGS = Settings(instance_id="one", internal_admin_enabled=True, admin_token="t")
HEADERS = {"Authorization": "Bearer t"}


class Client:
    """Asks with the token."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = f"{url}/api/console/"
        self.session = session

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.session.get(self.url + path, headers=HEADERS) as answer:
            return answer.status, await answer.json()

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        async with self.session.post(self.url + path, json=body, headers=HEADERS) as answer:
            return answer.status, await answer.json()


@asynccontextmanager
async def serving_console(store: Store) -> AsyncIterator[tuple[Client, Console]]:
    with closing(Threads(2)) as threads:
        console = Console(store, threads, SETTINGS, AdminToken("t"), service="test")
        app = application(console.routes(), max_body_bytes=1_000_000)
        console.attach(app)
        async with serving(app, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
            yield Client(f"http://127.0.0.1:{port}", session), console


def run(store: Store, story: Callable[[Client], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(30), serving_console(store) as (client, _):
            await story(client)

    asyncio.run(told())


def bury(store: Store, count: int = 1, **fields: Any) -> list[Any]:
    """Dead entries."""
    ids = put_run(store, count, **fields)
    finish_each(store, claim(store, max_rows=count), Outcome.rejected("no such thing", code="http_422"))
    return ids


def test_the_overview_has_depths_gates_tenants_and_replicas(store: Store) -> None:
    declare(store)
    bury(store)
    put_run(store, 3, tenant_id="mill")
    claim(store, max_rows=1)
    store.close_gate("things", "tenant:mill", 60, "asked to wait")

    async def story(client: Client) -> None:
        status, told = await client.get("overview")
        assert status == 200
        (channel,) = (one for one in told["channels"] if one["stats"]["channel"] == "things")
        assert channel["mode"] == "stream"
        counts = {name: channel["stats"][f"{name}_count"] for name in ("pending", "held", "claimed", "dead")}
        assert counts == {"pending": 2, "held": 2, "claimed": 1, "dead": 1}
        assert channel["series"]["waiting"][-1] == 3
        assert [(gate["scope"], gate["reason"]) for gate in told["gates"]] == [("tenant:mill", "asked to wait")]
        assert told["tenants"] == [{"channel": "things", "tenant_id": "mill", "waiting": 2}]
        assert [(one["owner"], one["signs"][0]["doing"]) for one in told["replicas"]] == [(OWNER, "lease")]

    run(store, story)


def test_entries_come_page_by_page_and_by_tenant(store: Store) -> None:
    declare(store)
    bury(store, 3, tenant_id="a")
    bury(store, 1, tenant_id="b")

    async def story(client: Client) -> None:
        _, first = await client.get("entries?channel=things&state=dead&limit=2")
        _, second = await client.get(f"entries?channel=things&state=dead&limit=9&after={first['next']}")
        assert (len(first["entries"]), len(second["entries"]), second["next"]) == (2, 2, None)
        _, of_b = await client.get("entries?channel=things&state=dlq&tenant=b")
        assert [one["tenant_id"] for one in of_b["entries"]] == ["b"]
        assert of_b["entries"][0]["last_error_message"] == "no such thing"

    run(store, story)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("channel=things&state=lost", "state"),
        ("channel=things&limit=0", "limit"),
        ("channel=things&limit=201", "limit"),
        ("channel=things&after=rubbish", "after"),
        ("state=dead", "channel"),
        ("channel=things&colour=red", "colour"),
        ("channel=nowhere", "nowhere"),
    ],
)
def test_a_list_that_cannot_be_is_refused_by_name(file_store: Store, query: str, named: str) -> None:
    declare(file_store)

    async def story(client: Client) -> None:
        status, said = await client.get(f"entries?{query}")
        assert status == 400
        assert named in said["message"]

    run(file_store, story)


def test_one_entry_tells_why_its_story_and_what_it_carries(store: Store) -> None:
    declare(store)
    (dead,) = bury(store, payload=b'{"a":"<script>"}')
    long = put(store, payload=b'"' + b"x" * PAYLOAD_CHARACTERS + b'"')

    async def story(client: Client) -> None:
        _, told = await client.get(f"entries/{dead}")
        assert (told["reason"], told["contents"]["payload"]) == ("dead", '{"a":"<script>"}')
        assert "the destination rejected it" in told["sentence"]
        assert [moment["event"] for moment in told["story"]] == ["put", "attempt", "dead"]
        assert "http_422: no such thing" in told["story"][1]["detail"]
        _, cut = await client.get(f"entries/{long}")
        assert (len(cut["contents"]["payload"]), cut["contents"]["cut"]) == (PAYLOAD_CHARACTERS, True)
        assert (await client.get(f"entries/{uuid4()}"))[0] == 404
        assert (await client.get("entries/rubbish"))[0] == 400

    run(store, story)


def test_a_list_is_narrowed_by_words_and_by_reason_page_by_page(
    file_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "STEP_ROWS", 2)
    monkeypatch.setattr(lists, "LOOK_ROWS", 4)
    declare(file_store)
    bury(file_store, 5, tenant_id="a")
    bury(file_store, 1, tenant_id="rare")

    async def story(client: Client) -> None:
        ask = "entries?channel=things&state=dead&words="
        _, first = await client.get(f"{ask}SUCH%20rare")
        assert first["entries"] == []
        _, second = await client.get(f"{ask}SUCH%20rare&after={first['next']}")
        assert ([one["tenant_id"] for one in second["entries"]], second["next"]) == (["rare"], None)
        _, full = await client.get(f"{ask}http_422&limit=2&reason=rejected")
        assert (len(full["entries"]), full["next"] is None) == (2, False)
        assert (await client.get("entries?channel=things&state=dead&reason=evicted"))[1]["entries"] == []

    run(file_store, story)


def test_a_search_says_what_each_entry_was_found_by(store: Store) -> None:
    declare(store)
    (dead,) = bury(store, tenant_id="7")
    keyed = put(store, key="7", group_key="7")

    async def story(client: Client) -> None:
        _, found = await client.get("search?text=%207%20")
        assert [(hit["entry"]["id"], hit["entry"]["state"], hit["matches"]) for hit in found["hits"]] == [
            (str(keyed), "pending", ["key", "group"]),
            (str(dead), "dead", ["tenant"]),
        ]
        _, by_id = await client.get(f"search?text={str(dead).upper()}")
        assert [hit["matches"] for hit in by_id["hits"]] == [["id"]]
        assert (await client.get("search?text="))[0] == 400
        assert (await client.get("search?text=%20"))[0] == 400

    run(store, story)


def test_all_dead_entries_are_looked_at_first_then_discarded_and_written_down(
    file_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    declare(file_store)
    bury(file_store, 7)
    caplog.set_level(logging.WARNING, "carrick.console")

    async def story(client: Client) -> None:
        _, look = await client.get("dead?channel=things&reason=rejected")
        assert (look["count"], len(look["oldest"])) == (7, lists.OLDEST)
        assert [(one["reason"], one["error_code"], one["count"]) for one in look["causes"]] == [
            ("rejected", "http_422", 7)
        ]
        every = {"channel": "things", "everything": True}
        assert (await client.post("discard", {**every, "dry_run": True}))[1]["count"] == 7
        bury(file_store, 1)
        gone = {**every, "reason": "rejected", "died_by": look["at"], "limit": 6}
        assert (await client.post("discard", gone))[1] == {"count": 6, "dry_run": False, "left": False}
        assert (await client.post("discard", {**every, "died_by": look["at"]}))[1]["count"] == 1
        assert file_store.stats()[-1].dead_count == 1

    run(file_store, story)
    assert [record.__dict__["detail"] for record in caplog.records] == [
        {"count": 6, "reason": "rejected", "limit": 6},
        {"count": 1},
    ]


def test_a_redrive_is_counted_first_then_done_and_written_down(
    file_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    declare(file_store)
    ids = bury(file_store, 3)
    caplog.set_level(logging.WARNING, "carrick.console")

    async def story(client: Client) -> None:
        some = {"channel": "things", "ids": [str(ids[0])]}
        assert await client.post("redrive", {**some, "dry_run": True}) == (
            200,
            {"count": 1, "dry_run": True, "left": False},
        )
        assert file_store.standing(ids[0]).state is State.DEAD
        assert caplog.records == []
        assert (await client.post("redrive", {**some, "spread_seconds": 0}))[1]["count"] == 1
        assert file_store.standing(ids[0]).state is State.PENDING
        assert (await client.post("redrive", {"channel": "things", "everything": True}))[1]["count"] == 2

    run(file_store, story)
    acts = [record.__dict__ for record in caplog.records]
    assert [(act["msg"], act["actor"], act["address"]) for act in acts] == [
        ("console.action", "ADMIN_TOKEN", "127.0.0.1")
    ] * 2
    assert acts[0]["detail"]["ids"] == [str(ids[0])]
    assert acts[1]["detail"] == {"count": 2, "spread_seconds": 60.0}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("redrive", {"channel": "things"}),
        ("redrive", {"channel": "things", "everything": True, "ids": ["0190b0f0-0000-7000-8000-000000000000"]}),
        ("redrive", {"channel": "things", "everything": True, "spread_seconds": -1}),
        ("redrive", {"channel": "things", "ids": []}),
        ("redrive", {"channel": "nowhere", "everything": True}),
        ("discard", {"channel": "things"}),
        ("discard", {"channel": "things", "everything": True, "ids": ["0190b0f0-0000-7000-8000-000000000000"]}),
        ("discard", {"channel": "things", "ids": ["0190b0f0-0000-7000-8000-000000000000"], "reason": "rejected"}),
        ("discard", {"channel": "things", "everything": True, "died_by": "2030-01-01T00:00:00"}),
        ("discard", {"channel": "nowhere", "everything": True}),
        ("discard", {"channel": "things", "ids": ["x"]}),
        ("gates/open", {"channel": "things", "scope": "planet:earth"}),
        ("gates/close", {"channel": "things", "scope": "*", "seconds": 5}),
        ("gates/close", {"channel": "things", "scope": "*", "reason": "", "seconds": 5}),
        ("gates/close", {"channel": "things", "scope": "*", "reason": "x", "seconds": 0}),
        ("release-expired", {"channel": "nowhere"}),
        ("release-expired", []),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_written_down(
    file_store: Store, path: str, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    declare(file_store)
    bury(file_store)

    async def story(client: Client) -> None:
        status, said = await client.post(path, body)
        assert status == 400, said
        assert said["message"]

    run(file_store, story)
    assert "console.action" not in caplog.text
    assert file_store.stats()[-1].dead_count == 1


def test_dead_entries_are_discarded_gates_are_closed_and_opened_and_leases_given_back(store: Store) -> None:
    declare(store, lease_seconds=1)
    (dead,) = bury(store)

    async def story(client: Client) -> None:
        assert (await client.post("discard", {"channel": "things", "ids": [str(dead)]}))[1]["count"] == 1
        close = {"channel": "things", "scope": "tenant:a", "reason": "on call", "seconds": 60}
        assert (await client.post("gates/close", close))[0] == 200
        assert [(gate.scope, gate.reason) for gate in store.gates("things")] == [("tenant:a", "on call")]
        assert (await client.post("gates/open", {"channel": "things", "scope": "tenant:a"}))[0] == 200
        assert store.gates("things") == []
        assert (await client.post("release-expired", {"channel": "things"}))[1]["count"] == 0

    run(store, story)


async def read_event(stream: aiohttp.ClientResponse) -> tuple[str, Any]:
    name = (await stream.content.readline()).decode().removeprefix("event: ").strip()
    data = (await stream.content.readline()).removeprefix(b"data: ")
    await stream.content.readline()
    return name, msgspec.json.decode(data)


def test_who_watches_gets_overviews_and_when_nobody_does_none_is_taken(file_store: Store) -> None:
    declare(file_store)

    async def told() -> None:
        async with asyncio.timeout(30), serving_console(file_store) as (client, console):
            async with client.session.get(client.url + "events", headers=HEADERS) as stream:
                assert stream.content_type == "text/event-stream"
                name, value = await read_event(stream)
                assert (name, value["instance"]) == ("overview", "one")
                assert console._broadcast.watching == 1
                taking = console._broadcast._taking
                assert taking is not None
            await asyncio.wait([taking])
            assert (console._broadcast.watching, console._broadcast._taking) == (0, None)

    asyncio.run(told())


def test_only_so_many_watch_at_once(file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(file_store)

    async def told() -> None:
        async with asyncio.timeout(30), serving_console(file_store) as (client, console):
            monkeypatch.setattr(console._broadcast, "_most", 1)
            async with client.session.get(client.url + "events", headers=HEADERS) as stream:
                await read_event(stream)
                async with client.session.get(client.url + "events", headers=HEADERS) as refused:
                    assert refused.status == 503

    asyncio.run(told())


def test_a_service_that_stops_lets_watchers_go(file_store: Store) -> None:
    declare(file_store)

    async def told() -> None:
        async with (
            asyncio.timeout(30),
            serving_console(file_store) as (client, console),
            client.session.get(client.url + "events", headers=HEADERS) as stream,
        ):
            await read_event(stream)
            await console.close()
            await stream.read()  # ends

    asyncio.run(told())


def test_a_database_that_does_not_answer_is_told_and_the_stream_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "EVERY_SECONDS", 0.01)
    answers: Iterator[Settings | Exception] = iter(
        [StoreUnavailable("gone"), RuntimeError("bug"), Settings(instance_id="back")]
    )

    async def take() -> Settings:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def told() -> None:
        cast = Broadcast(take)
        news = asyncio.Event()
        cast._watchers.add(news)
        seen = []
        taking = asyncio.create_task(cast._keep_taking())
        for _ in range(3):
            await news.wait()
            news.clear()
            seen.append(cast._latest)
        taking.cancel()
        assert seen[0] == b'event: trouble\ndata: {"message":"gone"}\n\n'
        assert b"bug" not in seen[1]
        assert [event.partition(b"\n")[0] for event in seen[1:]] == [b"event: trouble", b"event: overview"]

    asyncio.run(told())


def test_depths_are_noted_before_anybody_watches_and_through_an_outage(
    file_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    declare(file_store)
    put_run(file_store, 3)
    monkeypatch.setattr(overview, "SLOT_SECONDS", 0)
    monkeypatch.setattr(overview, "REST_PER_LOOK", 0)
    stats, failures = file_store.stats, iter([StoreUnavailable("gone")])

    def shaky() -> Any:
        for failure in failures:
            raise failure
        return stats()

    monkeypatch.setattr(file_store, "stats", shaky)

    async def told() -> None:
        async with asyncio.timeout(30), serving_console(file_store) as (_, console):
            history, noted = console._looker._history, asyncio.Event()
            note = history.depths

            def noting(found: Any) -> None:
                note(found)
                noted.set()

            monkeypatch.setattr(history, "depths", noting)
            await noted.wait()
            assert (history.series("things").waiting[-1], history.series("things").dead[-1]) == (3, 0)

    asyncio.run(told())
    assert "console.depths_unknown" in caplog.text


def test_tenants_are_counted_anew_every_ten_seconds_only(file_store: Store) -> None:
    declare(file_store)
    put(file_store, tenant_id="first")
    now = [0.0]

    async def told() -> list[list[str]]:
        with closing(Threads(1)) as threads:
            looker = Looker(file_store, threads, History(), "one", lambda: now[0])
            seen = [await looker.look()]
            put(file_store, tenant_id="second")
            for moment in (TENANTS_EVERY_SECONDS - 0.1, TENANTS_EVERY_SECONDS):
                now[0] = moment
                seen.append(await looker.look())
            return [[tenant.tenant_id for tenant in look.tenants] for look in seen]

    assert asyncio.run(told()) == [["first"], ["first"], ["first", "second"]]


def test_a_stream_ends_when_the_sign_in_does(file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(file_store)
    monkeypatch.setattr(broadcast, "EVERY_SECONDS", 0.01)

    async def told() -> None:
        async with asyncio.timeout(30), serving_console(file_store) as (client, console):
            async with client.session.post(client.url + "session", json={"token": "t", "name": "Robin"}) as signed_in:
                cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
            async with client.session.get(client.url + "events", headers=cookie) as stream:
                await read_event(stream)
                later = time.time() + SIGNED_IN_SECONDS
                monkeypatch.setattr(console._door, "_clock", lambda: later)
                await stream.read()  # ends
                assert console._broadcast.watching == 0

    asyncio.run(told())
