"""WebSocket /ws/device: devices are told when their scores change, on every replica, and only devices are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from carrick.errors import StoreBusy, StoreError
from carrick.state.kv import Gap, Heard, Message
from carrick.testing.state_contract import next_message
from carrick_scoreboard.patrols.shelf import CHANGES
from carrick_scoreboard.refreshes import Refreshes
from carrick_scoreboard.sealing import digest
from tests.hall import ORIGIN, Hall, Replica, in_hall
from tests.osm import EAGLES, ROBIN, SCOUTS

CUBS = 40103
REFRESH = {"type": "refresh-scores"}


@asynccontextmanager
async def connected(replica: Replica, token: str, **headers: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    given = {"Authorization": f"Bearer {token}", **headers}
    url = f"http://127.0.0.1:{replica.port}/ws/device"
    async with replica.session.ws_connect(url, headers=given) as socket:
        yield socket


async def refused(replica: Replica, **headers: str) -> int:
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        async with replica.session.ws_connect(f"http://127.0.0.1:{replica.port}/ws/device", headers=headers):
            pass
    return error.value.status


async def told(socket: aiohttp.ClientWebSocketResponse) -> Any:
    return await socket.receive_json(timeout=20)


async def ended(socket: aiohttp.ClientWebSocketResponse) -> str:
    message = await socket.receive(timeout=20)
    assert message.type is aiohttp.WSMsgType.CLOSE
    return str(message.extra)


@in_hall
async def test_devices_of_a_section_are_told_on_every_replica_and_others_are_not(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        here, there = await hall.device(one), await hall.device(one)
        other = await hall.device(one, ROBIN, CUBS)
        async with connected(one, here) as first, connected(two, there) as second, connected(two, other) as third:
            assert (one.value("devices_connected"), two.value("devices_connected")) == (1, 2)
            await one.shelf.tell(SCOUTS)
            assert [await told(first), await told(second)] == [REFRESH, REFRESH]
            await one.shelf.tell(CUBS)
            assert await told(third) == REFRESH
        assert first.closed
    assert one.value("devices_connected") == 0


@in_hall
async def test_scores_that_changed_at_osm_are_told_when_they_are_read(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        token = await hall.device(one)
        await one.get(token)
        async with connected(two, token) as socket:
            await hall.osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, points=50)
            await hall.advance(300)
            await one.get(token)
            assert await told(socket) == REFRESH
            assert (await two.get(token)).points["Eagles"] == 50


@in_hall
async def test_a_device_that_is_told_is_not_shown_what_was_seen_just_before(hall: Hall) -> None:
    hall.look_seconds = 0.5
    async with hall.replica() as one, hall.replica("two") as two:
        token = await hall.device(one)
        async with connected(one, token) as socket:
            await one.get(token)
            assert await told(socket) == REFRESH
            before = await two.get(token)
            await one.shelf.change_scores(SCOUTS, {str(EAGLES): 50})
            await one.shelf.tell(SCOUTS)
            assert await told(socket) == REFRESH
            assert (before.points["Eagles"], (await two.get(token)).points["Eagles"]) == (32, 50)


@in_hall
async def test_scores_that_are_the_same_as_before_are_told_to_nobody(hall: Hall) -> None:
    async with hall.replica() as one, aclosing(one.kv.subscribe(CHANGES)) as heard:
        token = await hall.device(one)
        await one.get(token)
        await anext(heard)
        await hall.advance(300)
        await one.get(token)
        assert len(await hall.calls("patrols")) == 2
        await one.kv.publish(CHANGES, "the end")
        assert await next_message(heard) == "the end"


@in_hall
async def test_only_devices_and_only_our_own_pages_are_let_in(hall: Hall) -> None:
    async with hall.replica() as one:
        bearer = f"Bearer {await hall.device(one)}"
        assert await refused(one) == 401
        assert await refused(one, Authorization="Bearer nobody") == 401
        assert await refused(one, Authorization=bearer, Origin="https://evil.example") == 403
        assert await refused(one, Authorization=bearer, Origin="null") == 403
        async with connected(one, bearer.removeprefix("Bearer "), Origin=ORIGIN) as socket:
            assert not socket.closed
        plain = await one.get(bearer.removeprefix("Bearer "), "/ws/device")
        assert (plain.status, plain.json["error"]) == (426, "upgrade_required")


@in_hall
async def test_who_is_refused_again_and_again_is_told_to_wait(hall: Hall) -> None:
    async with hall.replica() as one:
        statuses = [await refused(one, Authorization="Bearer nobody") for _ in range(6)]
    assert statuses == [401] * 5 + [429]


@in_hall
async def test_of_two_connections_of_a_device_the_newest_wins(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        token = await hall.device(one)
        async with connected(one, token) as first, connected(one, token):
            assert await ended(first) == "the device has connected again"  # at once, long before a ping
        one.sockets._ping_seconds = two.sockets._ping_seconds = 0.1
        async with connected(one, token) as second, connected(two, token) as third:
            assert await ended(second) == "the device has connected again"
            await one.shelf.tell(SCOUTS)
            assert await told(third) == REFRESH


@pytest.mark.parametrize("change", ["revoked", "moved"])
@in_hall
async def test_a_device_that_was_revoked_or_moved_is_disconnected(
    hall: Hall, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick_scoreboard.admission.DEVICE_SECONDS", 0.0)
    async with hall.replica() as one:
        one.sockets._ping_seconds = 0.1
        token = await hall.device(one)
        device = one.devices.of_token(digest(token))
        assert device is not None
        async with connected(one, token) as socket:
            if change == "revoked":
                one.devices.revoke(device.id, None, actor="test")
            else:
                one.devices.move(device.id, ROBIN, CUBS)
            assert await ended(socket) in ("the device was revoked", "the device shows another section")


@in_hall
async def test_a_device_that_says_too_much_is_disconnected(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        async with connected(one, token) as socket:
            await socket.send_str("x" * 2000)
            assert (await socket.receive(timeout=20)).data == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
        async with connected(one, token) as socket:
            for _ in range(101):
                await socket.send_str("hello")
            assert await ended(socket) == "too many messages"


class Line:
    """A subscription in the test's hands."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Heard] = asyncio.Queue()
        self.subscribed = 0

    async def subscribe(self, _: str) -> AsyncIterator[Heard]:
        self.subscribed += 1
        try:
            while True:
                yield await self.heard.get()
        finally:
            self.subscribed -= 1


class Wall:
    """What sections show, in the test's hands."""

    def __init__(self) -> None:
        self.shows: dict[int, object] = {}
        self.fault: StoreError | None = None
        self.looks = 0

    async def shown(self, section_ids: Collection[int]) -> Mapping[int, object]:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return {section_id: self.shows.get(section_id) for section_id in section_ids}


def test_all_sections_have_one_subscription_while_somebody_listens_and_a_gap_counts_as_a_change() -> None:
    async def story() -> None:
        line = Line()
        refreshes = Refreshes(line, Wall().shown)  # type: ignore[arg-type]
        one, two = asyncio.Event(), asyncio.Event()
        line.heard.put_nowait(Gap("listening from now on"))
        async with refreshes.listening(7, one.set), refreshes.listening(8, two.set):
            assert (line.subscribed, one.is_set()) == (1, False)
            line.heard.put_nowait(Message("7"))
            await one.wait()
            assert not two.is_set()
            one.clear()
            line.heard.put_nowait(Gap("lost for a while"))
            await asyncio.gather(one.wait(), two.wait())
        assert line.subscribed == 0

    asyncio.run(story())


def test_where_nothing_is_heard_those_are_told_whose_section_looks_different() -> None:
    async def story() -> None:
        line, wall = Line(), Wall()
        refreshes = Refreshes(line, wall.shown)  # type: ignore[arg-type]
        rung: list[int] = []

        async def gap() -> list[int]:
            """Who is told at one more of them."""
            rung.clear()
            looks = wall.looks
            line.heard.put_nowait(Gap("nothing is heard"))
            while wall.looks == looks:  # noqa: ASYNC110  it is one step away
                await asyncio.sleep(0)
            return [*rung]

        line.heard.put_nowait(Gap("nothing is heard"))
        async with (
            refreshes.listening(7, lambda: rung.append(7)),
            refreshes.listening(8, lambda: rung.append(8)),
        ):
            assert await gap() == [7, 8]
            assert await gap() == []
            wall.shows[8] = "5 points"
            assert await gap() == [8]
            wall.shows[7] = "3 points"
            refreshes.tell(7)
            assert rung == [8, 7], "what this process has changed is told at once"
            wall.fault = StoreBusy("the database is held")
            assert await gap() == []
            wall.fault = None
            assert await gap() == [7, 8], "nobody knows what was missed"

    asyncio.run(story())
