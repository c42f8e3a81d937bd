"""After an outage fresh entries and the backlog share the way out."""

from __future__ import annotations

from carrick.relay.sharing import FRESH_SECONDS, Sharing
from tests.unit.relay.entries import batch, entry

OLD = batch(entry(1, age_seconds=3600))
YOUNG = batch(entry(2, age_seconds=1))


def claims(sharing: Sharing, count: int, *, fresh_waits: bool) -> list[bool]:
    """Whether each of so many claims went for fresh entries, while there is a backlog."""
    asked = []
    for _ in range(count):
        fresh = sharing.fresh_seconds()
        asked.append(fresh is not None)
        sharing.claimed(OLD if fresh is None else YOUNG if fresh_waits else batch(), fresh)
    return asked


def test_without_a_backlog_the_oldest_go_first() -> None:
    sharing = Sharing()
    for _ in range(20):
        assert sharing.fresh_seconds() is None
        sharing.claimed(YOUNG, None)
    assert not sharing.catching_up


def test_with_a_backlog_seven_of_ten_claims_are_for_fresh_entries() -> None:
    sharing = Sharing()
    sharing.claimed(OLD, None)
    assert sharing.catching_up
    assert sum(claims(sharing, 100, fresh_waits=True)) == 70


def test_where_nothing_is_fresh_the_backlog_gets_most_of_the_way() -> None:
    sharing = Sharing()
    sharing.claimed(OLD, None)
    assert sum(claims(sharing, 100, fresh_waits=False)) <= 30


def test_it_ends_when_the_oldest_are_young_again() -> None:
    sharing = Sharing()
    sharing.claimed(OLD, None)
    claims(sharing, 7, fresh_waits=True)
    assert sharing.fresh_seconds() is None
    sharing.claimed(YOUNG, None)
    assert not sharing.catching_up
    assert sharing.fresh_seconds() is None


def test_fresh_means_within_the_last_minute() -> None:
    sharing = Sharing()
    sharing.claimed(OLD, None)
    assert sharing.fresh_seconds() == FRESH_SECONDS
