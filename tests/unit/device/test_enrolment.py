"""Signing in at a server on a real socket, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from carrick_device.screen import Board, Notice, SignIn
from tests.unit.device.scripted import (
    AUTHORIZE,
    CODE,
    GRANTED,
    PATROLS,
    TOKEN,
    Answer,
    Bench,
    Script,
    bench,
    refused,
    scores,
)

PENDING = refused(400, "authorization_pending")
Story = Callable[[Bench], Awaitable[None]]


def play(folder: Path, script: Callable[[], Script], story: Story) -> None:
    async def whole() -> None:
        async with bench(folder, script(), token=None) as at:
            with at.running():
                await story(at)

    asyncio.run(whole())


def test_it_shows_the_code_polls_at_the_interval_and_keeps_the_token(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert await at.clock.wait() == 5
        assert at.screen == SignIn(
            "BCDF-GHJK", "https://scores.example.org/device", "https://scores.example.org/d/BCDFGHJK"
        )
        assert at.script.paths() == [AUTHORIZE]
        assert [await at.clock.wake(), await at.clock.wake()] == [5, 5]
        assert await at.clock.wait() == 301
        assert isinstance(at.screen, Board)
        assert at.script.paths() == [AUTHORIZE, TOKEN, TOKEN, PATROLS]
        assert at.kept.token() == "secret-access-token"

    play(tmp_path, lambda: Script(authorize=[CODE], token=[PENDING, GRANTED], patrols=[scores(3)]), story)


def test_slow_down_adds_five_seconds_for_good(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert [await at.clock.wake() for _ in range(4)] == [5, 10, 10, 15]

    answers = [refused(400, "slow_down"), PENDING, refused(400, "slow_down"), PENDING]
    play(tmp_path, lambda: Script(authorize=[CODE], token=answers), story)


def test_a_poll_that_fails_waits_twice_as_long(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert [await at.clock.wake() for _ in range(4)] == [5, 10, 20, 5]

    answers = [Answer("", 0), refused(503, "service_blocked"), PENDING]
    play(tmp_path, lambda: Script(authorize=[CODE], token=answers), story)


def test_a_code_that_the_server_calls_expired_gives_way_to_a_new_one_at_once(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wake()
        assert await at.clock.wait() == 7
        assert at.script.paths() == [AUTHORIZE, TOKEN, AUTHORIZE]
        assert isinstance(at.screen, SignIn)
        assert at.screen.user_code == "LMNP-QRST"

    second = {**CODE, "user_code": "LMNP-QRST", "interval": 7}
    play(tmp_path, lambda: Script(authorize=[CODE, second], token=[refused(400, "expired_token")]), story)


def test_a_code_is_not_polled_past_its_time(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert [await at.clock.wake() for _ in range(3)] == [5, 5, 2]
        assert await at.clock.wait() == 5
        assert at.script.paths() == [AUTHORIZE, TOKEN, TOKEN, AUTHORIZE]

    play(tmp_path, lambda: Script(authorize=[{**CODE, "expires_in": 12}], token=[PENDING]), story)


def test_a_refusal_is_told_and_asked_again_after_a_pause(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wake()
        assert await at.clock.wait() == 30
        assert at.screen == Notice("Not signed in", "Somebody refused the sign-in.")
        await at.clock.wake()
        await at.clock.wait()
        assert isinstance(at.screen, SignIn)

    play(tmp_path, lambda: Script(authorize=[CODE], token=[refused(400, "access_denied")]), story)


def test_a_client_that_is_not_known_is_told_so_and_backs_off(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wait()
        assert at.screen == Notice("Cannot sign in", "The server does not accept this client: about invalid_client")
        assert [await at.clock.wake() for _ in range(3)] == [2.5, 5, 10]

    play(tmp_path, lambda: Script(authorize=[refused(401, "invalid_client")]), story)


@pytest.mark.parametrize(
    ("answer", "wait"), [(refused(429, "rate_limited", Retry_After="50"), 51), (Answer("", 0), 2.5)]
)
def test_without_a_code_it_asks_again_later(answer: Answer, wait: float, tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert await at.clock.wake() == wait
        assert await at.clock.wait() == 5
        assert isinstance(at.screen, SignIn)

    play(tmp_path, lambda: Script(authorize=[answer, CODE], token=[PENDING]), story)
