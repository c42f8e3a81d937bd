"""A scoreboard whose Redis is flushed, killed and frozen: nothing is lost, nobody is signed out, displays are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.osm import EAGLES, SCOUTS
from tests.redis_server import RedisProcess
from tests.scenario.leading import Hall, Tell
from tests.scoreboard import Browser, Device

SCORES = f"/api/admin/sections/{SCOUTS}/scores"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisProcess]:
    """A Redis, which the services look after often."""
    monkeypatch.setattr("carrick.state.upkeep.LOOK_EVERY_SECONDS", 0.05)
    process = RedisProcess()
    yield process
    process.close()


async def shown(hall: Hall) -> int:
    """The eagles' score on the leader's page."""
    _, answer, _ = await hall.robin.ask("GET", SCORES)
    return next(int(patrol["score"]) for patrol in answer["patrols"] if patrol["id"] == str(EAGLES))


@asynccontextmanager
async def display(hall: Hall) -> Any:
    """A display that listens: asks and is told."""
    headers = {"Authorization": f"Bearer {await hall.service.device_token()}"}

    async def score() -> int:
        _, answer, _ = await hall.service.get("/api/v1/patrols", **headers)
        return next(int(patrol["score"]) for patrol in answer["patrols"] if patrol["id"] == str(EAGLES))

    await score()
    async with hall.service.session.ws_connect(f"{hall.service.url}/ws/device", headers=headers) as socket:
        yield score, socket


async def until_told(hall: Hall, *, away: bool) -> None:
    """Until readiness says of Redis what is so."""
    while True:
        _, ready, _ = await hall.service.get("/api/ready")
        if ("Redis" in ready["problem"]) is away:
            assert not away or ready["status"] == "degraded"
            return


def test_after_a_flush_points_are_in_the_scores_and_no_conflict_is_made_up(
    tell: Tell, server: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(hall: Hall) -> None:
        before = await shown(hall)
        with server.client() as client:
            client.flushall()
        for _ in range(2):
            assert (await hall.robin.give({EAGLES: 5}))[0] == 200
        reads = (await hall.osm_calls()).count("read")
        assert await shown(hall) == before + 10
        assert (await hall.osm_calls()).count("read") == reads

    tell(story, REDIS_URL=server.url)
    assert "scores.conflict" not in [record.message for record in caplog.records]


def test_a_sign_in_that_is_under_way_comes_to_its_end_whatever_becomes_of_redis(
    tell: Tell, server: RedisProcess
) -> None:
    async def story(hall: Hall) -> None:
        device = Device(hall.service.url)
        code = await device.begin()
        async with Browser(hall.service.url) as browser:
            at_osm = await browser.consent(code)
            with server.client() as client:
                client.flushall()
            choice = await browser.send(at_osm, decision="allow")
            assert choice.status == 200
            server.kill()
            assert (await browser.send(choice, section_id=str(SCOUTS), name="Hall")).status == 200
        assert (await device.poll())[0] == 200
        assert (await hall.robin.give({EAGLES: 1}))[0] == 200

    tell(story, REDIS_URL=server.url)


def test_a_display_is_told_of_points_while_redis_is_frozen_killed_and_back(tell: Tell, server: RedisProcess) -> None:
    async def story(hall: Hall) -> None:
        async with display(hall) as (score, socket):
            for change, away in ((server.freeze, True), (server.kill, True), (server.start, False)):
                before = await score()
                change()
                assert (await hall.robin.give({EAGLES: 5}))[0] == 200
                while await score() != before + 5:
                    assert (await socket.receive(timeout=20)).type is aiohttp.WSMsgType.TEXT
                await until_told(hall, away=away)

    tell(story, REDIS_URL=server.url)


def test_no_limiter_is_wide_open_while_redis_is_away(tell: Tell, server: RedisProcess) -> None:
    async def story(hall: Hall) -> None:
        url, form = f"{hall.service.url}/device/authorize", {"client_id": "wall-display"}

        async def welcome() -> int:
            answers = [(await hall.service.session.post(url, data=form)).status for _ in range(10)]
            return answers.count(200)

        assert await welcome() == 6
        with server.client() as client:
            client.flushall()
        assert await welcome() == 6
        server.freeze()
        assert [await welcome(), await welcome()] == [6, 0]

    tell(story, REDIS_URL=server.url)
