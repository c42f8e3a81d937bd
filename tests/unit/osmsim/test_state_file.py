"""The state file: a demo goes on where it stopped."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from carrick_osmsim.simulator import Simulator
from carrick_osmsim.state_file import StateError
from tests.osm import EAGLES, ROBIN, SCOUTS, simulated


def test_points_tokens_budgets_blocks_and_the_clock_outlive_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with simulated(tmp_path / "osm.json") as osm:
            pair = await osm.control("tokens", user_id=ROBIN)
            await osm.write(pair["access_token"], 77)
            await osm.control("clock", advance_seconds=60)
            await osm.control("block")
            before = await osm.state()
        async with simulated(tmp_path / "osm.json") as osm:
            assert {**await osm.state(), "last_call": 1} == before
            await osm.control("unblock")
            assert (await osm.read(pair["access_token"])).json[str(EAGLES)]["points"] == "77"

    asyncio.run(main())


def test_a_write_is_in_the_file_before_it_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        async with simulated(tmp_path / "osm.json") as osm:
            await osm.control("fault", kind="apply_then_drop")
            await osm.write(await osm.token(), 77)
            kept = Simulator(state=tmp_path / "osm.json").world.sections[SCOUTS].patrol(EAGLES)
            assert kept is not None
            assert kept.points == 77

    asyncio.run(main())


def test_calls_made_while_blocked_are_remembered(tmp_path: Path) -> None:
    async def main() -> None:
        async with simulated(tmp_path / "osm.json") as osm:
            await osm.control("block")
            for _ in range(3):
                await osm.call("GET", "/oauth/resource")
        block = Simulator(state=tmp_path / "osm.json").world.block
        assert block is not None
        assert (block.sins, block.permanent) == (2, True)

    asyncio.run(main())


def test_no_half_written_file_is_left(tmp_path: Path) -> None:
    Simulator(state=tmp_path / "osm.json")
    assert [file.name for file in tmp_path.iterdir()] == ["osm.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no state of the simulator"),
        ("{}", "is no state of the simulator"),
        ('{"version": 0, "users": {}, "sections": {}, "apps": {}, "clock": {}}', "is of version 0, this is 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_kept(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "osm.json"
    file.write_text(text)
    with pytest.raises(StateError, match=said):
        Simulator(state=file)
    assert file.read_text() == text


def test_a_file_that_can_no_longer_be_written_is_told_on_every_call(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()

    async def main() -> None:
        async with simulated(folder / "osm.json") as osm:
            token = await osm.token()
            (folder / "osm.json").unlink()
            folder.rmdir()
            for answer in (await osm.write(token, 1), await osm.try_control("block")):
                assert (answer.status, answer.json["error"]) == (507, "state_file")
                assert "cannot write" in answer.json["message"]

    asyncio.run(main())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot write"):
        Simulator(state=tmp_path / "nowhere" / "osm.json")
