"""Carrick's SQL in the placeholder styles of other libraries.

The .sql files have `%(name)s` for PostgreSQL and `:name` for SQLite; what else the text holds (casts, literals,
comments) must come out as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from typing import Any, NamedTuple

CAST = re.compile(r"%\((?P<name>\w+)\)s(?P<cast>::\w+(?: precision)?(?P<array>\[\])?)?|%%")
"""A PostgreSQL placeholder with the cast that follows it, or a literal percent sign."""

LITE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?<![\w:]):(?P<name>[A-Za-z_]\w*)", re.DOTALL)
"""In SQLite's text: comments and quoted text, which hold no placeholders, or a placeholder."""


class Slot(NamedTuple):
    """A parameter and how it goes: as it is, as text, or as a list of texts."""

    name: str
    array: bool | None

    def value(self, params: Mapping[str, Any]) -> Any:
        """What to send for it."""
        given = params[self.name]
        if self.array is None or given is None:
            return given
        return [as_text(item) for item in given] if self.array else as_text(given)


@cache
def numbered(sql: str) -> tuple[str, tuple[Slot, ...]]:
    """PostgreSQL's text with $1, $2, ... and what goes there."""
    slots: list[Slot] = []
    text = _with_text_casts(sql, slots, lambda slot: f"${slots.index(slot) + 1}", lambda plain: plain)
    return text, tuple(slots)


@cache
def colon_binds(sql: str) -> tuple[str, dict[str, Slot]]:
    r"""PostgreSQL's text with `:b0`, `:b1`, ... for SQLAlchemy's text(), all other colons escaped; what goes there."""
    slots: list[Slot] = []
    text = _with_text_casts(sql, slots, lambda slot: f":b{slots.index(slot)}", _escape_colons)
    return text, {f"b{number}": slot for number, slot in enumerate(slots)}


@cache
def lite_colon_binds(sql: str) -> str:
    """SQLite's text for SQLAlchemy's text(): colons that begin no placeholder are escaped."""
    return _around_lite_names(sql, lambda name: f":{name}", _escape_colons)


@cache
def lite_pyformat(sql: str) -> str:
    """SQLite's text with `%(name)s`, as Django takes it."""
    return _around_lite_names(sql, lambda name: f"%({name})s", lambda plain: plain.replace("%", "%%"))


def as_text(value: Any) -> Any:
    """The value as PostgreSQL reads it from text. Drivers that insist on exact types, and codecs that the caller has
    registered for JSON and the like, then have no say.
    """
    match value:
        case None | str():
            return value
        case bytes():
            return value.decode()
        case bool():
            return "true" if value else "false"
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _with_text_casts(
    sql: str, slots: list[Slot], placeholder: Callable[[Slot], str], plain: Callable[[str], str]
) -> str:
    """Each cast placeholder goes as text and is cast from there; equal ones share a slot."""
    parts: list[str] = []
    end = 0
    for match in CAST.finditer(sql):
        parts.append(plain(sql[end : match.start()]))
        end = match.end()
        if match["name"] is None:
            parts.append("%")
            continue
        slot = Slot(match["name"], bool(match["array"]) if match["cast"] else None)
        if slot not in slots:
            slots.append(slot)
        through = "" if slot.array is None else "::text[]" if slot.array else "::text"
        parts += [placeholder(slot), plain(through + (match["cast"] or ""))]
    return "".join([*parts, plain(sql[end:])])


def _around_lite_names(sql: str, placeholder: Callable[[str], str], plain: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for match in LITE.finditer(sql):
        if match["name"] is None:
            continue
        parts += [plain(sql[end : match.start()]), placeholder(match["name"])]
        end = match.end()
    return "".join([*parts, plain(sql[end:])])


def _escape_colons(text: str) -> str:
    return text.replace(":", r"\:")
