"""`POST /api/v1/drain`: one bounded run for each call, one at a time, for callers with the token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from carrick.entry import Batch, Outcome, State
from carrick.outbox.sqlite.store import SqliteStore
from carrick.relay.crew import Leg
from carrick.relay.meter import NoMeter
from carrick.relay.relay import RelaySettings
from carrick.sinks.handler import HandlerSink
from carrick.testing.samples import declare, put, put_run, states
from carrick.web.called_drain import CalledDrain
from carrick.web.routes import application
from carrick.web.server import serving
from carrick.web.tokens import AdminToken
from tests.sqlite_file import engine_file

TOKEN = {"Authorization": "Bearer open-sesame"}


class Called(NamedTuple):
    """A drain that waits for calls."""

    drain: CalledDrain
    post: Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[SqliteStore]:
    engine_file(sqlite_path)
    with closing(SqliteStore(sqlite_path)) as store:
        declare(store, batch_rows=1)
        yield store


@asynccontextmanager
async def called(
    store: SqliteStore, handler: Callable[[Batch], Any], *, seconds: float = 50, grace: float = 20
) -> AsyncIterator[Called]:
    channels = sorted(store.channels().values(), key=lambda channel: channel.name, reverse=True)
    settings = RelaySettings(owner="cron", in_flight=1, grace_seconds=grace)
    drain = CalledDrain(
        store,
        lambda: [Leg(channel, HandlerSink(handler)) for channel in channels],
        settings,
        AdminToken("open-sesame"),
        seconds=seconds,
        meter=NoMeter(),
    )
    app = application(drain.routes(), max_body_bytes=1024)
    async with serving(app, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:

        async def post(**headers: str) -> tuple[int, Any]:
            async with session.post(f"http://127.0.0.1:{port}/api/v1/drain", headers=headers or TOKEN) as answer:
                return answer.status, await answer.json()

        yield Called(drain, post)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


def test_a_call_delivers_what_is_due_and_answers_as_once_does_in_json(store: SqliteStore) -> None:
    good, bad = put_run(store, 2), put(store, payload=b'"bad"')

    def deliver(batch: Batch) -> dict[Any, Outcome]:
        return {e.id: Outcome.retry() if e.payload == b'"bad"' else Outcome.delivered() for e in batch}

    async def story() -> None:
        async with called(store, deliver) as drain:
            status, said = await drain.post()
            assert status == 200
            tally = {"claimed": 3, "delivered": 2, "retried": 1, "dead": 0, "released": 0, "lost": 0}
            assert said == {
                "channels": {"things": tally},
                "held": {"things": 0},
                "held_approximate": [],
                "troubled": {"things": 1},
                "failed": True,
            }

    run(story)
    assert states(store, [*good, bad]) == [State.DELIVERED, State.DELIVERED, State.PENDING]


def test_a_run_begins_with_the_channels_that_the_last_one_did_not_come_to(store: SqliteStore) -> None:
    declare(store, "others", batch_rows=1)
    put(store)
    other = put(store, "others")

    def endless(batch: Batch) -> None:
        if batch.channel == "things":
            put(store)

    async def story() -> None:
        async with called(store, endless, seconds=0.2) as drain:
            assert list((await drain.post())[1]["channels"]) == ["things"]
            assert list((await drain.post())[1]["channels"]) == ["others", "things"]

    run(story)
    assert states(store, [other]) == [State.DELIVERED]


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic open-sesame"])
def test_without_the_token_nothing_is_delivered(store: SqliteStore, authorization: str) -> None:
    waiting = put_run(store, 1)

    async def story() -> None:
        async with called(store, lambda _: None) as drain:
            assert (await drain.post(Authorization=authorization))[0] == 401

    run(story)
    assert states(store, waiting) == [State.PENDING]


def test_who_calls_while_a_run_is_under_way_is_told_so_and_the_next_call_is_welcome(store: SqliteStore) -> None:
    waiting = put_run(store, 1)

    async def story() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_: Batch) -> None:
            begun.set()
            await go_on.wait()

        async with called(store, slow) as drain:
            first = asyncio.ensure_future(drain.post())
            await begun.wait()
            status, said = await drain.post()
            assert (status, said["error"]) == (409, "under_way")
            go_on.set()
            assert (await first)[0] == 200
            assert (await drain.post())[0] == 200

    run(story)
    assert states(store, waiting) == [State.DELIVERED]


def test_a_run_ends_when_its_time_is_over_although_there_is_always_more(store: SqliteStore) -> None:
    put(store)

    async def story() -> None:
        async with called(store, lambda _: put(store) and None, seconds=0.2) as drain:
            status, said = await drain.post()
            assert (status, said["channels"]["things"]["delivered"] > 0) == (200, True)

    run(story)
    assert store.stats()[0].pending_count == 1


def test_a_stop_ends_the_run_that_is_under_way_and_takes_no_more_calls(store: SqliteStore) -> None:
    waiting = put_run(store, 1)

    async def story() -> None:
        begun = asyncio.Event()

        async def endless(_: Batch) -> None:
            begun.set()
            await asyncio.get_running_loop().create_future()

        async with called(store, endless, grace=0) as drain:
            under_way = asyncio.ensure_future(drain.post())
            await begun.wait()
            await drain.drain.stop()
            assert (await under_way)[1]["channels"]["things"]["released"] == 1
            assert (await drain.post())[0] == 503

    run(story)
    assert states(store, waiting) == [State.PENDING]
