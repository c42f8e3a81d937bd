"""A real matrix of 64x32 LEDs, driven by the library rgbmatrix (hzeller's rpi-rgb-led-matrix) on a Raspberry Pi."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from carrick_device.displays.drawing import HEIGHT, WIDTH, pages_of, picture_of
from carrick_device.errors import DeviceError
from carrick_device.screen import Screen


class MatrixDisplay:
    """Owns the LEDs until it is closed."""

    def __init__(self, settings: Sequence[str] = ()) -> None:
        """Each setting is NAME=VALUE, of the library's own options. Raises DeviceError without the library."""
        library = _library()
        options = library.RGBMatrixOptions()
        options.rows, options.cols = HEIGHT, WIDTH
        options.drop_privileges = False  # else the token file could no longer be written
        for setting in settings:
            _set(options, setting)
        self._matrix = library.RGBMatrix(options=options)

    def pages(self, screen: Screen) -> int:
        return len(pages_of(screen))

    def show(self, screen: Screen, page: int) -> None:
        self._matrix.SetImage(picture_of(pages_of(screen)[page]))

    def close(self) -> None:
        """All lamps off."""
        self._matrix.Clear()


def _library() -> Any:
    try:
        return importlib.import_module("rgbmatrix")
    except ImportError:
        raise DeviceError(
            "--display matrix needs the library rgbmatrix, which drives LEDs on a Raspberry Pi and is not installed;"
            " docs/how-to/device.md says how. To see the same picture without LEDs: --display image --image-out FILE"
        ) from None


def _set(options: Any, setting: str) -> None:
    """Change one option of the library; numbers become numbers."""
    name, separator, value = setting.partition("=")
    known = sorted(option for option in dir(options) if not option.startswith("_"))
    if not separator or name not in known:
        raise DeviceError(f"--led {setting} is not known; accepted is NAME=VALUE with one of {', '.join(known)}")
    try:
        setattr(options, name, int(value) if value.lstrip("-").isdecimal() else value)
    except (TypeError, ValueError) as error:
        raise DeviceError(f"--led {setting} is not accepted: {error}") from error
