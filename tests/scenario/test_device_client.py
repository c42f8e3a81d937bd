"""The device client at a real scoreboard: let in by a person, told of points by WebSocket, shut out, asking again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from carrick_device.client import Server
from carrick_device.clock import RealClock
from carrick_device.device import Device
from carrick_device.kept import Kept
from carrick_device.screen import Board, Screen, SignIn
from carrick_device.stage import Stage
from tests.osm import EAGLES
from tests.phone import Phone
from tests.scenario.leading import KEYS
from tests.scoreboard import CLIENT, Browser
from tests.service import service


class Screens:
    """A display that knows what it was shown."""

    def __init__(self) -> None:
        self._shown: list[Screen] = []
        self._more = asyncio.Event()

    def pages(self, _: Screen) -> int:
        return 1

    def show(self, screen: Screen, _: int) -> None:
        self._shown.append(screen)
        self._more.set()

    def close(self) -> None:
        """Nothing to close."""

    async def comes(self, wanted: Callable[[Screen], bool]) -> Screen:
        """The next screen that is wanted. What was shown before it is forgotten."""
        while True:
            while self._shown:
                if wanted(screen := self._shown.pop(0)):
                    return screen
            self._more.clear()
            await self._more.wait()


@asynccontextmanager
async def switched_on(url: str, folder: Path) -> AsyncIterator[Screens]:
    screens, clock, server = Screens(), RealClock(), Server(url, CLIENT)
    kept = Kept(folder / "token.json", url, CLIENT)
    kept.prepare()
    running = asyncio.create_task(Device(server, kept, Stage(screens, clock), clock).run())
    try:
        yield screens
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()


def shows(**totals: int) -> Callable[[Screen], bool]:
    """Scores with these among them, and nothing on its way."""

    def wanted(screen: Screen) -> bool:
        if not isinstance(screen, Board) or any(line.pending for line in screen.lines):
            return False
        return totals.items() <= {line.name: line.total for line in screen.lines}.items()

    return wanted


async def let_in(url: str, screen: Screen) -> None:
    """A person types the code that the display shows, and chooses the section."""
    assert isinstance(screen, SignIn)
    async with Browser(url) as browser:
        page = await browser.signed_in(screen.user_code)
        done = await browser.send(page, section_id="40104", name="Hall")
        assert done.status == 200, done.text


async def whole_story(database: str, folder: Path) -> None:
    settings = {"DEVICE_POLL_INTERVAL": "1", **KEYS}
    async with (
        service(database, state=None, **settings) as board,
        switched_on(board.url, folder) as screens,
        Phone(board.url) as robin,
    ):
        await let_in(board.url, await screens.comes(lambda screen: isinstance(screen, SignIn)))
        await screens.comes(shows(Eagles=32, Lions=30, Wolves=47))
        await robin.sign_in()
        await robin.give({EAGLES: 5})
        await screens.comes(shows(Eagles=37))  # by WebSocket: by itself it would ask in five minutes
        _, answer, _ = await robin.ask("GET", "/api/admin/scoreboards")
        [display] = answer["scoreboards"]
        await robin.ask("DELETE", f"/api/admin/scoreboards/{display['id']}")
        await robin.give({EAGLES: 1})
        again = await screens.comes(lambda screen: isinstance(screen, SignIn))
        await let_in(board.url, again)
        await screens.comes(shows(Eagles=38))


def test_a_device_is_let_in_hears_of_points_and_asks_again_when_it_was_taken_away(tmp_path: Path) -> None:
    asyncio.run(whole_story(f"sqlite:///{tmp_path / 'scores.db'}", tmp_path))


def test_a_device_does_all_that_with_postgresql(postgres_url: str, tmp_path: Path) -> None:
    asyncio.run(whole_story(postgres_url, tmp_path))
