"""Whatever somebody on the way answers in the destination's place: nothing dies of it, and no attempt is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from uuid import UUID

import pytest

from carrick import wiring
from carrick.entry import State
from carrick.forward.handshake import handshake_of
from carrick.forward.service import Forwarder
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from carrick.relay.crew import run_crew_once
from carrick.settings import read_settings
from carrick.sinks.http import HttpSink
from carrick.testing.samples import put_run
from tests.receivers import Line, Reply, Request, accepting, answering, receiving
from tests.sqlite_file import whole_file

NOWHERE = Path("no .env file")
PATIENCE_SECONDS = 60.0

REFUSALS = (400, 409, 413, 415, 422)
FAILURES = (500, 501, 505)
STATUSES = (
    *(200, 201, 202, 203, 205, 206, 207, 208, 226),
    *(300, 301, 302, 303, 305, 307, 308),
    *range(400, 419),
    *(421, 422, 423, 424, 425, 426, 428, 429, 431, 444, 451, 494, 495, 496, 497, 499),
    *range(500, 509),
    *(510, 511, 520, 521, 522, 523, 524, 525, 526, 527, 530, 561, 599, 600, 999),
)
BODIES = {
    "a page": b"<html><head><title>Please sign in</title></head><body>...</body></html>",
    "nothing": b"",
    "an object": b'{"error": "no"}',
    "half an object": b'{"error": "n',
    "text": b"upstream connect error or disconnect/reset before headers",
}


def reply_of(status: int, body: str) -> Reply:
    """As application/json, whatever it is: the declared type proves nothing."""
    text = BODIES[body]
    length = 2 * len(text) if body == "half an object" else len(text)
    return answering(status, text, headers={"content-type": "application/json"}, length=length, keep=False)


def follows(status: int, body: str) -> tuple[State, int]:
    """State and attempts of an entry after one such answer."""
    if status in REFUSALS and body == "an object":
        return State.DEAD, 1
    if status in FAILURES and body in ("an object", "nothing"):
        return State.PENDING, 1
    return State.PENDING, 0


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[Store]:
    whole_file(sqlite_path)
    with closing(open_store(f"sqlite:///{sqlite_path}")) as store:
        yield store


@pytest.mark.parametrize("body", BODIES)
def test_a_drain_gives_up_only_what_the_destination_refuses_in_its_own_words(
    store: Store, sqlite_path: Path, body: str
) -> None:
    waiting: dict[int, UUID] = {}
    for status in STATUSES:
        store.declare(Channel(name=f"c{status}"))
        (waiting[status],) = put_run(store, 1, channel=f"c{status}")

    async def story() -> None:
        async with receiving(*(reply_of(status, body) for status in STATUSES)) as receiver:
            drainer = wiring.drainer(
                read_settings({}, NOWHERE),
                f"sqlite:///{sqlite_path}",
                channels=[f"c{status}" for status in STATUSES],
                to="http",
                app=None,
                topic="",
                cloud_events=False,
                source=None,
                url=f"http://127.0.0.1:{receiver.port}/batch",
            )
            settings = wiring.relay_settings(read_settings({}, NOWHERE))
            with drainer.opened() as (opened, legs):
                await run_crew_once(opened, legs(), settings, asyncio.Event())
            assert len(receiver.requests) == len(STATUSES)

    asyncio.run(story())
    found = {status: store.standing(entry_id) for status, entry_id in waiting.items()}
    assert {status: (standing.state, standing.attempt_count) for status, standing in found.items()} == {
        status: follows(status, body) for status in STATUSES
    }


def test_a_forwarder_that_meets_every_stranger_delivers_everything_at_the_first_attempt(store: Store) -> None:
    channel = Channel(name="cloud", mode=Mode.ORDERED, backoff_base_seconds=0.001, backoff_cap_seconds=0.001)
    store.declare(channel)
    waiting = put_run(store, 3, channel="cloud")
    strangers = [
        reply_of(status, body)
        for status, body in zip(STATUSES, cycle(BODIES), strict=False)
        if follows(status, body) == (State.PENDING, 0)
    ]

    async def story() -> None:
        stopping = asyncio.Event()

        async def last(request: Request, line: Line) -> bool:
            stopping.set()
            return await accepting(request, line)

        async with asyncio.timeout(PATIENCE_SECONDS), receiving(*strangers, accepting, last) as receiver:
            environment = {
                "CLOUD_INGESTION_URL": f"http://127.0.0.1:{receiver.port}/",
                "PORT": "0",
                "METRICS_PORT": "0",
            }
            settings = read_settings(environment, NOWHERE)
            sink = HttpSink(settings.cloud, edge_id="edge-1")
            await Forwarder(store, sink, channel, settings, handshake_of(sink)).run(stopping, lambda *_: None)
            assert len(receiver.requests) > len(strangers)

    asyncio.run(story())
    found = [store.standing(entry_id) for entry_id in waiting]
    assert [(standing.state, standing.attempt_count) for standing in found] == [(State.DELIVERED, 1)] * 3
