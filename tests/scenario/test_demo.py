"""`carrick demo` as a person starts and stops it: a real process, on both databases, in a pipe and in a terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from carrick_osmsim.seed import PASSWORD
from carrick_scoreboard.demo import SOMEBODY
from tests import postgres_server
from tests.scenario.processes import until
from tests.service import sign_in

COMMAND = [sys.executable, "-c", "from carrick.cli import main; main()", "demo"]
SUM = re.compile(
    r"put (\d+) = delivered (\d+) \+ dead (\d+) \+ waiting (\d+): it adds up, nothing was lost\n"
    r"forwarder: .*: nothing was lost\n$"
)
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"


def environment(folder: Path) -> dict[str, str]:
    """As in a fresh terminal, with temporary files in the folder."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**kept, "TMPDIR": str(folder), "TERM": "xterm-256color", "COLUMNS": "120"}


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The demo in a pipe; it is gone afterwards whatever happened."""
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(folder)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_in_a_pipe_it_prints_plain_lines_and_a_sum_that_is_right(tmp_path: Path) -> None:
    with started(tmp_path, "--seconds", "3.5") as process:
        shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    lines = shown.splitlines()
    assert lines[0].startswith("Scoreboard: http://localhost:")
    assert all(re.match(r"\d+s put \d+ delivered \d+ dead \d+ waiting \d+", line) for line in lines[7:-2])
    found = SUM.search(shown)
    assert found is not None
    put, delivered, dead, waiting = map(int, found.groups())
    assert put == delivered + dead + waiting
    assert delivered > 0
    assert "\x1b" not in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_ends_cleanly_with_the_sum_and_leaves_no_file(number: int, tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert SUM.search(shown)
    assert list(tmp_path.iterdir()) == []


def places(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The addresses of the scoreboard and of the simulated OSM, as the demo prints them."""
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    board = re.match(r"Scoreboard: (http://localhost:\d+)/ ", first)
    osm = re.match(r"Simulated Online Scout Manager, with its control panel: (http://127.0.0.1:\d+)/$", second.strip())
    assert board is not None, first
    assert osm is not None, second
    return board[1], osm[1]


def test_a_display_can_be_connected_to_its_scoreboard_as_it_says(tmp_path: Path) -> None:
    async def patrols(board: str) -> list[str]:
        token = await sign_in(board, client_id="demo-display")
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{board}/api/v1/patrols", headers=headers) as answer,
        ):
            return [patrol["name"] for patrol in (await answer.json())["patrols"]]

    with started(tmp_path) as process:
        board, osm = places(process)
        assert process.stdout is not None
        guide = "".join(process.stdout.readline() for _ in range(5))
        assert f"{SOMEBODY} or anybody on its list, password {PASSWORD}\n" in guide
        for path in ("/device/authorize", "/device/token", "/api/v1/patrols"):
            assert f"curl -s {board}{path}" in guide
        assert asyncio.run(patrols(board)) == ["Eagles", "Lions", "Wolves"]
        with urllib.request.urlopen(osm) as panel:
            assert panel.status == 200
        process.send_signal(signal.SIGTERM)
        assert "Traceback" not in process.communicate(timeout=60)[0]
    assert list(tmp_path.iterdir()) == []


def test_what_it_started_ends_with_it_even_when_it_is_killed(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        _, osm = places(process)
        process.kill()
        process.wait(60)
    until(lambda: is_gone(osm), "the simulated OSM is gone")


def is_gone(url: str) -> bool:
    """Whether nobody listens at that address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


def test_in_a_terminal_it_shows_live_figures_and_gives_the_terminal_back(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(tmp_path)) as process:
        os.close(theirs)
        shown = read_until(ours, b"demo.scores")
        process.send_signal(signal.SIGINT)
        shown += read_until(ours, None)
        assert process.wait(timeout=60) == 0
    os.close(ours)
    for word in (b"demo.readings", b"demo.invoices", b"held", b"oldest"):
        assert word in shown
    assert shown.rfind(SHOW_CURSOR) > shown.rfind(HIDE_CURSOR) > -1
    assert SUM.search(shown.decode().replace("\r\n", "\n"))
    assert b"Traceback" not in shown


def read_until(terminal: int, wanted: bytes | None) -> bytes:
    """What the terminal shows up to the wanted bytes, or to its end."""
    shown = b""
    while wanted is None or wanted not in shown:
        try:
            more = os.read(terminal, 65536)
        except OSError:  # on Linux: the other end is closed
            more = b""
        if not more:
            return shown
        shown += more
    return shown


@pytest.mark.parametrize("version", postgres_server.versions())
def test_on_postgresql_it_works_the_same_and_goes_on_where_it_stopped(version: int, tmp_path: Path) -> None:
    url = postgres_server.fresh_database(version, migrated=False)
    try:
        for _ in range(2):
            with started(tmp_path, "--seconds", "2.5", "--database", url) as process:
                shown, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
            assert SUM.search(shown)
    finally:
        postgres_server.drop_database(version, url)


def test_a_database_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with started(tmp_path, "--database", f"sqlite:///{tmp_path}/no-such-folder/demo.db") as process:
        shown, errors = process.communicate(timeout=60)
    assert (process.returncode, shown) == (1, "")
    assert errors.startswith("carrick: ")
    assert errors.count("\n") == 1
