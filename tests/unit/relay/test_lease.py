"""A lease is renewed while its batch is on the way; when that fails the delivery ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from carrick.errors import StoreUnavailable
from carrick.relay.lease import Lease
from carrick.sinks.sink import Delivery, LeaseLost
from carrick.steady import steady_seconds
from tests.asleep import sleeping
from tests.unit.relay.entries import batch, entry

SECONDS = 0.03
"""A lease short enough that it ends while a test waits for it."""
LONGER = 0.9
"""A lease whose third a test can wait for, and which a busy machine can renew in time."""


def lease(renew: Callable[[UUID, int], Awaitable[int]], seconds: float = SECONDS) -> Lease:
    return Lease(batch(entry(1), lease_seconds=seconds), steady_seconds(), renew)


async def never(_token: UUID, _seconds: int) -> int:
    raise AssertionError("nobody should have asked")


def test_a_quick_delivery_is_not_renewed() -> None:
    async def main() -> str:
        async def deliver() -> str:
            return "done"

        return await lease(never, seconds=100).keep_during(deliver())

    assert asyncio.run(main()) == "done"


def test_a_long_delivery_is_renewed_again_and_again() -> None:
    async def main() -> int:
        renewed = 0
        thrice = asyncio.Event()

        async def renew(_token: UUID, _seconds: int) -> int:
            nonlocal renewed
            renewed += 1
            if renewed == 3:
                thrice.set()
            return 1

        await lease(renew, LONGER).keep_during(thrice.wait())
        return renewed

    assert asyncio.run(main()) == 3


def test_a_renewal_moves_the_end_of_the_lease() -> None:
    async def main() -> None:
        renewed = asyncio.Event()

        async def renew(_token: UUID, _seconds: int) -> int:
            renewed.set()
            return 1

        held = lease(renew, LONGER)
        before = held.ends

        async def deliver() -> None:
            await renewed.wait()
            while held.ends == before:  # noqa: ASYNC110  the end moves right after the answer
                await asyncio.sleep(0)

        await held.keep_during(deliver())
        assert held.ends > before
        assert held.deadline < held.ends

    asyncio.run(main())


def test_a_lease_that_another_has_ends_the_delivery() -> None:
    async def main() -> bool:
        cancelled = False

        async def gone(_token: UUID, _seconds: int) -> int:
            return 0

        async def deliver() -> None:
            nonlocal cancelled
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise

        with pytest.raises(LeaseLost):
            await lease(gone).keep_during(deliver())
        return cancelled

    assert asyncio.run(main())


def test_a_database_that_does_not_answer_until_the_lease_is_over_ends_the_delivery() -> None:
    async def main() -> None:
        async def fails(_token: UUID, _seconds: int) -> int:
            raise StoreUnavailable("no answer")

        with pytest.raises(LeaseLost):
            await lease(fails).keep_during(asyncio.Event().wait())

    asyncio.run(main())


def test_a_machine_that_slept_through_the_lease_has_lost_it_and_knows_that_its_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sleep = sleeping(monkeypatch)

    async def main() -> float:
        held = lease(never, LONGER)
        delivery = Delivery(entries=[], deadline=held.deadline)

        async def deliver() -> None:
            sleep(100)
            await asyncio.get_running_loop().create_future()

        with pytest.raises(LeaseLost):
            await held.keep_during(deliver())
        return delivery.seconds_left()

    assert asyncio.run(main()) < -90


def test_one_failed_renewal_is_made_up_for() -> None:
    async def main() -> int:
        asked = 0
        enough = asyncio.Event()

        async def renew(_token: UUID, _seconds: int) -> int:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise StoreUnavailable("no answer")
            enough.set()
            return 1

        await lease(renew, seconds=4.0 * SECONDS).keep_during(enough.wait())
        return asked

    assert asyncio.run(main()) == 2


def test_a_cancelled_worker_cancels_its_delivery_and_is_not_a_lost_lease() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def deliver() -> None:
            started.set()
            await asyncio.Event().wait()

        worker = asyncio.create_task(lease(never, seconds=100).keep_during(deliver()))
        await started.wait()
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
