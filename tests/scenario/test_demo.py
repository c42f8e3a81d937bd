"""`carrick demo` as a person starts and stops it: a real process, on both databases, in a pipe and in a terminal."""

from __future__ import annotations

import asyncio
import json
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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from carrick_osmsim.seed import PASSWORD
from carrick_scoreboard.demo import SOMEBODY
from carrick_scoreboard.demo_evening import EVENING
from tests import postgres_server
from tests.osm import EAGLES
from tests.phone import Phone
from tests.scenario.processes import until
from tests.service import sign_in

COMMAND = [sys.executable, "-c", "from carrick.cli import main; main()", "demo"]
SUM = re.compile(
    r"put (\d+) = delivered (\d+) \+ dead (\d+) \+ waiting (\d+): it adds up, nothing was lost\n"
    r"forwarder: .*: nothing was lost\n$"
)
GUIDE_LINES = 7
POINTS_OF_THE_EVENING = sum(len(given.points) for given in EVENING)
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"


def environment(folder: Path) -> dict[str, str]:
    """As in a fresh terminal, with temporary files in a folder of their own."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    (folder / "tmp").mkdir(exist_ok=True)
    return {**kept, "TMPDIR": str(folder / "tmp"), "TERM": "xterm-256color", "COLUMNS": "120"}


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The demo in a pipe, started in that folder; it is gone afterwards whatever happened."""
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(folder),
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
    assert lines[0].startswith("Score entry:          http://localhost:")
    assert all(re.match(r"\d+s put \d+ delivered \d+ dead \d+ waiting \d+", line) for line in lines[GUIDE_LINES:-2])
    found = SUM.search(shown)
    assert found is not None
    put, delivered, dead, waiting = map(int, found.groups())
    assert put == delivered + dead + waiting
    assert delivered > 0
    assert "\x1b" not in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_ends_cleanly_with_the_sum_and_leaves_its_folder_only(number: int, tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert SUM.search(shown)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["carrick-demo", "tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []


class Places(NamedTuple):
    """The addresses that the demo prints."""

    scoreboard: str
    board: str
    osm: str
    guide: str


def places(process: subprocess.Popen[str]) -> Places:
    """Where things are, as the demo says."""
    assert process.stdout is not None
    guide = "".join(process.stdout.readline() for _ in range(GUIDE_LINES))
    found = [
        re.search(rf"^{name}: +(http://[^ /]+)(\S*)", guide, re.MULTILINE)
        for name in ("Score entry", "Live board", "Simulated OSM")
    ]
    entry, board, osm = (each for each in found if each is not None)
    return Places(entry[1], board[2], osm[1], guide)


def stop(process: subprocess.Popen[str]) -> None:
    """Ask it to; it ends well."""
    process.send_signal(signal.SIGTERM)
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert SUM.search(shown)


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
        at = places(process)
        assert f"{SOMEBODY} or anybody on its list, and allow it; the password is {PASSWORD}." in at.guide
        assert f"carrick-device --server {at.scoreboard} --client-id demo-display" in at.guide
        assert asyncio.run(patrols(at.scoreboard)) == ["Eagles", "Lions", "Wolves"]
        for address in (at.osm, f"{at.scoreboard}/admin/", at.scoreboard + at.board, f"{at.scoreboard}/api/ready"):
            with urllib.request.urlopen(address) as page:
                assert page.status == 200
        stop(process)


def test_the_evening_has_begun_and_the_next_demo_goes_on_with_it(tmp_path: Path) -> None:
    async def given(at: Places) -> list[dict[str, Any]]:
        async with Phone(at.scoreboard) as robin:
            await robin.sign_in()
            async with robin.browser.session.ws_connect(f"{at.scoreboard}/ws{at.board}") as news:
                while len(history := await robin.history()) < POINTS_OF_THE_EVENING:
                    await news.receive_str()
            return history

    async def more(at: Places) -> None:
        async with Phone(at.scoreboard) as robin:
            await robin.sign_in()
            assert (await robin.give({EAGLES: 7}))[0] == 200

    with started(tmp_path) as process:
        first = places(process)
        evening = asyncio.run(given(first))
        asyncio.run(more(first))
        stop(process)
    assert {line["userName"] for line in evening} == {"Robin Merriweather", "Hazel Fernsby"}
    with started(tmp_path) as process:
        second = places(process)
        history = asyncio.run(given(second))
        scores = json.loads(urllib.request.urlopen(f"{second.scoreboard}/api{second.board}").read())
        stop(process)
    assert second.board == first.board
    oldest = datetime.fromisoformat(history[-1]["createdAt"])
    assert datetime.now(UTC) - oldest > timedelta(minutes=EVENING[0].minutes_ago - 1)
    assert [line["points"] for line in history] == [7, *(line["points"] for line in evening)]
    assert scores["settings"]["patrolColors"] == {"72699": "red", "72700": "yellow", "132322": "blue"}
    assert {one["name"]: one["score"] for one in scores["patrols"]}["Eagles"] == history[0]["newScore"]
    with started(tmp_path, "--fresh") as process:
        anew = asyncio.run(given(places(process)))
        stop(process)
    assert len(anew) == POINTS_OF_THE_EVENING


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        places(process)
        with started(tmp_path) as other:
            shown, errors = other.communicate(timeout=60)
        assert (other.returncode, shown) == (1, "")
        assert errors == "carrick: another demo uses the folder carrick-demo; stop it, or try --folder DIR\n"
        stop(process)


def test_what_it_started_ends_with_it_even_when_it_is_killed(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        osm = places(process).osm
        process.kill()
        process.wait(60)
    until(lambda: is_gone(osm), "the simulated OSM is gone")


def is_gone(url: str) -> bool:
    """Whether nobody listens at that address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


def test_in_a_terminal_it_shows_live_figures_and_gives_the_terminal_back(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment(tmp_path)
    ) as process:
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
