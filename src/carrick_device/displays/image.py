"""A picture of the matrix in a PNG file, large enough to look at."""

from __future__ import annotations

import io
import logging
import os
import tempfile
from pathlib import Path

from PIL import Image

from carrick_device.displays.drawing import HEIGHT, WIDTH, pages_of, picture_of
from carrick_device.errors import DeviceError
from carrick_device.screen import Screen

log = logging.getLogger("carrick.device")

SCALE = 10
LAMP = 9
"""Of ten points, nine are the lamp and one is the gap to the next."""
BETWEEN_PAGES = 20
BEHIND = (24, 24, 24)


class ImageDisplay:
    """Writes each page to the file, or with `all_pages` all of them below each other."""

    def __init__(self, file: Path, *, all_pages: bool = False) -> None:
        """Raises DeviceError when the file cannot be written."""
        self._file = file
        self._all_pages = all_pages
        if file.is_dir() or not os.access(file.parent, os.W_OK):
            raise DeviceError(f"--image-out {file} cannot be written; give a file in a folder that you may write to")

    def pages(self, screen: Screen) -> int:
        return 1 if self._all_pages else len(pages_of(screen))

    def show(self, screen: Screen, page: int) -> None:
        """Replace the file, so that nobody sees half a picture. A failure is told; the next page may work again."""
        drawn = pages_of(screen)
        chosen = drawn if self._all_pages else [drawn[page]]
        content = io.BytesIO()
        stacked([enlarged(picture_of(draw)) for draw in chosen]).save(content, format="PNG", optimize=True)
        try:
            _replace(self._file, content.getvalue())
        except OSError as error:
            log.warning("cannot write %s: %s", self._file, error.strerror or error)

    def close(self) -> None:
        """The picture stays."""


def enlarged(picture: Image.Image) -> Image.Image:
    """The picture with lamps of ten points, and darker lines between them: not so dark that a QR code suffers."""
    size = (WIDTH * SCALE, HEIGHT * SCALE)
    large = picture.resize(size, Image.Resampling.NEAREST)
    lines = Image.new("L", size, 0)
    for x in range(LAMP, size[0], SCALE):
        lines.paste(255, (x, 0, x + SCALE - LAMP, size[1]))
    for y in range(LAMP, size[1], SCALE):
        lines.paste(255, (0, y, size[0], y + SCALE - LAMP))
    large.paste(large.point(lambda light: light * 2 // 3), mask=lines)
    return large


def stacked(pictures: list[Image.Image]) -> Image.Image:
    """The pictures below each other."""
    step = HEIGHT * SCALE + BETWEEN_PAGES
    whole = Image.new("RGB", (WIDTH * SCALE, len(pictures) * step - BETWEEN_PAGES), BEHIND)
    for number, picture in enumerate(pictures):
        whole.paste(picture, (0, number * step))
    return whole


def _replace(file: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        temporary.chmod(0o644)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
