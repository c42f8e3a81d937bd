"""Outages over real sockets: whatever the other side does instead of answering, nothing is lost or spent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing
from uuid import UUID

import pytest
import trustme

from carrick.entry import State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from carrick.relay.meter import Tally
from carrick.relay.relay import Relay, RelaySettings
from carrick.settings import CloudSettings
from carrick.sinks.http import HttpSink
from carrick.testing.samples import sample, states
from tests.ports import free_port
from tests.receivers import (
    Reply,
    accepting,
    answering,
    endless,
    head,
    raw,
    receiving,
    resetting,
    silent,
    verdict,
)
from tests.scenario.conftest import Shared

HOUR = 3600
SETTINGS = RelaySettings(owner="edge-1", in_flight=1)

INSTEAD_OF_AN_ANSWER: dict[str, Reply] = {
    "captive portal": answering(
        200, b"<html><title>Please log in</title></html>", headers={"content-type": "text/html"}
    ),
    "truncated": answering(200, verdict(5)[:10], length=len(verdict(5)), keep=False),
    "wrong JSON": answering(200, b'{"ok": true}'),
    "wrong counts": answering(200, verdict(3)),
    "slow loris": silent(first=head(200, {"content-length": "100"}) + b"{"),
    "never ends": endless(),
    "reset": resetting(),
    "no HTTP": raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "redirect": answering(302, headers={"location": "http://127.0.0.1/login"}),
    "bad gateway": answering(502),
    "not you": answering(403),
    "gone": answering(410),
}


@pytest.fixture
def store(shared: Shared) -> Iterator[Store]:
    with closing(open_store(shared.url)) as store:
        store.declare(Channel(name="cloud", mode=Mode.ORDERED, one_tenant=True))
        yield store


def put(store: Store, count: int) -> list[UUID]:
    """Events of one tenant and two devices, in order."""
    events = [
        sample("cloud", tenant_id="farm", group_key=f"d{n % 2}", payload=f'{{"n":{n}}}'.encode()) for n in range(count)
    ]
    return [answer.id for answer in store.put_many(events)]


async def relayed(store: Store, url: str, **options: float) -> Tally:
    """What one go of a relay to that address achieves."""
    sink = HttpSink(CloudSettings(url=url, timeout_seconds=options.get("timeout", 0.2)), edge_id="edge-1")
    channel = (await asyncio.to_thread(store.channels))["cloud"]
    try:
        return await Relay(store, sink, channel, SETTINGS).once()
    finally:
        await sink.close()


def untouched(store: Store, ids: Sequence[UUID]) -> bool:
    """All of them wait, and no attempt was spent."""
    standings = [store.standing(entry_id) for entry_id in ids]
    return {(standing.state, standing.attempt_count) for standing in standings} == {(State.PENDING, 0)}


@pytest.mark.parametrize("reply", INSTEAD_OF_AN_ANSWER.values(), ids=INSTEAD_OF_AN_ANSWER)
def test_what_is_no_answer_delivers_nothing_and_spends_nothing(shared: Shared, store: Store, reply: Reply) -> None:
    ids = put(store, 5)

    async def story() -> None:
        async with receiving(reply) as receiver:
            tally = await relayed(store, f"http://127.0.0.1:{receiver.port}/batch")
            assert (tally.delivered, tally.released) == (0, 5)
            assert await asyncio.to_thread(untouched, store, ids)
            assert [gate.scope for gate in await asyncio.to_thread(store.gates, "cloud")] == ["*"]
            receiver.replies[:] = [accepting]
            await asyncio.to_thread(shared.clock.shift, HOUR)
            assert (await relayed(store, f"http://127.0.0.1:{receiver.port}/batch", timeout=30)).delivered == 5

    asyncio.run(story())
    assert not store.gates("cloud")


def test_a_tls_fault_delivers_nothing_and_spends_nothing(store: Store) -> None:
    ids = put(store, 5)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    async def story() -> None:
        async with receiving(tls=context) as receiver:
            assert (await relayed(store, f"https://127.0.0.1:{receiver.port}/batch", timeout=5)).released == 5

    asyncio.run(story())
    assert untouched(store, ids)
    (gate,) = store.gates("cloud")
    assert gate.reason.startswith("tls")


def test_a_day_without_network_spends_nothing_and_then_everything_arrives_in_order(
    shared: Shared, store: Store
) -> None:
    ids = put(store, 50)
    port = free_port()

    async def story() -> list[str]:
        tries = 0
        for _ in range(24 * 4):
            tally = await relayed(store, f"http://127.0.0.1:{port}/batch")
            tries += tally.claimed
            await asyncio.to_thread(shared.clock.shift, HOUR / 4)
        assert tries == 50 + 24 * 4 - 1  # the first batch, then one entry at a time
        assert await asyncio.to_thread(untouched, store, ids)
        async with receiving() as receiver:
            assert (await relayed(store, f"http://127.0.0.1:{receiver.port}/batch", timeout=30)).delivered == 50
            return [event_id for request in receiver.requests for event_id in request.event_ids]

    arrived = asyncio.run(story())
    for device in (0, 1):
        expected = [str(entry_id) for n, entry_id in enumerate(ids) if n % 2 == device]
        assert [event_id for event_id in arrived if event_id in set(expected)] == expected
    assert set(states(store, ids)) == {State.DELIVERED}
