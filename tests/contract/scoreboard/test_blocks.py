"""The book of blocks and the audit: at most one block stands, and a person ends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from carrick.errors import InvalidInput, StoreError
from carrick.testing import Clock
from carrick_scoreboard.store.audit import Audit, write_audit
from carrick_scoreboard.store.blocks import MAX_HEADER, MAX_REASON, Blocks
from carrick_scoreboard.store.tables import Tables


@pytest.fixture
def blocks(tables: Tables) -> Blocks:
    return Blocks(tables)


def test_the_tables_are_those_of_this_release(tables: Tables) -> None:
    tables.check_schema()


def test_nothing_stands_at_first(blocks: Blocks) -> None:
    assert blocks.standing() is None
    assert blocks.latest() == []


def test_the_first_note_of_a_block_is_news_and_the_second_changes_nothing(blocks: Blocks, clock: Clock) -> None:
    assert blocks.note("abuse")
    first = blocks.standing()
    clock.shift(60)
    assert not blocks.note("more abuse")
    assert blocks.standing() == first
    assert first is not None
    assert (first.header, first.cleared_at) == ("abuse", None)
    assert blocks.latest() == [first]


def test_clearing_ends_the_block_and_leaves_who_why_and_when(blocks: Blocks, tables: Tables, clock: Clock) -> None:
    blocks.note("abuse")
    clock.shift(60)
    cleared = blocks.clear("ann@desk", "spoke to OSM")
    assert cleared is not None
    assert blocks.standing() is None
    (latest,) = blocks.latest()
    assert (latest.header, latest.cleared_by, latest.reason) == ("abuse", "ann@desk", "spoke to OSM")
    assert latest.cleared_at is not None
    assert latest.cleared_at - latest.blocked_at >= timedelta(seconds=60)
    (act,) = Audit(tables).latest("osm")
    assert (act.actor, act.action) == ("ann@desk", "osm.unblock")
    assert act.detail == {"reason": "spoke to OSM", "block": latest.id, "header": "abuse"}


def test_clearing_where_nothing_stands_changes_nothing(blocks: Blocks, tables: Tables) -> None:
    assert blocks.clear("ann@desk", "just in case") is None
    assert Audit(tables).latest() == []


def test_a_cleared_block_cannot_be_cleared_again(blocks: Blocks) -> None:
    blocks.note("abuse")
    blocks.clear("ann", "spoke to OSM")
    assert blocks.clear("bob", "me too") is None
    assert [block.cleared_by for block in blocks.latest()] == ["ann"]


def test_a_block_after_a_cleared_one_is_news_again(blocks: Blocks) -> None:
    blocks.note("first")
    blocks.clear("ann", "spoke to OSM")
    assert blocks.note("second")
    assert [block.header for block in blocks.latest()] == ["second", "first"]
    assert [block.header for block in blocks.latest(1)] == ["second"]


def test_a_block_is_not_cleared_without_a_reason_that_can_be_read(blocks: Blocks) -> None:
    blocks.note("abuse")
    for reason in ("", "  ", "a\nb", "x" * (MAX_REASON + 1), "\udcff", "\0"):
        with pytest.raises(InvalidInput, match="reason"):
            blocks.clear("ann", reason)
    assert blocks.standing() is not None


def test_a_block_is_written_down_whatever_the_header_says(blocks: Blocks) -> None:
    said = {"": "", "a\0b": "a?b", "caf\udce9": "caf?", "x" * 9_999: "x" * MAX_HEADER, "Gesperrt: ü": "Gesperrt: ü"}
    for header, kept in said.items():
        assert blocks.note(header)
        standing = blocks.clear("ann", "spoke to OSM")
        assert standing is not None
        assert standing.header == kept


def test_the_audit_lists_the_newest_first_about_one_subject_or_all(tables: Tables) -> None:
    for number in range(3):
        with tables.writing() as ask:
            write_audit(ask, "ann", "test.do", f"thing:{number % 2}", {"number": number})
    audit = Audit(tables)
    assert [act.detail["number"] for act in audit.latest()] == [2, 1, 0]
    assert [act.detail["number"] for act in audit.latest("thing:0")] == [2, 0]
    assert [act.detail["number"] for act in audit.latest(limit=1)] == [2]
    assert audit.latest("thing:%") == []


def act_twice(tables: Tables, second: str) -> None:
    """Two acts in one transaction, the second by another actor."""
    with tables.writing() as ask:
        write_audit(ask, "ann", "test.do", "thing", {})
        write_audit(ask, second, "test.do", "thing", {})


def test_an_act_that_fails_leaves_no_audit_row(tables: Tables) -> None:
    with pytest.raises(StoreError):
        act_twice(tables, "")
    assert Audit(tables).latest() == []


def test_text_that_no_database_can_hold_is_refused_and_undone(tables: Tables) -> None:
    with pytest.raises(InvalidInput):
        act_twice(tables, "caf\udce9")
    assert Audit(tables).latest() == []


def test_a_call_that_osm_will_end_is_known_as_it_said_last_until_it_says_so_no_more(blocks: Blocks) -> None:
    blocks.note_ending("profile", "so\0on", None)
    blocks.note_ending("patrols", "2027-01-31", datetime(2027, 1, 31, tzinfo=UTC))
    blocks.note_ending("patrols", "2026-12-31", datetime(2026, 12, 31, tzinfo=UTC))
    found = [(ending.endpoint, ending.said, ending.ends_at) for ending in blocks.endings()]
    assert found == [("patrols", "2026-12-31", datetime(2026, 12, 31, tzinfo=UTC)), ("profile", "so?on", None)]
    blocks.forget_ending("patrols")
    blocks.forget_ending("patrols")
    assert [ending.endpoint for ending in blocks.endings()] == ["profile"]
