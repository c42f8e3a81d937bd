"""Calls of a store run in a few threads, and come back to the loop that asked."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from contextlib import closing

import pytest

from carrick.relay.threads import Threads


def test_an_answer_and_an_error_come_back_to_whoever_called() -> None:
    async def main() -> None:
        with closing(Threads(1)) as threads:
            assert await threads.call(divmod, 7, 2) == (3, 1)
            with pytest.raises(ZeroDivisionError):
                await threads.call(divmod, 7, 0)
            assert await threads.call(int, "11", base=2) == 3

    asyncio.run(main())


def test_no_more_calls_than_threads_run_at_once_and_the_others_wait() -> None:
    async def main() -> None:
        both = threading.Barrier(2)
        at_work: set[str] = set()

        def meet(n: int) -> int:
            at_work.add(str(threading.get_ident()))
            both.wait()  # only two at once can pass
            return n

        with closing(Threads(2)) as threads:
            assert await asyncio.gather(*(threads.call(meet, n) for n in range(6))) == list(range(6))
        assert len(at_work) == 2

    asyncio.run(main())


def test_one_call_after_the_other_needs_one_thread() -> None:
    async def main() -> None:
        with closing(Threads(8)) as threads:
            assert len({await threads.call(threading.get_ident) for _ in range(10)}) == 1

    asyncio.run(main())


def test_a_call_that_was_cancelled_runs_to_its_end_and_close_waits_for_it() -> None:
    started, go_on = threading.Event(), threading.Event()
    done: list[bool] = []
    faults: list[object] = []

    def work() -> None:
        started.set()
        go_on.wait()
        done.append(True)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        threads = Threads(1)
        call = asyncio.create_task(threads.call(work))
        await asyncio.to_thread(started.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        assert await threads.call(int) == 0  # its answer, which nobody waits for, is no hindrance
        threads.close()

    asyncio.run(main())
    assert done == [True]
    assert faults == []


def test_an_answer_for_a_loop_that_has_ended_is_dropped_and_the_thread_goes_on() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait()

    async def leave() -> None:
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().stop)
        await threads.call(work)

    async def ask() -> int:
        return await threads.call(int, "5")

    threads = Threads(1)
    with pytest.raises(RuntimeError, match="Event loop stopped"):
        asyncio.run(leave())
    started.wait()
    go_on.set()
    assert asyncio.run(ask()) == 5
    threads.close()


def test_what_is_closed_takes_no_more_calls() -> None:
    threads = Threads(1)
    threads.close()
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(threads.call(int))


class Large:
    """Something that a call works on."""


def test_what_a_call_in_vain_worked_on_is_let_go_at_once() -> None:
    kept: list[weakref.ref[Large]] = []

    def fail() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        raise ValueError(id(large))

    async def story() -> None:
        with pytest.raises(ValueError, match="[0-9]"):
            await threads.call(fail)

    gc.disable()
    try:
        with closing(Threads(1)) as threads:
            asyncio.run(story())
        assert kept[0]() is None
    finally:
        gc.enable()
