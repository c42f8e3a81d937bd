"""The demo's scoreboard says what is true of the simulator, although the two share no code."""

from __future__ import annotations

import socket
from datetime import date
from pathlib import Path

import pytest

from carrick.errors import CarrickError
from carrick_osmsim.seed import DEMO_APP, DEMO_SECRET, PASSWORD, seeded
from carrick_scoreboard import demo, demo_evening


def test_who_can_sign_in_and_how_is_as_the_simulator_has_it() -> None:
    assert demo.PASSWORD == PASSWORD
    assert demo.SOMEBODY in [user.full_name for user in seeded(date(2026, 3, 2)).users.values()]
    assert (DEMO_APP, DEMO_SECRET) == ("carrick-demo", "not-a-secret")


def test_the_evening_is_of_people_and_patrols_that_the_simulator_has() -> None:
    world = seeded(date(2026, 3, 2))
    patrols = {str(patrol.patrol_id) for patrol in world.sections[demo_evening.SECTION].patrols}
    for given in demo_evening.EVENING:
        assert demo_evening.SECTION in world.users[int(given.leader)].rights
        assert set(given.points) <= patrols
    assert set(demo_evening.COLOURS) <= patrols
    ages = [given.minutes_ago for given in demo_evening.EVENING]
    assert ages == sorted(ages, reverse=True)


def test_a_port_that_is_taken_is_left_to_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert demo._port(port) != port
    assert demo._port(0) > 0


def test_a_simulator_that_does_not_start_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "CHILD", "raise SystemExit('carrick-osmsim: no')")
    with (
        pytest.raises(CarrickError, match="did not start: carrick-osmsim: no"),
        demo.simulated_osm("http://localhost:1", tmp_path / "osm.json"),
    ):
        pass


def test_a_simulator_whose_port_is_taken_meanwhile_takes_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(demo, "_port", lambda _: port)
        with demo.simulated_osm("http://localhost:1", tmp_path / "osm.json") as address:
            assert not address.endswith(f":{port}")
