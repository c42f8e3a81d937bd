"""The world as it begins."""

from __future__ import annotations

from datetime import date

from carrick_osmsim.seed import seeded

TODAY = date(2026, 3, 2)


def test_the_same_day_gives_the_same_world() -> None:
    assert seeded(TODAY) == seeded(TODAY)


def test_every_kind_of_section_is_there() -> None:
    kinds = {section.section_type for section in seeded(TODAY).sections.values()}
    assert kinds == {"squirrels", "beavers", "cubs", "scouts", "explorers"}


def test_sections_are_in_one_term_in_two_between_terms_and_without_any() -> None:
    current = {
        sum(term.startdate <= "2026-03-02" <= term.enddate for term in section.terms)
        for section in seeded(TODAY).sections.values()
    }
    assert current == {0, 1, 2}


def test_several_leaders_share_a_section_and_rights_differ() -> None:
    levels = [user.rights.get(40104, {}).get("member") for user in seeded(TODAY).users.values()]
    assert levels == ["write", "write", "read", None, None, "write", None]


def test_rights_and_members_name_only_what_is_there() -> None:
    world = seeded(TODAY)
    assert all(section in world.sections for user in world.users.values() for section in user.rights)
    for section in world.sections.values():
        patrols = {0, *(patrol.patrol_id for patrol in section.patrols)}
        assert {member.patrol_id for member in section.members} <= patrols


def test_every_address_is_one_that_cannot_exist() -> None:
    assert all(user.email.endswith(".example") for user in seeded(TODAY).users.values())
