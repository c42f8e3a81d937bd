"""The scoreboard part of `carrick demo`: a scoreboard, and a simulated Online Scout Manager for it to talk to."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from carrick.errors import CarrickError, SettingsError
from carrick.ops.background import Background
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
    osm: str = ""


class ScoreboardDemo(Background):
    """Runs in a thread of its own. `build` may raise SettingsError for a port that is taken."""

    def __init__(self, build: Build) -> None:
        super().__init__("carrick-demo-scoreboard")
        self._build = build
        self.places = Places()

    async def work(self) -> None:
        try:
            await self._serve(_port(PORT))
        except SettingsError:  # somebody took the port in the meantime: any will do
            await self._serve(_port(0))

    async def _serve(self, port: int) -> None:
        address = f"http://localhost:{port}"
        with simulated_osm(address) as osm:
            service = self._build(port, osm)

            def is_started(_: int, __: int) -> None:
                self.places = Places(address, osm)
                self.started.set()

            await service.run(self.stopping, is_started)


@contextmanager
def simulated_osm(scoreboard: str) -> Iterator[str]:
    """The simulator as a process of its own, which sends people back to that address; its own address."""
    back = [f"--redirect-uri={scoreboard}{path}" for path in ("/oauth/callback", "/admin/callback")]
    command = [sys.executable, "-c", CHILD, "--port", str(_port(OSM_PORT)), *back]
    with subprocess.Popen(  # noqa: S603  our own code, and no shell
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C is for the demo: it ends the simulator itself
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().strip()
            if not said.startswith(GREETING):
                raise CarrickError(f"the simulated OSM did not start: {said}")
            yield said.removeprefix(GREETING).rstrip("/")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


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
    grant = "grant_type=urn:ietf:params:oauth:grant-type:device_code"
    return [
        f"Scoreboard: {board}/   connect a display: {board}/device   console of everything: {board}/console/",
        f"Simulated Online Scout Manager, with its control panel: {places.osm}/",
        f"  sign in there as {SOMEBODY} or anybody on its list, password {PASSWORD}",
        "A display from this terminal; open verification_uri_complete in a browser after the first line:",
        f"  curl -s {board}/device/authorize -d client_id={CLIENT}",
        f"  curl -s {board}/device/token -d client_id={CLIENT} -d {grant} -d device_code=DEVICE_CODE",
        f"  curl -s {board}/api/v1/patrols -H 'Authorization: Bearer ACCESS_TOKEN'",
    ]
