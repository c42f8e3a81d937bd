"""The LEDs, with the library's place taken by one that remembers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from carrick_device.displays.matrix import MatrixDisplay
from carrick_device.errors import DeviceError
from carrick_device.screen import Board, Line, Notice


class Options:
    rows, cols, brightness, hardware_mapping, drop_privileges = 0, 0, 100, "regular", True


class Matrix:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.images: list[Any] = []

    def SetImage(self, image: Any) -> None:  # noqa: N802  (the library's name)
        self.images.append(image)

    def Clear(self) -> None:  # noqa: N802  (the library's name)
        self.images.append(None)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Matrix]:
    """Every matrix that is made."""
    matrices: list[Matrix] = []

    def make(options: Options) -> Matrix:
        matrices.append(Matrix(options))
        return matrices[-1]

    library = ModuleType("rgbmatrix")
    library.__dict__.update(RGBMatrixOptions=Options, RGBMatrix=make)
    monkeypatch.setitem(sys.modules, "rgbmatrix", library)
    return matrices


def test_it_shows_pages_of_64_by_32_and_goes_dark_at_the_end(made: list[Matrix]) -> None:
    display = MatrixDisplay(["brightness=60", "hardware_mapping=adafruit-hat"])
    six = Board(tuple(Line(f"Patrol {number}", number) for number in range(6)))
    assert display.pages(six) == 2
    display.show(six, 1)
    display.show(Notice("Hello", ""), 0)
    display.close()
    (matrix,) = made
    assert [image and image.size for image in matrix.images] == [(64, 32), (64, 32), None]
    options = matrix.options
    assert (options.rows, options.cols, options.brightness, options.hardware_mapping) == (32, 64, 60, "adafruit-hat")
    assert options.drop_privileges is False


@pytest.mark.parametrize("setting", ["brightness", "colour=red", "_private=1", ""])
def test_an_option_that_is_not_known_is_named(setting: str, made: list[Matrix]) -> None:
    with pytest.raises(DeviceError, match=r"is not known; accepted is NAME=VALUE with one of brightness, cols"):
        MatrixDisplay([setting])
    assert made == []


def test_without_the_library_it_says_what_to_do() -> None:
    with pytest.raises(DeviceError, match=r"needs the library rgbmatrix.*--display image"):
        MatrixDisplay()
