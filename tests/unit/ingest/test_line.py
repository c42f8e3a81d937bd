"""Batches that wait while others are stored: they go in together, and each is answered for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from carrick.errors import StoreUnavailable
from carrick.ingest.line import MOST, Line
from carrick.ingest.problems import Replayed
from carrick.ingest.store import Groups, Offer, Outcome, Taken
from carrick.relay.threads import Threads
from tests.batches import checked, event

LONG = 20.0
AT_ONCE = 2
EVENTS = 100


def offer(name: str, events: int = 1) -> Offer:
    return Offer(checked(*[event(name if n == 0 else f"{name}-{n}") for n in range(events)]))


class SlowInbox:
    """Stores nothing; each group waits until it is let go. What becomes of a batch is looked up by its event."""

    def __init__(self, **outcomes: Outcome) -> None:
        self.groups: list[list[str]] = []
        self.outcomes = outcomes
        self.fails: Exception | None = None
        self._entered = threading.Semaphore(0)
        self._let_go = threading.Semaphore(0)

    def take_all(self, offers: Sequence[Offer]) -> Sequence[Outcome]:
        names = [one.batch.arrivals[0].event_id for one in offers]
        self.groups.append(names)
        self._entered.release()
        assert self._let_go.acquire(timeout=LONG)
        if self.fails is not None:
            raise self.fails
        return [self.outcomes.get(name, Taken(1, 0)) for name in names]

    async def until_entered(self) -> None:
        assert await asyncio.to_thread(self._entered.acquire, timeout=LONG)

    def let_go(self, groups: int) -> None:
        self._let_go.release(groups)


class Queue:
    """A line whose places before the inbox are taken; `join` puts batches behind them."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.tasks: list[asyncio.Task[Taken]] = []

    async def join(self, *names: str, events: int = 1) -> None:
        self.tasks += [asyncio.create_task(self._line.take(offer(name, events))) for name in names]
        await asyncio.sleep(0)


FIRST = [f"first-{n}" for n in range(AT_ONCE)]


async def crowded(inbox: SlowInbox, threads: Threads) -> Queue:
    """As many groups under way as may be."""
    queue = Queue(Line(inbox.take_all, Groups(AT_ONCE, EVENTS), threads))
    for name in FIRST:
        await queue.join(name)
        await inbox.until_entered()
    return queue


def run(inbox: SlowInbox, story: Any) -> None:
    with closing(Threads(AT_ONCE + 3)) as threads:
        asyncio.run(asyncio.wait_for(story(threads), LONG))


def test_who_finds_the_inbox_idle_is_taken_at_once_and_alone() -> None:
    inbox = SlowInbox()

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        inbox.let_go(AT_ONCE)
        assert await asyncio.gather(*queue.tasks) == [Taken(1, 0)] * AT_ONCE

    run(inbox, story)
    assert inbox.groups == [[name] for name in FIRST]


class Gate(Threads):
    """Runs every call in the event loop, once it is open."""

    def __init__(self) -> None:
        super().__init__(0)
        self.asked = asyncio.Event()
        self.opened = asyncio.Event()

    async def call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        self.asked.set()
        await self.opened.wait()
        return operation(*args, **kwargs)


def test_who_comes_in_the_very_turn_of_the_loop_in_which_the_last_group_is_done_is_taken() -> None:
    async def story() -> None:
        gate = Gate()
        line = Line(lambda offers: [Taken(1, 0) for _ in offers], Groups(1, EVENTS), gate)
        tasks = [asyncio.create_task(line.take(offer("a")))]
        await gate.asked.wait()
        gate.opened.set()
        tasks.append(asyncio.create_task(line.take(offer("b"))))
        assert await asyncio.gather(*tasks) == [Taken(1, 0)] * 2

    asyncio.run(asyncio.wait_for(story(), LONG))


def test_those_that_wait_are_taken_together_in_the_order_they_came() -> None:
    inbox = SlowInbox()

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        for name in ("a", "b", "c"):
            await queue.join(name)
            await asyncio.sleep(0)  # whoever could serve it has its turn
        inbox.let_go(1)
        await inbox.until_entered()
        assert inbox.groups[AT_ONCE:] == [["a", "b"]]
        inbox.let_go(AT_ONCE + 2)
        await asyncio.gather(*queue.tasks)

    run(inbox, story)


def test_a_group_leaves_the_others_their_share_of_all_that_wait_or_are_under_way() -> None:
    inbox = SlowInbox()

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        await queue.join("a", "b", "c", "d", "e", "f")
        inbox.let_go(1)
        await inbox.until_entered()
        assert inbox.groups[AT_ONCE:] == [["a", "b", "c", "d"]]
        inbox.let_go(AT_ONCE + 2)
        await asyncio.gather(*queue.tasks)

    run(inbox, story)


def test_each_gets_its_own_answer() -> None:
    replayed = Replayed()
    inbox = SlowInbox(a=Taken(1, 2), b=replayed, c=Taken(3, 4))

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        await queue.join("a", "b", "c")
        inbox.let_go(AT_ONCE + 2)
        answers = await asyncio.gather(*queue.tasks, return_exceptions=True)
        assert answers[AT_ONCE:] == [Taken(1, 2), replayed, Taken(3, 4)]

    run(inbox, story)


def test_when_the_inbox_fails_each_is_told_with_an_error_of_its_own_and_the_next_are_tried() -> None:
    inbox = SlowInbox()

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        await queue.join("a", "b")
        inbox.fails = StoreUnavailable("away")
        inbox.let_go(AT_ONCE + 1)
        answers = await asyncio.gather(*queue.tasks, return_exceptions=True)
        assert [str(answer) for answer in answers] == ["away"] * (AT_ONCE + 2)
        assert len({id(answer) for answer in answers}) == len(answers)
        inbox.fails = None
        await queue.join("again")
        inbox.let_go(1)
        assert await queue.tasks[-1] == Taken(1, 0)

    run(inbox, story)


def test_who_has_gone_does_not_disturb_the_others() -> None:
    inbox = SlowInbox()

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        await queue.join("a", "b")
        queue.tasks[AT_ONCE].cancel()
        await asyncio.sleep(0)
        inbox.let_go(AT_ONCE + 1)
        answers = await asyncio.gather(*queue.tasks, return_exceptions=True)
        assert isinstance(answers[AT_ONCE], asyncio.CancelledError)
        assert answers[AT_ONCE + 1] == Taken(1, 0)

    run(inbox, story)


def test_a_group_has_no_more_batches_than_it_may() -> None:
    inbox = SlowInbox()
    names = [f"n-{n}" for n in range(AT_ONCE * MOST + 2)]

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        await queue.join(*names)
        inbox.let_go(1)
        await inbox.until_entered()
        assert inbox.groups[AT_ONCE:] == [names[:MOST]]
        inbox.let_go(len(names))
        await asyncio.gather(*queue.tasks)

    run(inbox, story)


def test_a_group_is_closed_when_it_has_enough_events() -> None:
    inbox = SlowInbox()

    async def story(threads: Threads) -> None:
        queue = await crowded(inbox, threads)
        await queue.join("a", "b", "c", "d", events=EVENTS // 2)
        await queue.join("large", events=EVENTS * 2)
        inbox.let_go(AT_ONCE + 3)
        await asyncio.gather(*queue.tasks)

    run(inbox, story)
    assert sorted(inbox.groups[AT_ONCE:]) == [["a", "b"], ["c", "d"], ["large"]]
