"""A real scoreboard and its simulated OSM for a browser, with a network between them that can be cut.

They run in a thread of their own, since tests of pages wait for the browser and not in a loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from carrick.testing import SqliteClock
from tests.osm import EAGLES, LIONS, ROBIN, SCOUTS, WOLVES, Osm, simulated
from tests.phone import Phone
from tests.ports import free_port
from tests.scenario.processes import ServiceProcess
from tests.scenario.proxy import Mood, Proxy
from tests.scoreboard import Device as Display
from tests.service import allow_displays, environment, register, serving, sign_in

T = TypeVar("T")

PATROLS = {"Eagles": EAGLES, "Lions": LIONS, "Wolves": WOLVES}
NAMES = {number: name for name, number in PATROLS.items()}
PATIENCE_SECONDS = 30.0
QUICK = {"SCORE_DEBOUNCE_SECONDS": "0.2", "SCORE_POLL_SECONDS": "0.3", "SYNC_INTERVAL_MS": "300"}
"""A scoreboard for tests looks often: it is not told when they put its clock forward."""


class Town:
    """What all tests share: a thread with a loop, a simulator, and the way to whatever scoreboard runs now."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open = AsyncExitStack()
        self.osm = self.run(self._open.enter_async_context(simulated(start=None)))
        self.port = free_port()
        self.way = Proxy(lambda: asyncio.open_connection("127.0.0.1", self.port))
        self.way.__enter__()

    @property
    def url(self) -> str:
        """The address that people see."""
        return f"http://127.0.0.1:{self.way.port}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def close(self) -> None:
        self.way.__exit__(None, None, None)
        self.run(self._open.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Evening:
    """One evening: a scoreboard with a database of its own, and OSM as it was in the beginning."""

    def __init__(self, town: Town, folder: Path) -> None:
        self._town = town
        self._folder = folder
        self._open = AsyncExitStack()
        self.url = town.url
        self.osm: Osm = town.osm
        self._run = town.run

    @property
    def _variables(self) -> Mapping[str, str]:
        return {"EXPOSED_DOMAIN": self.url, **QUICK}

    @property
    def _database(self) -> str:
        return f"sqlite:///{self._folder / 'scores.db'}"

    def begin(self) -> None:
        self.control("reset")
        self._run(register(self.osm, self._town.way.port))
        for patrol, points in {"Eagles": 100, "Lions": 80, "Wolves": 95}.items():
            self.changed(patrol, points)
        self.join()
        self.open()

    def open(self, **changed: str) -> None:
        """Start the scoreboard in this process, with these variables changed."""
        port = self._town.port = free_port()
        self._open = AsyncExitStack()
        self._run(
            self._open.enter_async_context(serving(self.osm, self._database, port, **{**self._variables, **changed}))
        )

    def close(self) -> None:
        """Stop it. Calls that OSM keeps waiting are let go first."""
        self.release()
        self._run(self._open.aclose())

    def process(self) -> ServiceProcess:
        """A scoreboard on the same database that can be killed, in place of the one in this process."""
        self.close()
        allow_displays(self._database)
        port = self._town.port = free_port()
        process = ServiceProcess(
            "scoreboard", self._folder, **environment(self._database, self.osm, port, **self._variables)
        )
        process.port = port
        return process

    def later(self, seconds: float) -> None:
        """The scoreboard's clock goes forward; OSM's does not."""
        SqliteClock(self._folder / "scores.db").shift(seconds)

    def cut(self) -> None:
        """Nothing gets through to the scoreboard: connections end, and new ones do not begin."""
        self._town.way.feel(Mood.CUT)

    def join(self) -> None:
        """The way is free again."""
        self._town.way.feel(Mood.PASS)

    def control(self, action: str, **fields: Any) -> Any:
        """Have something happen at OSM."""
        return self._run(self.osm.control(action, **fields))

    def fault(self, kind: str, **fields: Any) -> None:
        self.control("fault", kind=kind, **fields)

    def hold(self, name: str, **fields: Any) -> None:
        """Keep calls of OSM waiting, until they are released."""
        self.control("hold", name=name, **fields)

    def reached(self, name: str, count: int = 1) -> None:
        """So many calls wait there."""
        self._run(self.osm.reached(name, count))

    def release(self) -> None:
        """Let every call go that waits."""
        for hold in self._run(self.osm.state())["holds"]:
            self.control("release", name=hold["hold"]["name"])

    def score(self, patrol: str) -> int:
        """What OSM has."""
        return self._run(self.osm.points(PATROLS[patrol]))

    def changed(self, patrol: str, points: int) -> None:
        """Somebody changes the points on OSM's own pages."""
        self.control("points", section_id=SCOUTS, patrol_id=PATROLS[patrol], points=points)

    def writes(self) -> list[tuple[str, int]]:
        """The log of OSM: which patrol was set to how many points, in order."""
        calls = self._run(self.osm.calls())
        return [
            (NAMES[int(call["form"]["patrolid"])], int(call["form"]["points"]))
            for call in calls
            if call["endpoint"] == "points" and call["applied"]
        ]

    def reads(self) -> int:
        """How often OSM was asked for patrols."""
        return len([call for call in self._run(self.osm.calls()) if call["endpoint"] == "patrols"])

    def on_another_phone(self, *wishes: Callable[[Phone], Awaitable[T]], user_id: int = ROBIN) -> list[T]:
        """A leader signs in with another phone, and does these one after the other."""

        async def use() -> list[T]:
            async with Phone(self.url, user_id) as phone:
                await phone.sign_in()
                return [await wish(phone) for wish in wishes]

        return self._run(use())

    def give(self, *given: tuple[str, int], user_id: int = ROBIN) -> None:
        """A leader gives points with another phone, and OSM takes them."""
        points = [(PATROLS[patrol], number) for patrol, number in given]
        [(status, answer)] = self.on_another_phone(lambda phone: phone.give(points), user_id=user_id)
        assert status == 200, answer

    def history(self) -> list[tuple[str, int]]:
        """What the scoreboard says was applied, newest first."""
        [lines] = self.on_another_phone(lambda phone: phone.history())
        return [(line["patrolName"], line["points"]) for line in lines]

    def board(self) -> str:
        """The path of a new link to the live board."""
        path = f"/api/admin/sections/{SCOUTS}/boards"
        [(_, made, _)] = self.on_another_phone(lambda phone: phone.ask("POST", path))
        return f"/board/{made['token']}"

    def colours(self, names: Mapping[str, str]) -> None:
        """A leader chooses colours with another phone."""
        body = {"patrolColors": {str(PATROLS[patrol]): colour for patrol, colour in names.items()}}
        path = f"/api/admin/sections/{SCOUTS}/settings"
        [(status, answer, _)] = self.on_another_phone(lambda phone: phone.ask("PUT", path, body))
        assert status == 200, answer

    def connected(self) -> str:
        """A display that a leader has let in; its token."""
        return self._run(sign_in(self.url))

    def shows(self, token: str) -> list[str]:
        """The patrols that the display with this token gets to show, or the status that refuses them."""

        async def ask() -> list[str]:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{self.url}/api/v1/patrols", headers=headers) as answer,
            ):
                found = await answer.json()
                return [one["name"] for one in found["patrols"]] if answer.status == 200 else [str(answer.status)]

        return self._run(ask())

    def display(self) -> Display:
        """A display that is switched on, and asks for a code."""
        display = Display(self.url)
        self._run(display.begin())
        return display

    def answered(self, display: Display) -> tuple[int, Any]:
        """What the display is told when it asks whether somebody has let it in."""
        return self._run(display.poll())
