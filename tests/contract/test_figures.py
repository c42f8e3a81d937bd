"""What operators see of deliveries: `/metrics` and `/sync/state` of a forwarder, and a receiver on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from carrick import Outbox, wiring
from carrick.forward.events import CHANNEL
from carrick.ops.metrics import OUTCOMES
from carrick.settings import read_settings
from carrick.sinks.sink import Delivery, Report
from tests.conftest import emptied
from tests.contract.relaying import run
from tests.postgres_server import versions
from tests.receivers import Reply, accepting, answering, receiving, verdict

T = TypeVar("T")

JSON = {"content-type": "application/json"}
FAILING = answering(500, b'{"error":"out of order"}', headers=JSON)
FAILING_LONG = answering(500, b'{"error":"out of order"}', headers={**JSON, "retry-after": "600"})


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('sqlite_path')}"
    return emptied(versions()[0])


async def seen(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    """What is to be seen, once it is so."""
    while not holds(found := await look()):  # noqa: ASYNC110  a figure rings no event
        await asyncio.sleep(0.01)
    return found


class Watched:
    """A forwarder at work, as an operator sees it."""

    def __init__(self, outbox: Outbox, session: aiohttp.ClientSession, port: int, metrics_port: int) -> None:
        self.outbox = outbox
        self._session = session
        self._port = port
        self._metrics_port = metrics_port

    async def put(self, count: int = 1) -> None:
        body = [{"tenant_id": "t", "event_type": "e", "payload": n} for n in range(count)]
        await self._asked("POST", self._port, "/api/v1/events", json=body)

    async def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self._asked("GET", self._port, "/api/v1/sync/state"))
        return found

    async def figures(self) -> dict[str, float]:
        """The samples of the channel: those with another label by its value, too."""
        text = await self._asked("GET", self._metrics_port, "/metrics")
        return {
            " ".join([one.name, *(value for name, value in one.labels.items() if name != "channel")]): one.value
            for family in text_string_to_metric_families(text)
            for one in family.samples
            if one.labels.get("channel") == CHANNEL
        }

    async def counts(self) -> tuple[float, float]:
        """Successes and failures, so far."""
        figures = await self.figures()
        return figures.get("sync_send_success_total", 0), figures.get("sync_send_failure_total", 0)

    async def until(self, successes: float, failures: float) -> None:
        """Return when so many were counted and written down. More failures may follow, where there was one."""
        counted = await seen(self.counts, lambda counts: counts[0] >= successes and counts[1] >= failures)
        await seen(self.state, lambda state: not state["claimed_count"])
        assert (counted[0], min(counted[1], failures or 1)) == (successes, failures)

    async def _asked(self, method: str, port: int, path: str, **options: Any) -> str:
        async with self._session.request(method, f"http://127.0.0.1:{port}{path}", **options) as answer:
            assert answer.ok, await answer.text()
            return await answer.text()


@asynccontextmanager
async def forwarding(url: str, cloud: int, **changed: str) -> AsyncIterator[Watched]:
    """A forwarder that posts to that port of this host."""
    settings = read_settings(
        {
            "DATABASE_URL": url,
            "CLOUD_INGESTION_URL": f"http://127.0.0.1:{cloud}/batch",
            "PORT": "0",
            "METRICS_PORT": "0",
            **changed,
        }
    )
    stopping = asyncio.Event()
    ports: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
    service = asyncio.create_task(wiring.forwarder(settings).run(stopping, lambda *found: ports.set_result(found)))
    try:
        with wiring.open_outbox(url) as outbox:
            async with aiohttp.ClientSession() as session:
                yield Watched(outbox, session, *await ports)
    finally:
        stopping.set()
        await service


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_counters_are_there_before_anything_happens_so_that_the_first_time_is_seen(url: str) -> None:
    async def story() -> None:
        async with forwarding(url, 9) as watched:
            figures = await seen(watched.figures, lambda figures: "carrick_claim_seconds_count" in figures)
            outcomes = {figures[f"carrick_entries_total {outcome}"] for outcome in OUTCOMES}
            names = ("sync_send_success_total", "sync_send_failure_total", "carrick_lease_lost_total")
            assert ({figures[name] for name in names}, outcomes) == ({0}, {0})

    run(story)


def test_a_relay_shows_that_it_is_there(url: str) -> None:
    async def story() -> None:
        async with forwarding(url, 9) as watched:
            await seen(watched.figures, lambda figures: figures["carrick_relays"] == 1)

    run(story)


def test_a_batch_answered_with_500_is_a_failure_and_no_success(url: str) -> None:
    async def story() -> None:
        async with receiving(FAILING_LONG) as cloud, forwarding(url, cloud.port) as watched:
            assert (await watched.state())["last_error_at"] is None
            before = watched.outbox.store.now()
            await watched.put(3)
            await watched.until(0, 1)
            figures, state = await watched.figures(), await watched.state()
            assert figures["carrick_entries_total retried"] == 3
            assert (state["last_success_at"], state["drain_rate_per_second"]) == (None, 0)
            assert before <= moment(state["last_error_at"]) <= watched.outbox.store.now()

    run(story)


def test_a_batch_that_was_taken_is_a_success_and_no_failure(url: str) -> None:
    async def story() -> None:
        async with receiving() as cloud, forwarding(url, cloud.port) as watched:
            await watched.put(6)
            await watched.until(1, 0)
            state = await watched.state()
            assert (state["last_error_at"], state["drain_rate_per_second"]) == (None, 0.1)

    run(story)


def one_rejected(count: int) -> Reply:
    """Takes all but the first event."""

    async def reply(request: Any, line: Any) -> bool:
        error = {"event_id": request.event_ids[0], "error": "no such device"}
        return await answering(body=verdict(count - 1, 0, 1, [error]))(request, line)

    return reply


def test_a_batch_of_which_one_event_was_rejected_counts_as_both(url: str) -> None:
    async def story() -> None:
        async with receiving(one_rejected(3)) as cloud, forwarding(url, cloud.port) as watched:
            await watched.put(3)
            await watched.until(1, 1)
            assert (await watched.state())["last_error_at"] is not None

    run(story)


@pytest.mark.parametrize(
    "reply", [answering(503), answering(503, headers={"retry-after": "60"}), answering(404), answering(200, b"<html>")]
)
def test_what_closes_a_gate_is_a_failure(url: str, reply: Reply) -> None:
    async def story() -> None:
        async with receiving(reply) as cloud, forwarding(url, cloud.port) as watched:
            before = watched.outbox.store.now()
            await watched.put()
            await watched.until(0, 1)
            state = await watched.state()
            assert len(state["gates"]) == 1
            assert before <= moment(state["last_error_at"])

    run(story)


def test_a_destination_that_cannot_be_reached_is_an_error(url: str) -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        async with forwarding(url, port) as watched:
            before = watched.outbox.store.now()
            await watched.put()
            await watched.until(0, 1)
            assert before <= moment((await watched.state())["last_error_at"])

    run(story)


def test_the_last_error_stays_when_what_failed_has_been_delivered_since(url: str) -> None:
    async def story() -> None:
        async with receiving(FAILING, accepting) as cloud, forwarding(url, cloud.port) as watched:
            await watched.put()
            await watched.until(1, 1)
            state = await watched.state()
            assert moment(state["last_error_at"]) <= moment(state["last_success_at"])

    run(story)


def test_a_fault_in_the_sink_is_a_failure(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Any, delivery: Delivery) -> Report:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("carrick.sinks.http.HttpSink.deliver", broken)

    async def story() -> None:
        async with receiving() as cloud, forwarding(url, cloud.port) as watched:
            await watched.put()
            await watched.until(0, 1)
            assert (await watched.state())["last_error_at"] is not None

    run(story)


def test_what_another_process_delivers_counts_in_the_rate(url: str) -> None:
    async def story() -> None:
        async with forwarding(url, 9, SYNC_FORWARDER_MODE="noop") as watched:
            await watched.put(12)
            store = watched.outbox.store
            store.finish_all(store.claim(CHANNEL, "elsewhere").token)
            assert (await watched.state())["drain_rate_per_second"] == 0.2
            assert (await watched.figures())["carrick_delivered_per_second"] == 0.2

    run(story)
