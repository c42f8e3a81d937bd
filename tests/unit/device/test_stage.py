"""Pages turn by themselves."""

from __future__ import annotations

import asyncio

from carrick_device.screen import Board, Line, Notice, Screen
from carrick_device.stage import PAGE_SECONDS, Stage
from tests.unit.device.scripted import StandingClock, until


class Paged:
    """A display with a page for each patrol."""

    def __init__(self) -> None:
        self.shown: list[tuple[Screen, int]] = []

    def pages(self, screen: Screen) -> int:
        return len(screen.lines) if isinstance(screen, Board) else 1

    def show(self, screen: Screen, page: int) -> None:
        self.shown.append((screen, page))

    def close(self) -> None:
        pass


def board(*totals: int) -> Board:
    return Board(tuple(Line("Owls", total) for total in totals))


def test_pages_turn_come_round_and_go_on_when_the_scores_change() -> None:
    async def story() -> None:
        clock, display = StandingClock(), Paged()
        stage = Stage(display, clock)
        turning = asyncio.create_task(stage.turn_pages())
        stage.show(board(1, 2))
        assert [await clock.wake(), await clock.wake(), await clock.wait()] == [PAGE_SECONDS] * 3
        assert [page for _, page in display.shown] == [0, 1, 0]
        clock.go(PAGE_SECONDS)
        await clock.wait()
        stage.show(board(1, 2))
        stage.show(board(1, 3))
        assert display.shown[3:] == [(board(1, 2), 1), (board(1, 3), 1)]
        turning.cancel()

    asyncio.run(story())


def test_a_board_with_fewer_pages_and_another_kind_of_screen_begin_where_they_can() -> None:
    async def story() -> None:
        clock, display = StandingClock(), Paged()
        stage = Stage(display, clock)
        turning = asyncio.create_task(stage.turn_pages())
        stage.show(board(1, 2, 3))
        await clock.wake()
        await clock.wake()
        await clock.wait()
        stage.show(board(1, 2))
        await clock.wake()
        await clock.wait()
        stage.show(Notice("Between terms", ""))
        assert display.shown[-3:] == [(board(1, 2), 0), (board(1, 2), 1), (Notice("Between terms", ""), 0)]
        clock.go(PAGE_SECONDS)
        await until(lambda: not clock.sleepers)
        assert len(display.shown) == 6
        stage.show(board(1, 2))
        assert await clock.wait() == PAGE_SECONDS
        turning.cancel()

    asyncio.run(story())
