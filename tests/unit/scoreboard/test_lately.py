"""Memories of a moment, and reads that many share."""

from __future__ import annotations

import asyncio

import pytest

from carrick_scoreboard.lately import Lately
from carrick_scoreboard.together import Together


class Source:
    """Counts what is read of it; each read gives the next number, when it may."""

    def __init__(self) -> None:
        self.reads: list[object] = []
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None

    async def one(self, key: str) -> int:
        self.reads.append(key)
        number = len(self.reads)
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return number

    async def many(self, keys: list[str]) -> dict[str, int]:
        number = await self.one(",".join(keys))
        return dict.fromkeys(keys, number)


def test_a_value_is_remembered_for_its_time_from_before_it_was_read() -> None:
    async def story() -> None:
        source, now = Source(), [0.0]
        lately: Lately[str, int] = Lately(source.one, 1.0, clock=lambda: now[0])
        source.open.clear()
        first = asyncio.create_task(lately.get("a"))
        await asyncio.sleep(0)
        now[0] = 0.9
        source.open.set()
        assert (await first, await lately.get("a"), await lately.get("b")) == (1, 1, 2)
        now[0] = 1.0
        assert await lately.get("a") == 3
        lately.forget("a")
        assert await lately.get("a") == 4

    asyncio.run(story())


def test_who_asks_meanwhile_shares_the_read_and_who_goes_away_takes_it_from_nobody() -> None:
    async def story() -> None:
        source = Source()
        lately: Lately[str, int] = Lately(source.one, 1.0)
        source.open.clear()
        asking = [asyncio.create_task(lately.get("a")) for _ in range(3)]
        await asyncio.sleep(0)
        asking[0].cancel()
        source.open.set()
        assert await asyncio.gather(*asking[1:]) == [1, 1]

    asyncio.run(story())


def test_what_was_forgotten_while_it_was_read_is_read_again() -> None:
    async def story() -> None:
        source = Source()
        lately: Lately[str, int] = Lately(source.one, 1.0)
        source.open.clear()
        first = asyncio.create_task(lately.get("a"))
        await asyncio.sleep(0)
        lately.forget("a")
        source.open.set()
        assert (await first, await lately.get("a")) == (1, 2)

    asyncio.run(story())


def test_a_failure_is_not_remembered_and_memory_is_bounded() -> None:
    async def story() -> None:
        source = Source()
        lately: Lately[str, int] = Lately(source.one, 1.0, most=2)
        source.error = ValueError("no")
        with pytest.raises(ValueError, match="no"):
            await lately.get("a")
        source.error = None
        assert [await lately.get(key) for key in ("a", "b", "c", "c", "a")] == [2, 3, 4, 4, 5]

    asyncio.run(story())


def test_a_read_that_is_under_way_is_not_the_answer_to_a_later_question() -> None:
    async def story() -> None:
        source = Source()
        together: Together[str, int] = Together(source.many, 2)
        source.open.clear()
        first = asyncio.create_task(together.get(["a"]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        later = [asyncio.create_task(together.get([key])) for key in ("a", "b", "c")]
        await asyncio.sleep(0)
        source.open.set()
        assert (await first)["a"] == 1
        assert [(await each)[key] for each, key in zip(later, "abc", strict=True)] == [2, 2, 3]
        assert source.reads == ["a", "a,b", "c"]

    asyncio.run(story())


def test_a_read_that_fails_fails_for_those_who_wait_for_it_and_the_next_one_is_tried() -> None:
    async def story() -> None:
        source = Source()
        together: Together[str, int] = Together(source.many, 10)
        source.error = ValueError("no")
        asked = await asyncio.gather(*(together.get(["a"]) for _ in range(2)), return_exceptions=True)
        assert [str(one) for one in asked] == ["no", "no"]
        source.error = None
        assert await together.get(["a"]) == {"a": 2}

    asyncio.run(story())
