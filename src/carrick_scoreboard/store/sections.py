"""Settings of sections: the colours of their patrols."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from carrick.errors import InvalidInput
from carrick_scoreboard.store.tables import Tables

COLORS = ("red", "green", "blue", "yellow", "cyan", "magenta", "orange", "white")
MAX_PATROLS = 1_000

Colors = dict[str, str]
"""Colours by patrol id."""


class SectionSettings:
    """The settings of sections."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def colors(self, section_id: int) -> Colors:
        """The colours by patrol id; patrols without one are not there."""
        return self.colors_of([section_id]).get(section_id, {})

    def colors_of(self, section_ids: Collection[int]) -> dict[int, Colors]:
        """The same of many sections; those without settings are not there."""
        with self._tables.reading() as ask:
            rows = ask("section_settings_get", section_ids=list(section_ids))
        return {row["section_id"]: msgspec.json.decode(row["patrol_colors"], type=Colors) for row in rows}

    def set_colors(self, section_id: int, colors: Mapping[str, str], *, osm_user_id: int) -> Colors:
        """Write the colours; no colour (an empty text) takes one away. Raises InvalidInput."""
        chosen = checked_colors(colors)
        with self._tables.writing() as ask:
            ask(
                "section_settings_set",
                section_id=section_id,
                patrol_colors=msgspec.json.encode(chosen).decode(),
                updated_by=osm_user_id,
            )
        return chosen


def checked_colors(colors: Mapping[str, str]) -> Colors:
    """The colours without empty ones. Raises InvalidInput."""
    if len(colors) > MAX_PATROLS:
        raise InvalidInput("patrolColors", f"{len(colors)} patrols", f"at most {MAX_PATROLS}")
    for patrol_id, color in colors.items():
        if not patrol_id.isascii() or not patrol_id.isdecimal() or len(patrol_id) > 16:
            raise InvalidInput("patrolColors", f"{patrol_id[:40]!r} is no patrol id", "digits")
        if color and color not in COLORS:
            raise InvalidInput("patrolColors", f"{color[:40]!r} is no colour", f'{", ".join(COLORS)} or ""')
    return {patrol_id: color for patrol_id, color in colors.items() if color}
