"""The matrix as a picture in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from carrick_device.displays.image import ImageDisplay
from carrick_device.errors import DeviceError
from carrick_device.screen import Board, Line, Notice

SIX = Board(tuple(Line(f"Patrol {number}", number) for number in range(6)))


def size(file: Path) -> tuple[int, int]:
    with Image.open(file) as picture:
        return picture.size


def test_each_page_replaces_the_file_with_a_picture_ten_times_as_large(tmp_path: Path) -> None:
    file = tmp_path / "scores.png"
    display = ImageDisplay(file)
    assert display.pages(SIX) == 2
    display.show(SIX, 0)
    first = file.read_bytes()
    display.show(SIX, 1)
    assert first != file.read_bytes()
    assert size(file) == (640, 320)
    assert [each.name for each in tmp_path.iterdir()] == ["scores.png"]


def test_all_pages_can_be_in_one_picture(tmp_path: Path) -> None:
    display = ImageDisplay(tmp_path / "scores.png", all_pages=True)
    assert display.pages(SIX) == 1
    display.show(SIX, 0)
    assert size(tmp_path / "scores.png") == (640, 660)


def test_a_lamp_is_as_bright_as_its_colour_and_the_lines_between_are_darker(tmp_path: Path) -> None:
    ImageDisplay(tmp_path / "scores.png").show(Board((Line("I", 0),)), 0)
    with Image.open(tmp_path / "scores.png") as picture:
        lit = [x for x in range(640) if picture.getpixel((x, 125)) == (255, 255, 255)]
        assert picture.getpixel((9, 125)) != (255, 255, 255)
    assert lit


def test_a_file_that_cannot_be_written_any_more_is_told_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    display = ImageDisplay(folder / "scores.png")
    folder.rename(tmp_path / "elsewhere")
    display.show(Notice("Hello", ""), 0)
    assert "scores.png: No such file or directory" in caplog.text
    (tmp_path / "elsewhere").rename(folder)
    display.show(Notice("Hello", ""), 0)
    assert size(folder / "scores.png") == (640, 320)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot be written"):
        ImageDisplay(tmp_path)
