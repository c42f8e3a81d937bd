"""Stores block, the relay must not: their calls run in threads of the relay's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Job(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]


class Threads:
    """A few threads for calls that wait for the database; started when they are needed. Used from event loops only.

    One queue leads to them and one call back: an executor's futures would make the way twice as long.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._closed = False

    async def call(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in a thread. Who is cancelled while it runs leaves it running: it ends by itself."""
        if self._closed:
            raise RuntimeError("these threads are closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._under_way += 1
        self._jobs.put(_Job(partial(operation, *args, **kwargs), loop, answer))
        if len(self._threads) < min(self._under_way, self._count):
            self._threads.append(threading.Thread(target=self._work, name="carrick-store", daemon=True))
            self._threads[-1].start()
        try:
            return await answer
        finally:
            del answer  # what it raises knows this frame: with the answer in it, it would be kept until a collection

    def close(self) -> None:
        """Wait for the calls under way, and end the threads."""
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            value, error = None, None
            try:
                value = job.work()
            except BaseException as raised:  # noqa: BLE001  for whoever waits for the answer
                error = raised
            try:
                job.loop.call_soon_threadsafe(self._settle, job.answer, value, error)
            except RuntimeError:
                if not job.loop.is_closed():  # else nobody waits any more
                    raise
            del job, value, error  # this thread may wait long for the next

    def _settle(self, answer: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._under_way -= 1
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)
