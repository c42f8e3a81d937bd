"""The scoreboard part of `carrick demo`: a scoreboard, and a simulated Online Scout Manager for it to talk to."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from carrick.errors import CarrickError, SettingsError
from carrick.ops.background import Background
from carrick_scoreboard.demo_evening import Backdate, Evening
from carrick_scoreboard.service import Scoreboard

PORT, OSM_PORT = 8080, 8090
"""Those that people expect; others are used where they are taken."""
CLIENT = "demo-display"
PASSWORD = "campfire"  # noqa: S105  of everybody in the simulator, and shown on its sign-in page
SOMEBODY = "Robin Merriweather"
GREETING = "Online Scout Manager, simulated: "
STOP_SECONDS = 5.0

CHILD = """
import os, signal, sys, threading

def until_the_parent_is_gone():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=until_the_parent_is_gone, daemon=True).start()
from carrick_osmsim.command import main
main()
"""
"""The simulator shares no code with the product, so it is a process of its own. Its input ends with its parent, however
that ends, and then it ends too."""

Build = Callable[[int, str], Scoreboard]
"""Makes the scoreboard for a port and OSM's address."""


class Places(NamedTuple):
    """Where things are; nothing before they are there."""

    scoreboard: str = ""
    board: str = ""
    osm: str = ""


class ScoreboardDemo(Background):
    """Runs in a thread of its own. `build` may raise SettingsError for a port that is taken.

    `folder` keeps what the simulated OSM knows and the link to the live board: the next demo goes on with them.
    """

    def __init__(self, build: Build, folder: Path, backdate: Backdate) -> None:
        super().__init__("carrick-demo-scoreboard")
        self._build = build
        self._folder = folder
        self._backdate = backdate
        self.places = Places()

    async def work(self) -> None:
        try:
            await self._serve(_port(PORT))
        except SettingsError:  # somebody took the port in the meantime: any will do
            await self._serve(_port(0))

    async def _serve(self, port: int) -> None:
        address = f"http://localhost:{port}"
        with simulated_osm(address, self._folder / "osm.json") as osm:
            service, serving = self._build(port, osm), asyncio.Event()
            running = asyncio.create_task(service.run(self.stopping, lambda *_: serving.set()))
            evening = asyncio.create_task(self._evening(serving, address, osm))
            await asyncio.wait([running, evening], return_when=asyncio.FIRST_COMPLETED)
            # what a stop breaks off is no failure
            failure = evening.exception() if evening.done() and not self.stopping.is_set() else None
            if failure is not None:
                self.stopping.set()
            try:
                await running
            finally:
                evening.cancel()
                await asyncio.gather(evening, return_exceptions=True)
            if failure is not None:
                raise failure

    async def _evening(self, serving: asyncio.Event, address: str, osm: str) -> None:
        """Say where things are as soon as there is a board to look at; the points come while people look."""
        await serving.wait()
        evening = Evening(address, self._folder, self._backdate)
        self.places = Places(address, await evening.board(), osm)
        self.started.set()
        await evening.happen()


@contextmanager
def simulated_osm(scoreboard: str, state: Path) -> Iterator[str]:
    """The simulator as a process of its own, which sends people back to that address; its own address.

    What it knows is in the file `state`.
    """
    back = [f"--redirect-uri={scoreboard}{path}" for path in ("/oauth/callback", "/admin/callback")]
    process, said = _started_osm(_port(OSM_PORT), state, back)
    if not said.startswith(GREETING):
        process, said = _started_osm(0, state, back)  # somebody took the port in the meantime: any will do
    with process:
        try:
            if not said.startswith(GREETING):
                raise CarrickError(f"the simulated OSM did not start: {said}")
            yield said.removeprefix(GREETING).rstrip("/")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _started_osm(port: int, state: Path, back: list[str]) -> tuple[subprocess.Popen[str], str]:
    """The process and the first thing that it says; one that says something else than its greeting has ended."""
    process = subprocess.Popen(  # noqa: S603  our own code, and no shell
        [sys.executable, "-c", CHILD, "--port", str(port), "--state", str(state), *back],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C is for the demo: it ends the simulator itself
    )
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if not said.startswith(GREETING):
        process.communicate()
    return process, said


def _port(wanted: int) -> int:
    """That port if it is free, else one that is."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise SettingsError("no port is free on 127.0.0.1")


def guide(places: Places) -> list[str]:
    """What to do with it, line by line."""
    board = places.scoreboard
    return [
        f"Score entry:          {board}/admin/",
        f"Live board:           {places.board}",
        f"Console:              {board}/console/   (everything in this demo)",
        f"Simulated OSM:        {places.osm}/   (control panel: limits, faults, every call)",
        f"Sign in at OSM as {SOMEBODY} or anybody on its list, and allow it; the password is {PASSWORD}.",
        f"A display: carrick-device --server {board} --client-id {CLIENT}   then {board}/device on a phone",
    ]
