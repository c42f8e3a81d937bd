"""The command as a process of its own."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from carrick_osmsim import command
from tests.osm import OsmProcess
from tests.scenario.processes import until


def test_it_prints_its_address_serves_and_stops(tmp_path: Path) -> None:
    with OsmProcess(tmp_path, "--clock", "2026-03-02T18:30:00Z") as process:
        until(lambda: "/\n" in process.log, "it prints its address")
        assert process.log == f"Online Scout Manager, simulated: {process.osm.url}/\n"
        state = asyncio.run(process.osm.state())
        assert (state["clock"], state["clock_stands"]) == ("2026-03-02T18:30:00Z", True)
        assert process.stop() == 0


def test_it_goes_on_with_its_file_after_a_kill(tmp_path: Path) -> None:
    async def write() -> None:
        await process.osm.write(await process.osm.token(), 88)

    with OsmProcess(tmp_path, "--state", "osm.json") as process:
        until(lambda: "/\n" in process.log, "it prints its address")
        asyncio.run(write())
        process.kill()
        process.start()
        until(lambda: process.log.count("/\n") == 2, "it prints its address again")
        assert asyncio.run(process.osm.points()) == 88


def test_calls_that_are_held_or_slow_are_answered_when_it_stops_and_those_without_an_answer_are_let_go(
    tmp_path: Path,
) -> None:
    async def leave_open() -> None:
        osm = process.osm
        token = await osm.token()
        await osm.control("fault", kind="never_answer", endpoint="points")
        await osm.control("fault", kind="slow", seconds=3600, endpoint="resource")
        await osm.control("hold", name="held", endpoint="patrols")
        calls = [asyncio.create_task(call) for call in (osm.write(token, 1), osm.profile(token), osm.read(token))]
        await osm.reached("held")
        while len(await osm.calls()) < 3:
            pass
        assert await asyncio.to_thread(process.stop) == 0
        assert [(await call).status for call in calls] == [0, 200, 200]

    with OsmProcess(tmp_path) as process:
        until(lambda: "/\n" in process.log, "it prints its address")
        asyncio.run(leave_open())


def test_the_demo_may_be_sent_back_to_more_addresses(tmp_path: Path) -> None:
    with OsmProcess(tmp_path, "--redirect-uri", "http://localhost:1234/x") as process:
        until(lambda: "/\n" in process.log, "it prints its address")
        apps = asyncio.run(process.osm.state())["apps"]
        assert "http://localhost:1234/x" in apps[0]["redirect_uris"]


def test_a_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command.run(["--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"carrick-osmsim: cannot listen on 127.0.0.1, port {port}: ")
    assert said.count("\n") == 1


def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "osm.json").write_text("nonsense")
    assert command.run(["--state", str(tmp_path / "osm.json")]) == 1
    assert "is no state of the simulator" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "x"], "x is no port; accepted are 0 to 65535"),
        (["--port", "70000"], "70000 is no port"),
        (["--clock", "noon"], "noon is no time; accepted is a time with its zone"),
        (["--clock", "2026-03-02T18:30:00"], "is no time"),
    ],
)
def test_bad_usage_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.run(arguments)
    assert exit_.value.code == 2
    assert said in capsys.readouterr().err
