"""Counts in memory: each key in a window of its own, and only so many keys."""

from __future__ import annotations

from carrick.web.windows import Windows


def test_a_window_begins_with_its_first_and_ends_by_itself() -> None:
    now = [0.0]
    windows = Windows(60, clock=lambda: now[0])
    assert [windows.count("a"), windows.count("a"), windows.count("b")] == [(1, 60), (2, 60), (1, 60)]
    now[0] = 59.5
    assert windows.count("a") == (3, 1)
    now[0] = 60
    assert windows.count("a") == (1, 60)


def test_only_so_many_keys_are_kept_and_who_goes_on_is_among_them() -> None:
    windows = Windows(60, most=3)
    for number in range(9):
        windows.count(f"stranger {number}")
        windows.count("busy")
    assert windows.count("busy")[0] == 10
    assert windows.count("stranger 0")[0] == 1
    assert len(windows._windows) == 3
