"""A batch that is refused as a whole is split until the bad entry is alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from uuid import UUID

import pytest

from carrick.entry import Entry, Outcome, OutcomeKind
from carrick.relay.split import Fit, Sending
from carrick.sinks.sink import LeaseLost, Refused, Report, Results, Unavailable
from tests.unit.relay.entries import entry

REFUSED = Refused(code="http_400", message="bad")


class Destination:
    """Refuses what holds a bad entry; goes away after so many calls."""

    def __init__(self, *bad: int, calls: int = 1000, too_large: int | None = None) -> None:
        self.bad = {UUID(int=number) for number in bad}
        self.calls_left = calls
        self.too_large = too_large
        self.seen: list[list[int]] = []

    async def __call__(self, entries: Sequence[Entry]) -> Report:
        self.seen.append([entry.seq for entry in entries])
        if self.calls_left == 0:
            return Unavailable(code="connect_refused", message="nobody there")
        self.calls_left -= 1
        if self.too_large is not None and sum(entry.payload_size_bytes for entry in entries) > self.too_large:
            return Refused(code="http_413", message="too large", too_large=True)
        if any(entry.id in self.bad for entry in entries):
            return REFUSED
        return Results(outcomes={entry.id: Outcome.delivered() for entry in entries})


def deliver(destination: Destination, entries: Sequence[Entry]) -> Sending:
    sending = Sending(destination)
    asyncio.run(sending.deliver(entries))
    return sending


def kinds(sending: Sending) -> dict[int, OutcomeKind]:
    return {entry_id.int: outcome.kind for entry_id, outcome in sending.outcomes.items()}


def test_a_good_batch_goes_in_one_piece() -> None:
    destination = Destination()
    sending = deliver(destination, [entry(n) for n in range(1, 101)])
    assert destination.seen == [list(range(1, 101))]
    assert set(kinds(sending).values()) == {OutcomeKind.DELIVERED}
    assert sending.answered


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100, 1000])
def test_one_bad_entry_is_rejected_alone_within_the_promised_calls(count: int) -> None:
    for bad in {1, count // 2 + 1, count}:
        destination = Destination(bad)
        sending = deliver(destination, [entry(n) for n in range(1, count + 1)])
        assert kinds(sending) == {
            n: OutcomeKind.REJECTED if n == bad else OutcomeKind.DELIVERED for n in range(1, count + 1)
        }
        assert sending.outcomes[UUID(int=bad)] == Outcome.rejected("bad", code="http_400")
        assert len(destination.seen) <= 2 * math.ceil(math.log2(count)) + 1


def test_the_parts_go_in_order() -> None:
    destination = Destination(2)
    deliver(destination, [entry(n) for n in range(1, 5)])
    delivered = [part for part in destination.seen if 2 not in part]
    assert delivered == [[1], [3, 4]]


def test_a_destination_that_goes_away_leaves_the_rest_untried() -> None:
    destination = Destination(1, calls=2)
    sending = deliver(destination, [entry(n) for n in range(1, 5)])
    assert sending.unavailable is not None
    assert kinds(sending) == {1: OutcomeKind.RELEASED}
    assert destination.seen == [[1, 2, 3, 4], [1, 2], [1]]


def test_an_unsure_answer_is_the_outcome_of_those_that_were_sent() -> None:
    async def lost(entries: Sequence[Entry]) -> Report:
        return Unavailable(code="timeout", message="no answer", unsure=True)

    sending = Sending(lost)
    asyncio.run(sending.deliver([entry(1), entry(2)]))
    assert kinds(sending) == {1: OutcomeKind.UNSURE, 2: OutcomeKind.UNSURE}


def test_the_rest_of_a_group_waits_when_one_of_it_must() -> None:
    async def first_waits(entries: Sequence[Entry]) -> Report:
        if len(entries) > 2:
            return REFUSED
        return Results(outcomes={e.id: Outcome.retry() if e.seq == 1 else Outcome.delivered() for e in entries})

    sending = Sending(first_waits)
    entries = [entry(1, group="a"), entry(2, group="b"), entry(3, group="a"), entry(4, group="b")]
    asyncio.run(sending.deliver(entries))
    assert kinds(sending) == {1: OutcomeKind.RETRY, 2: OutcomeKind.DELIVERED, 4: OutcomeKind.DELIVERED}


def test_the_smallest_part_that_was_too_large_is_remembered() -> None:
    sending = deliver(Destination(too_large=25), [entry(n, size=10) for n in range(1, 9)])
    assert sending.too_large_bytes == 40
    assert set(kinds(sending).values()) == {OutcomeKind.DELIVERED}


def test_an_entry_that_is_too_large_by_itself_says_nothing_of_batches() -> None:
    entries = [entry(n, size=10) for n in range(1, 9)]

    async def picky(part: Sequence[Entry]) -> Report:
        if entries[2] in part:
            return Refused(code="http_413", message="too large", too_large=True)
        return Results(outcomes={entry.id: Outcome.delivered() for entry in part})

    sending = Sending(picky)
    asyncio.run(sending.deliver(entries))
    assert len(sending.outcomes) == 8
    assert sending.too_large_bytes is None


def test_a_batch_that_is_too_large_for_somebody_on_the_way_is_remembered_and_given_back() -> None:
    async def gateway(part: Sequence[Entry]) -> Report:
        return Unavailable(code="http_413", message="a page", too_large=True)

    sending = Sending(gateway)
    asyncio.run(sending.deliver([entry(n, size=10) for n in range(1, 9)]))
    assert {outcome.kind for outcome in sending.outcomes.values()} == {OutcomeKind.RELEASED}
    assert sending.too_large_bytes == 80


def learnt(fit: Fit, limit: int, batches: int) -> list[int]:
    """The sizes that so many batches had, at a destination with that limit."""
    sizes = []
    for _ in range(batches):
        sizes.append(fit.bytes)
        fit.learn(deliver(Destination(too_large=limit), [entry(n, size=fit.bytes // 2) for n in (1, 2)]))
    return sizes


def test_batches_grow_back_after_one_that_was_too_large() -> None:
    fit = Fit(16_000)
    assert learnt(fit, 8_000, 1) == [16_000]
    assert learnt(fit, 16_000, 20) == [8_000] * 16 + [16_000] * 4


def test_a_limit_that_stays_is_tried_ever_less_often() -> None:
    sizes = learnt(Fit(16_000), 8_000, 1_000)
    assert [n for n, size in enumerate(sizes) if size == 16_000] == [0, 17, 50, 115, 244, 501, 758]


def test_batches_are_never_smaller_than_a_kilobyte() -> None:
    assert learnt(Fit(1_200), 600, 2) == [1_200, 1_024]


class Doors:
    """Holds every part until the test lets it in."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[int] = asyncio.Queue()
        self.reports: dict[int, asyncio.Future[Report]] = {}
        self.left: list[int] = []

    async def __call__(self, entries: Sequence[Entry]) -> Report:
        first = entries[0].seq
        self.reports[first] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait(first)
        try:
            return await self.reports[first]
        except asyncio.CancelledError:
            self.left.append(first)
            raise


def taken(number: int) -> Results:
    return Results(outcomes={UUID(int=number): Outcome.delivered()})


GONE = Unavailable(code="connect_refused", message="nobody there")


def side_by_side(doors: Doors, count: int, places: int) -> tuple[Sending, asyncio.Task[None]]:
    """So many lanes of one entry on their way."""
    sending = Sending(doors)
    lanes = [[[entry(n)]] for n in range(1, count + 1)]
    return sending, asyncio.create_task(sending.deliver_side_by_side(lanes, asyncio.Semaphore(places)))


def test_no_more_lanes_are_on_their_way_than_there_are_places() -> None:
    async def story() -> None:
        doors = Doors()
        sending, under_way = side_by_side(doors, 4, places=2)
        assert [await doors.asked.get() for _ in range(2)] == [1, 2]
        await asyncio.sleep(0)
        assert doors.asked.empty()
        for n in range(1, 5):
            doors.reports[n].set_result(taken(n))
            if n < 3:
                assert await doors.asked.get() == n + 2
        await under_way
        assert set(kinds(sending)) == {1, 2, 3, 4}

    asyncio.run(story())


def test_lanes_that_have_not_begun_are_not_tried_when_the_destination_is_gone_whatever_comes_after() -> None:
    async def story() -> None:
        doors = Doors()
        sending, under_way = side_by_side(doors, 3, places=2)
        assert [await doors.asked.get() for _ in range(2)] == [1, 2]
        doors.reports[1].set_result(GONE)
        doors.reports[2].set_result(taken(2))
        await under_way
        assert sending.unavailable is GONE
        assert kinds(sending) == {1: OutcomeKind.RELEASED, 2: OutcomeKind.DELIVERED}
        assert doors.asked.empty()

    asyncio.run(story())


def test_a_lane_that_finds_the_lease_lost_ends_the_others() -> None:
    async def story() -> None:
        doors = Doors()
        _, under_way = side_by_side(doors, 2, places=2)
        assert [await doors.asked.get() for _ in range(2)] == [1, 2]
        doors.reports[1].set_exception(LeaseLost())
        with pytest.raises(LeaseLost):
            await under_way
        assert doors.left == [2]

    asyncio.run(story())
