"""The device at a server on a real socket, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from carrick_device.screen import Board, Notice, SignIn
from tests.unit.device.scripted import (
    CODE,
    GRANTED,
    PATROLS,
    SOCKET,
    Answer,
    Bench,
    Script,
    bench,
    refused,
    scores,
    until,
)

Story = Callable[[Bench], Awaitable[None]]
NEWS = json.dumps({"type": "refresh-scores"})


def play(folder: Path, script: Callable[[], Script], story: Story, **options: Any) -> None:
    async def whole() -> None:
        async with bench(folder, script(), **options) as at:
            with at.running():
                await story(at)

    asyncio.run(whole())


def listening(*totals: int) -> dict[str, Any]:
    return scores(*totals, websocket={"requested": True})


def totals(at: Bench) -> tuple[list[int], bool]:
    assert isinstance(at.screen, Board)
    return [line.total for line in at.screen.lines], at.screen.stale


def test_it_asks_again_when_the_scores_expire_by_the_clock_of_the_server(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert await at.clock.wait() == 301
        assert totals(at) == ([3, 5], False)
        at.clock.go(300)
        assert at.clock.remaining() == [1]
        assert at.script.paths() == [PATROLS]
        at.clock.go(1)
        assert await at.clock.wait() == 301
        assert totals(at) == ([4, 5], False)

    play(tmp_path, lambda: Script(patrols=[scores(3, 5), scores(4, 5)]), story)


def test_a_server_whose_clock_is_years_off_is_asked_at_the_same_pace(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert await at.clock.wait() == 121

    body = scores(3, cached_at="1999-01-01T00:00:00Z", cache_expires_at="1999-01-01T00:02:00Z")
    answer = Answer(body, headers={"Date": "Fri, 01 Jan 1999 00:00:00 GMT"})
    play(tmp_path, lambda: Script(patrols=[answer]), story)


def test_the_last_scores_are_shown_as_stale_at_once_after_a_restart(tmp_path: Path) -> None:
    async def first(at: Bench) -> None:
        await at.clock.wait()

    async def second() -> None:
        script = Script(patrols=[scores(9)])
        script.go_on.clear()
        async with bench(tmp_path, script) as at:
            # The port is another one each time; a server is known by its address.
            kept = tmp_path / "kept" / "token.json.scores"
            kept.write_text(json.dumps({**json.loads(kept.read_text()), "server": at.server.url}))
            with at.running():
                await until(lambda: bool(script.asked))
                assert totals(at) == ([3, 5], True)
                script.go_on.set()
                await at.clock.wait()
                assert totals(at) == ([9], False)

    play(tmp_path, lambda: Script(patrols=[scores(3, 5)]), first)
    asyncio.run(second())


@pytest.mark.parametrize("answer", [Answer("", 0), refused(500, "internal_error"), refused(502, "upstream_error")])
def test_an_outage_keeps_the_scores_marks_them_and_backs_off_until_it_is_over(answer: Answer, tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wake()
        waits = [await at.clock.wake() for _ in range(12)]
        assert waits == [2.5, 5, 10, 20, 40, 80, 160, 320, 450, 450, 450, 450]
        assert await at.clock.wait() == 301
        assert totals(at) == ([8], False)
        assert totals_before(at) == ([3], True)

    def totals_before(at: Bench) -> tuple[list[int], bool]:
        before = at.shown.screens[-2]
        assert isinstance(before, Board)
        return [line.total for line in before.lines], before.stale

    play(tmp_path, lambda: Script(patrols=[scores(3), *[answer] * 12, scores(8)]), story)


def test_days_without_network_and_without_scores_ends_by_itself(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        passed = 0.0
        while passed < 2 * 86_400:
            passed += await at.clock.wake()
        assert at.screen == Notice("No connection", f"Cannot reach {at.server.host}.")
        at.script.now_scores(scores(3))
        await at.clock.wake()
        await at.clock.wait()
        assert totals(at) == ([3], False)

    play(tmp_path, lambda: Script(patrols=[Answer("", 0)]), story)


def test_it_waits_as_long_as_a_429_says(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wake()
        assert await at.clock.wait() == 121
        assert totals(at) == ([3], True)

    play(tmp_path, lambda: Script(patrols=[scores(3), refused(429, "rate_limited", Retry_After="120")]), story)


def test_between_terms_it_says_so_and_asks_once_an_hour(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        assert await at.clock.wait() == 3601
        assert isinstance(at.screen, Notice)
        assert at.screen.title == "Between terms"

    play(tmp_path, lambda: Script(patrols=[refused(409, "not_in_term")]), story)


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (refused(401, "unauthorized", WWW_Authenticate='Bearer realm="API"'), "This device was signed out."),
        (refused(403, "blocked"), "The authorisation was withdrawn."),
    ],
)
def test_a_token_that_is_no_longer_good_is_dropped_with_the_scores_and_asked_for_again(
    answer: Answer, note: str, tmp_path: Path
) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wake()
        assert await at.clock.wait() == 5
        assert isinstance(at.screen, SignIn)
        assert at.screen.note == note
        assert list((tmp_path / "kept").iterdir()) == []

    pending = refused(400, "authorization_pending")
    play(tmp_path, lambda: Script(patrols=[scores(3), answer], authorize=[CODE], token=[pending]), story)


def test_a_damaged_token_file_means_signing_in_again(tmp_path: Path) -> None:
    async def story() -> None:
        script = Script(authorize=[CODE], token=[refused(400, "authorization_pending")])
        async with bench(tmp_path, script) as at:
            (tmp_path / "kept" / "token.json").write_text('{"server": ')
            with at.running():
                await at.clock.wait()
                assert isinstance(at.screen, SignIn)

    asyncio.run(story())


def test_news_is_followed_at_once(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        assert at.script.asked[1][3]["Authorization"] == "Bearer secret-access-token"
        await at.clock.wait()
        at.clock.go(60)
        await socket.send_str(NEWS)
        await at.shown.until(2)
        assert totals(at) == ([4], False)
        await at.script.heard(socket)
        await at.script.heard(socket)
        assert await at.clock.wait() == 301
        assert at.script.paths() == [PATROLS, SOCKET, PATROLS]

    play(tmp_path, lambda: Script(patrols=[listening(3), listening(4)]), story)


def test_news_is_followed_no_more_than_once_in_a_second(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        await at.clock.wait()
        at.clock.go(0.25)
        await socket.send_str(NEWS)
        await until(lambda: at.clock.remaining() == [0.75])
        assert at.script.paths() == [PATROLS, SOCKET]
        at.clock.go(0.75)
        await at.shown.until(2)

    play(tmp_path, lambda: Script(patrols=[listening(3), listening(4)]), story)


def test_news_during_a_request_asks_once_more_after_it_and_never_beside_it(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        await at.clock.wait()
        at.clock.go(60)
        at.script.go_on.clear()
        await socket.send_str(NEWS)
        await until(lambda: at.script.in_flight == 1)
        for _ in range(5):
            await socket.send_str(NEWS)
        await at.script.heard(socket)
        at.clock.go(10)
        at.script.go_on.set()
        await at.shown.until(3)
        assert await at.clock.wait() == 301
        assert at.script.most_in_flight == 1
        assert at.script.paths().count(PATROLS) == 3

    play(tmp_path, lambda: Script(patrols=[listening(3), listening(4), listening(5)]), story)


def test_news_does_not_shorten_what_a_429_says(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        await at.clock.wake()
        await at.clock.wait()
        at.clock.go(10)
        await socket.send_str(NEWS)
        await at.script.heard(socket)
        assert await at.clock.wait() == 111
        assert at.script.paths().count(PATROLS) == 2

    limited = refused(429, "rate_limited", Retry_After="120")
    play(tmp_path, lambda: Script(patrols=[listening(3), limited]), story)


def test_other_messages_are_not_news(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        await at.clock.wait()
        at.clock.go(60)
        for message in ('{"type": "hello"}', "nonsense", '{"type": 5}', "[" * 10_000):
            await socket.send_str(message)
        await socket.send_bytes(b"\xff\xfe")
        await at.script.heard(socket)
        await at.script.heard(socket)
        assert await at.clock.wait() == 241
        await socket.send_str(NEWS)
        await at.shown.until(2)
        assert at.script.paths().count(PATROLS) == 2

    play(tmp_path, lambda: Script(patrols=[listening(3), listening(4), listening(5)]), story)


def test_without_being_asked_it_does_not_listen_and_stops_when_no_longer_asked(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        await at.clock.wake()
        socket = await at.script.sockets.get()
        assert at.script.paths() == [PATROLS, PATROLS, SOCKET]
        await at.clock.wake()
        await at.clock.wait()
        await until(lambda: socket.closed)

    play(tmp_path, lambda: Script(patrols=[scores(3), listening(4), scores(5)]), story)


def test_a_lost_connection_comes_back_with_growing_waits(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        await socket.close()
        for wait in (2.5, 5.0, 10.0):
            assert (await at.clock.waits(2))[0] == wait
            at.clock.go(wait)
            await (await at.script.sockets.get()).close()
        assert (await at.clock.waits(2))[0] == 20.0
        at.clock.go(20.0)
        socket = await at.script.sockets.get()
        at.clock.go(60.0)
        await socket.close()
        assert (await at.clock.waits(2))[0] == 2.5

    play(tmp_path, lambda: Script(patrols=[listening(3)]), story)


def test_a_message_that_is_too_long_ends_the_connection_and_not_the_listener(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        socket = await at.script.sockets.get()
        await at.clock.wait()
        await socket.send_str("x" * 20_000)
        assert (await at.clock.waits(2))[0] == 2.5
        at.clock.go(2.5)
        socket = await at.script.sockets.get()
        await socket.send_str(NEWS)
        await at.shown.until(2)

    play(tmp_path, lambda: Script(patrols=[listening(3), listening(4)]), story)


def test_a_token_refused_there_is_found_out_at_once(tmp_path: Path) -> None:
    async def story(at: Bench) -> None:
        at.script.socket_refusals.append(401)
        await until(lambda: 1.0 in at.clock.remaining())
        at.clock.go(1)
        while not isinstance(at.screen, SignIn):
            await at.shown.until(len(at.shown.screens) + 1)

    answers = [listening(3), refused(401, "unauthorized")]
    pending = refused(400, "authorization_pending")
    play(tmp_path, lambda: Script(patrols=answers, authorize=[CODE], token=[pending]), story)


def once(folder: Path, script: Callable[[], Script], token: str | None) -> tuple[str | None, Bench]:
    """What running it once says, with a clock that does not wait."""

    async def whole() -> tuple[str | None, Bench]:
        async with bench(folder, script(), token=token) as at:
            running = asyncio.create_task(at.device.run_once())
            while not running.done():
                waiting = asyncio.create_task(at.clock.wake())
                await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
            return running.result(), at

    return asyncio.run(whole())


def test_once_shows_the_scores_and_ends(tmp_path: Path) -> None:
    said, at = once(tmp_path, lambda: Script(patrols=[listening(3)]), "secret-access-token")
    assert said is None
    assert totals(at) == ([3], False)
    assert at.script.paths() == [PATROLS]


def test_once_signs_in_first_where_need_be(tmp_path: Path) -> None:
    said, at = once(tmp_path, lambda: Script(authorize=[CODE], token=[GRANTED], patrols=[scores(3)]), None)
    assert said is None
    assert at.kept.token() == "secret-access-token"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"patrols": [refused(502, "upstream_error")]}, "The server answered 502: about upstream_error"),
        ({"patrols": [refused(409, "not_in_term")]}, "The section is between terms."),
        ({"patrols": [refused(401, "unauthorized")]}, "This device was signed out."),
        ({"authorize": [CODE], "token": [refused(400, "access_denied")]}, "Somebody refused the sign-in."),
        ({"authorize": [CODE], "token": [refused(400, "authorization_pending")]}, "Nobody confirmed the code in time."),
    ],
)
def test_once_says_why_there_are_no_scores(answers: dict[str, Any], reason: str, tmp_path: Path) -> None:
    said, _ = once(tmp_path, lambda: Script(**answers), "secret-access-token" if "patrols" in answers else None)
    assert said == reason
