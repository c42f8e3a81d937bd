"""The device itself: sign in, ask for scores, show them, for ever. What to do after which answer is in `plan`."""

from __future__ import annotations

import asyncio
import logging

from carrick_device.answers import Got, Scores, SignInAgain, Verdict, read_scores
from carrick_device.client import Server
from carrick_device.clock import Clock
from carrick_device.enrolment import Enrolment, reason
from carrick_device.kept import Kept
from carrick_device.news import News
from carrick_device.plan import Wait, hurry, wait_after
from carrick_device.showing import board_of, explained, screen_after
from carrick_device.signing_in import Token
from carrick_device.stage import Stage

log = logging.getLogger("carrick.device")


class Device:
    """One display at one server. At most one request for scores is on its way at a time."""

    def __init__(self, server: Server, kept: Kept, stage: Stage, clock: Clock) -> None:
        self._server = server
        self._kept = kept
        self._stage = stage
        self._clock = clock
        self._enrolment = Enrolment(server, stage, clock)
        self._scores: Scores | None = None
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Show scores until cancelled."""
        token = self._start()
        note = ""
        while True:
            if token is None:
                token = await self._enrolment.token(note)
                self._kept.save_token(token)
            note = await self._follow(token)
            self._forget()
            token = None

    async def run_once(self) -> str | None:
        """Sign in if need be and show the scores once; why there were none, if so."""
        token = self._start()
        if token is None:
            end = await self._enrolment.attempt("")
            if not isinstance(end, Token):
                return reason(end)
            token = end.access_token
            self._kept.save_token(token)
        verdict = read_scores(await self._server.patrols(token))
        self._take(verdict)
        if isinstance(verdict, SignInAgain):
            self._forget()
        return None if isinstance(verdict, Got) else explained(verdict)

    def _start(self) -> str | None:
        """What is kept from the last time: its scores are shown at once, its token is what comes back."""
        token = self._kept.token()
        self._scores = self._kept.scores() if token else None
        if self._scores is not None:
            self._stage.show(board_of(self._scores, stale=True, note="from the last time"))
        return token

    def _forget(self) -> None:
        self._kept.forget()
        self._scores = None

    async def _follow(self, token: str) -> str:
        """Ask for scores and show them for as long as the token is good; why it no longer is."""
        news = News(self._server, token, self._clock, self._news.set)
        failures = 0
        try:
            while True:
                self._news.clear()
                asked = self._clock.seconds()
                verdict = read_scores(await self._server.patrols(token))
                self._take(verdict)
                if isinstance(verdict, SignInAgain):
                    return verdict.message
                if isinstance(verdict, Got):
                    news.want(verdict.scores.websocket.requested)
                wait = wait_after(verdict, failures, self._clock.chance())
                failures = wait.failures
                await self._wait(wait, asked)
        finally:
            await news.close()

    async def _wait(self, wait: Wait, asked: float) -> None:
        """Wait; where news may shorten it, until there is some, but never less than a second after the last request."""
        rest = asyncio.create_task(self._clock.sleep(wait.seconds))
        heard = asyncio.create_task(self._news.wait())
        try:
            await asyncio.wait([rest, heard] if wait.hurried else [rest], return_when=asyncio.FIRST_COMPLETED)
        finally:
            rest.cancel()
            heard.cancel()
        if more := hurry(self._clock.seconds() - asked):
            await self._clock.sleep(more)

    def _take(self, verdict: Verdict) -> None:
        """Remember what came and show it."""
        if isinstance(verdict, Got):
            self._scores = verdict.scores
            self._kept.save_scores(verdict.scores)
        else:
            log.info("no scores: %s", explained(verdict))
        self._stage.show(screen_after(verdict, self._scores))
