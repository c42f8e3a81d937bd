"""QR codes as rows of dark and light."""

from __future__ import annotations

import segno

Modules = tuple[tuple[bool, ...], ...]


def modules_of(text: str) -> Modules:
    """The code of a text, without the light zone around it; dark is true. As small as can be: the reader is close."""
    made = segno.make_qr(text, error="l")
    return tuple(tuple(bool(module) for module in row) for row in made.matrix)


def framed(modules: Modules, zone: int) -> Modules:
    """The code with so many light modules around it."""
    width = len(modules) + 2 * zone
    blank = (False,) * width
    side = (False,) * zone
    return (blank,) * zone + tuple(side + row + side for row in modules) + (blank,) * zone
