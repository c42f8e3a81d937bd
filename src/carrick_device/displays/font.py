"""Letters of seven rows for a matrix of few lamps: capitals, digits and a few signs, four columns wide or less."""

from __future__ import annotations

import re
import unicodedata

HEIGHT = 7
GAP = 1
UNKNOWN = "#### #..# #..# #..# #..# #..# ####"

GLYPHS = {
    "A": ".##. #..# #..# #### #..# #..# #..#",
    "B": "###. #..# #..# ###. #..# #..# ###.",
    "C": ".##. #..# #... #... #... #..# .##.",
    "D": "###. #..# #..# #..# #..# #..# ###.",
    "E": "#### #... #... ###. #... #... ####",
    "F": "#### #... #... ###. #... #... #...",
    "G": ".##. #..# #... #.## #..# #..# .###",
    "H": "#..# #..# #..# #### #..# #..# #..#",
    "I": "### .#. .#. .#. .#. .#. ###",
    "J": "..## ...# ...# ...# ...# #..# .##.",
    "K": "#..# #..# #.#. ##.. #.#. #..# #..#",
    "L": "#... #... #... #... #... #... ####",
    "M": "#...# ##.## #.#.# #.#.# #...# #...# #...#",
    "N": "#..# #..# ##.# #.## #..# #..# #..#",
    "O": ".##. #..# #..# #..# #..# #..# .##.",
    "P": "###. #..# #..# ###. #... #... #...",
    "Q": ".##. #..# #..# #..# #..# #.#. .#.#",
    "R": "###. #..# #..# ###. #.#. #..# #..#",
    "S": ".### #... #... .##. ...# ...# ###.",
    "T": "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..",
    "U": "#..# #..# #..# #..# #..# #..# .##.",
    "V": "#...# #...# #...# #...# .#.#. .#.#. ..#..",
    "W": "#...# #...# #...# #.#.# #.#.# ##.## #...#",
    "X": "#...# #...# .#.#. ..#.. .#.#. #...# #...#",
    "Y": "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#..",
    "Z": "#### ...# ...# .##. #... #... ####",
    "0": ".##. #..# #..# #..# #..# #..# .##.",
    "1": ".#. ##. .#. .#. .#. .#. ###",
    "2": ".##. #..# ...# ..#. .#.. #... ####",
    "3": "###. ...# ...# .##. ...# ...# ###.",
    "4": "#..# #..# #..# #### ...# ...# ...#",
    "5": "#### #... #... ###. ...# ...# ###.",
    "6": ".##. #... #... ###. #..# #..# .##.",
    "7": "#### ...# ...# ..#. .#.. .#.. .#..",
    "8": ".##. #..# #..# .##. #..# #..# .##.",
    "9": ".##. #..# #..# .### ...# ...# .##.",
    " ": ".. .. .. .. .. .. ..",
    "-": "... ... ... ### ... ... ...",
    "+": "... ... .#. ### .#. ... ...",
    ".": ". . . . . . #",
    ",": ".. .. .. .. .. .# #.",
    ":": ". . # . # . .",
    ";": ".. .. .# .. .# .# #.",
    "'": "# # . . . . .",
    "!": "# # # # # . #",
    "?": "##. ..# ..# .#. .#. ... .#.",
    "&": ".#.. #.#. #.#. .#.. #.#. #.#. .#.#",
    "/": "..# ..# .#. .#. .#. #.. #..",
    "(": ".# #. #. #. #. #. .#",
    ")": "#. .# .# .# .# .# #.",
    "_": "... ... ... ... ... ... ###",
    "=": "... ... ### ... ### ... ...",
    "#": ".... #.#. #### #.#. #### #.#. ....",
}
SIGNS = str.maketrans(
    {0x2019: "'", 0x2018: "'", 0x201C: "'", 0x201D: "'", 0x2013: "-", 0x2014: "-", 0x60: "'", 0x22: "'"}
)
"""Curly quotes and long dashes, for which there is something close."""


def spelled(text: str) -> str:
    """The text in the letters there are: capitals without accents."""
    plain = unicodedata.normalize("NFKD", text.translate(SIGNS)).upper()
    return "".join(sign for sign in plain if not unicodedata.combining(sign))


def width_of(text: str) -> int:
    """How many columns a spelled text takes."""
    return sum(len(_rows(sign)[0]) + GAP for sign in text) - GAP if text else 0


def points_of(text: str) -> list[tuple[int, int]]:
    """The lamps that are lit for a spelled text, as (column, row)."""
    points = []
    left = 0
    for sign in text:
        rows = _rows(sign)
        points += [(left + x, y) for y, row in enumerate(rows) for x, lamp in enumerate(row) if lamp == "#"]
        left += len(rows[0]) + GAP
    return points


def cut(text: str, width: int) -> str:
    """As much of a spelled text as the columns hold; a full stop shows that there was more."""
    if width_of(text) <= width:
        return text
    kept = text
    while kept and width_of(f"{kept}.") > width:
        kept = kept[:-1]
    return f"{kept.rstrip(' -.')}." if kept else ""


def wrapped(text: str, width: int) -> list[str]:
    """A spelled text in lines of at most so many columns. A longer word is broken, after a sign if it has one."""
    words = [word if width_of(word) <= width else "\n".join(_broken(word, width)) for word in text.split()]
    lines: list[str] = []
    for word in words:
        first, *others = word.split("\n")
        if lines and width_of(f"{lines[-1]} {first}") <= width:
            lines[-1] = f"{lines[-1]} {first}"
        else:
            lines.append(first)
        lines += others
    return lines


def _broken(word: str, width: int) -> list[str]:
    parts = [part for part in re.findall(r"[^./-]*[./-]?", word) if part]
    pieces = [""]
    for part in parts if all(width_of(part) <= width for part in parts) else list(word):
        if pieces[-1] and width_of(pieces[-1] + part) > width:
            pieces.append("")
        pieces[-1] += part
    return pieces


def _rows(sign: str) -> list[str]:
    return GLYPHS.get(sign, UNKNOWN).split(" ")
