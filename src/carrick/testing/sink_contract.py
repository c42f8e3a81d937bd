"""The contract of a sink: what the relay relies on, as tests that any sink can run.

Subclass it where your tests are, and give it one fixture:

    class TestMySink(SinkContract):
        @pytest.fixture
        def destination(self): ...  # a Destination, below
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from carrick.entry import Entry, OutcomeKind
from carrick.sinks.sink import Delivery, Results, Sink, Unavailable
from carrick.steady import steady_seconds
from carrick.testing.samples import claimed

GENEROUS_SECONDS = 60.0
SHORT_SECONDS = 0.5


@dataclass
class Silence:
    """A sink whose destination takes what it is given and never answers."""

    sink: Sink
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when something of a delivery has arrived."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the sink has given that delivery up."""


class Destination(Protocol):
    """The other side of the sink under test. Each context ends with the sink closed."""

    def taking(self) -> AbstractAsyncContextManager[Sink]:
        """A sink whose destination takes everything."""

    def dead(self) -> AbstractAsyncContextManager[Sink]:
        """A sink whose destination is not there."""

    def silent(self) -> AbstractAsyncContextManager[Silence]:
        """A sink whose destination never answers."""

    def received(self) -> list[tuple[str, bytes]]:
        """The id and the payload of each entry that the destination took, in order."""


class SinkContract:
    """What every sink keeps."""

    def test_every_entry_arrives_once_in_order_with_its_payload(self, destination: Destination) -> None:
        entries = [claimed(number, payload=b'{"n": %d}' % number) for number in range(1, 101)]

        async def story() -> None:
            async with destination.taking() as sink:
                report = await sink.deliver(delivery(entries))
            assert isinstance(report, Results)
            assert [report.outcomes[entry.id].kind for entry in entries] == [OutcomeKind.DELIVERED] * 100

        run(story())
        assert destination.received() == [(str(entry.id), entry.payload) for entry in entries]

    def test_entries_of_several_tenants_in_one_delivery_all_arrive(self, destination: Destination) -> None:
        entries = [claimed(number, tenant_id=f"tenant-{number % 3}") for number in range(1, 10)]

        async def story() -> None:
            async with destination.taking() as sink:
                report = await sink.deliver(delivery(entries))
            assert isinstance(report, Results)
            assert report.outcomes.keys() == {entry.id for entry in entries}

        run(story())
        assert sorted(destination.received()) == sorted((str(entry.id), entry.payload) for entry in entries)

    def test_deliveries_at_the_same_time_do_not_mix(self, destination: Destination) -> None:
        parts = [[claimed(10 * part + number) for number in range(5)] for part in range(1, 9)]

        async def story() -> None:
            async with destination.taking() as sink:
                reports = await asyncio.gather(*(sink.deliver(delivery(part)) for part in parts))
            for part, report in zip(parts, reports, strict=True):
                assert isinstance(report, Results)
                assert report.outcomes.keys() == {entry.id for entry in part}

        run(story())
        assert len(destination.received()) == 40

    def test_a_delivery_without_entries_has_no_outcomes(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.taking() as sink:
                assert await sink.deliver(delivery([])) == Results(outcomes={})

        run(story())
        assert destination.received() == []

    def test_a_destination_that_is_not_there_is_reported_not_raised(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.dead() as sink:
                report = await sink.deliver(delivery([claimed()]))
            assert isinstance(report, Unavailable)
            assert report.connection
            assert not report.unsure

        run(story())

    def test_reachable_tells_whether_the_destination_is_there(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.taking() as sink:
                assert await sink.reachable()
            async with destination.dead() as sink:
                assert not await sink.reachable()

        run(story())
        assert destination.received() == []

    def test_cancelling_a_delivery_ends_it_at_the_destination_too(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.silent() as silence:
                under_way = asyncio.create_task(silence.sink.deliver(delivery([claimed()])))
                await silence.asked.wait()
                under_way.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await under_way
                await silence.gone.wait()

        run(story())

    def test_a_destination_that_never_answers_is_given_up_at_the_deadline(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.silent() as silence:
                report = await silence.sink.deliver(delivery([claimed()], seconds=SHORT_SECONDS))
                await silence.gone.wait()
            assert isinstance(report, Unavailable)

        run(story())

    def test_nothing_is_started_after_the_deadline(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.taking() as sink:
                report = await sink.deliver(delivery([claimed()], seconds=-1))
            assert isinstance(report, Unavailable)

        run(story())
        assert destination.received() == []

    def test_closing_again_changes_nothing(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.taking() as sink:
                await sink.deliver(delivery([claimed()]))
                await sink.close()
                await sink.close()

        run(story())

    def test_a_sink_that_was_never_used_can_be_closed(self, destination: Destination) -> None:
        async def story() -> None:
            async with destination.taking() as sink:
                await sink.close()

        run(story())


def delivery(entries: Sequence[Entry], *, seconds: float = GENEROUS_SECONDS) -> Delivery:
    """The entries, with that much time."""
    return Delivery(entries=entries, deadline=steady_seconds() + seconds)


def run(story: Coroutine[Any, Any, None]) -> None:
    """Run a story on a loop of its own; it must leave no task behind."""

    async def told() -> None:
        await story
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(told())
