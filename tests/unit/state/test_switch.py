"""Answers of the database about the epoch that come in another order than they were asked for."""

from __future__ import annotations

import asyncio

from carrick.state.epoch import Epoch
from carrick.state.switch import Switch
from carrick.testing.state_contract import run

OLD = 10_000.0
"""Seconds: an epoch of that age is open."""


def epoch(number: int, run: str | None) -> Epoch:
    return Epoch(number, f"epoch-{number}", run, 0, OLD)


class Answers:
    """Epochs whose answers the test gives, one by one."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[Epoch]] = []

    async def current(self) -> Epoch:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]

    async def raise_from(self, number: int, *, name: str, run: str | None, failures: int) -> None:
        raise AssertionError("nothing is raised here")


class Silent:
    """A Redis that nobody asks."""

    async def probe(self) -> str:
        raise AssertionError("nobody asks")


def test_an_answer_about_an_epoch_before_one_that_is_known_to_be_over_does_not_count() -> None:
    async def story() -> None:
        now = 0.0
        answers = Answers()
        switch = Switch(answers, Silent(), clock=lambda: now)
        slow = asyncio.create_task(switch.entered())
        await asyncio.sleep(0)
        now = 5.0
        quick = asyncio.create_task(switch.entered())
        await asyncio.sleep(0)
        answers.asked[1].set_result(epoch(2, None))
        switch.forget(await quick)
        answers.asked[0].set_result(epoch(1, "run"))
        assert (await slow).number == 2
        counts = asyncio.create_task(switch.still_in(epoch(1, "run")))
        await asyncio.sleep(0)
        answers.asked[2].set_result(epoch(3, "run"))
        assert not await counts

    run(story())
