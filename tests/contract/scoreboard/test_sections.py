"""Settings of sections: the colours of their patrols."""

from __future__ import annotations

import pytest

from carrick.errors import InvalidInput
from carrick_scoreboard.store.sections import COLORS, MAX_PATROLS, SectionSettings
from carrick_scoreboard.store.tables import Tables

SCOUTS, CUBS = 40104, 40103


@pytest.fixture
def settings(tables: Tables) -> SectionSettings:
    return SectionSettings(tables)


def test_a_section_has_no_colours_at_first(settings: SectionSettings) -> None:
    assert settings.colors(SCOUTS) == {}


def test_colours_are_written_whole_for_one_section(settings: SectionSettings) -> None:
    chosen = {str(number): color for number, color in enumerate(COLORS)}
    assert settings.set_colors(SCOUTS, chosen, osm_user_id=7) == chosen
    assert settings.colors(SCOUTS) == chosen
    assert settings.colors(CUBS) == {}
    settings.set_colors(SCOUTS, {"1": "red"}, osm_user_id=8)
    assert settings.colors(SCOUTS) == {"1": "red"}


def test_an_empty_colour_is_none(settings: SectionSettings) -> None:
    assert settings.set_colors(SCOUTS, {"1": "red", "2": ""}, osm_user_id=7) == {"1": "red"}
    assert settings.colors(SCOUTS) == {"1": "red"}


WRONG: list[dict[str, str]] = [
    {"1": "pink"},
    {"1": "Red"},
    {"-2": "red"},
    {"": "red"},
    {"unallocated": "red"},
    {"1" * 17: "red"},
    {"\u0661": "red"},
    {str(number): "red" for number in range(MAX_PATROLS + 1)},
]


def test_what_is_no_colour_of_a_patrol_is_refused_and_changes_nothing(settings: SectionSettings) -> None:
    settings.set_colors(SCOUTS, {"1": "red"}, osm_user_id=7)
    for colors in WRONG:
        with pytest.raises(InvalidInput, match="patrolColors"):
            settings.set_colors(SCOUTS, colors, osm_user_id=7)
    assert settings.colors(SCOUTS) == {"1": "red"}
