"""The device flow when something beside it fails: the database, a slow sender, a taken code, odd names at OSM."""

from __future__ import annotations

import asyncio
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from carrick.errors import StoreUnavailable
from carrick_scoreboard.routes import device_flow, parameters
from carrick_scoreboard.store.devices import DeviceCode
from tests.osm import SCOUTS, Osm, story
from tests.scoreboard import CLIENT, Browser, Device, board

EVIL = '"><script>alert(1)</script>'


def fails(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("the database is away")


@story
async def test_a_database_that_is_away_is_told_on_a_page_to_people_and_in_json_to_devices(
    osm: Osm, sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        monkeypatch.setattr(here.devices, "code", fails)
        monkeypatch.setattr(here.clients, "get", fails)
        page = await browser.get("/device?user_code=BBBBBBBB")
        assert (page.status, page.title) == (503, "The scoreboard is having a rest")
        answer = await browser.post("/device/authorize", {"client_id": CLIENT})
        assert answer.status == 503
        assert '"store_unavailable"' in answer.text


@story
async def test_a_body_that_does_not_come_is_not_waited_for(
    osm: Osm, sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "BODY_SECONDS", 0.01)
    async with board(osm, sqlite_path) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
        writer.write(b"POST /device/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
        writer.write(b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
        assert b" 408 " in await reader.readline()
        writer.write(b"12345678")  # the rest, so that nobody waits for it at the end
        await reader.read()
        writer.close()


@story
async def test_a_body_without_a_length_is_cut_off_when_it_is_too_long(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
        kind = b"Content-Type: application/x-www-form-urlencoded"
        writer.write(
            b"POST /device/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            + kind
            + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        writer.write(b"4001\r\n" + b"x" * 0x4001 + b"\r\n")
        assert b" 413 " in await reader.readline()
        writer.write(b"0\r\n\r\n")
        await reader.read()
        writer.close()


@story
async def test_a_code_that_is_taken_is_not_given_again(
    osm: Osm, sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with board(osm, sqlite_path) as here:
        codes = chain(["BBBBBBBB", "BBBBBBBB", "CCCCCCCC"], repeat("BBBBBBBB"))
        monkeypatch.setattr(device_flow, "new_user_code", lambda _: next(codes))
        assert await Device(here.url).begin() == "BBBB-BBBB"
        assert await Device(here.url).begin() == "CCCC-CCCC"
        async with Browser(here.url) as browser:
            answer = await browser.post("/device/authorize", {"client_id": CLIENT})
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


@story
async def test_who_decides_a_moment_too_late_lets_nobody_in(
    osm: Osm, sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        choosing = await browser.signed_in(await Device(here.url).begin())
        approve = here.devices.approve

        def overtaken(code: DeviceCode, **chosen: Any) -> Any:
            """Somebody else turns the display away between the look and the decision."""
            assert here.devices.deny(code)
            return approve(code, **chosen)

        monkeypatch.setattr(here.devices, "approve", overtaken)
        page = await browser.send(choosing, section_id=str(SCOUTS), name="Hall")
        assert (page.status, page.title) == (409, "This code has been used")
        assert here.devices.all() == []


@story
async def test_names_that_osm_gives_are_shown_as_text(osm: Osm, sqlite_path: Path) -> None:
    await osm.control("start-term", section_id=SCOUTS, name=EVIL)
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        choosing = await browser.signed_in(await Device(here.url).begin())
        assert "&lt;script&gt;" in choosing.text
        assert "<script" not in choosing.text
