"""Ways to send something through an HTTP sink to a receiver on this host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from carrick.entry import Entry, Outcome, OutcomeKind
from carrick.settings import CloudSettings
from carrick.sinks.bandwidth import Bandwidth
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Delivery, Report, Results, Unavailable
from carrick.steady import steady_seconds
from carrick.testing.samples import claimed
from tests.receivers import Receiver, Reply, Request, accepting, receiving, run

NOW = datetime(2026, 3, 4, 5, 6, 7, 891000, tzinfo=UTC)
ALL_DELIVERED = Results(outcomes={UUID(int=1): Outcome.delivered()})


@asynccontextmanager
async def sending(
    port: int,
    *,
    scheme: str = "http",
    path: str = "/api/v1/edge/batch",
    idempotent: bool = True,
    bandwidth: Bandwidth | None = None,
    **settings: Any,
) -> AsyncIterator[HttpSink]:
    """A sink for that port of this host; `settings` are those of CloudSettings."""
    cloud = CloudSettings(url=f"{scheme}://127.0.0.1:{port}{path}", **settings)
    sink = HttpSink(cloud, edge_id="edge-1", idempotent=idempotent, bandwidth=bandwidth, now=lambda: NOW)
    try:
        yield sink
    finally:
        await sink.close()


def delivery(entries: Sequence[Entry], seconds: float = 60.0) -> Delivery:
    return Delivery(entries=entries, deadline=steady_seconds() + seconds)


def sent_by(
    *replies: Reply, entries: Sequence[Entry] = (claimed(),), seconds: float = 60.0, **options: Any
) -> tuple[Report, Receiver]:
    """The report of one delivery to a receiver that replies so, and the receiver. `options` are those of `sending`."""

    async def story() -> tuple[Report, Receiver]:
        async with receiving(*replies) as receiver, sending(receiver.port, **options) as sink:
            return await sink.deliver(delivery(entries, seconds)), receiver

    return run(story())


def report_on(*replies: Reply, **options: Any) -> Report:
    return sent_by(*replies, **options)[0]


def request_of(**options: Any) -> Request:
    """What a receiver gets of one delivery that it accepts."""
    report, receiver = sent_by(accepting, **options)
    assert isinstance(report, Results)
    (request,) = receiver.requests
    return request


def unavailable(report: Report) -> Unavailable:
    assert isinstance(report, Unavailable), report
    return report


def kinds(report: Report) -> dict[int, OutcomeKind]:
    assert isinstance(report, Results), report
    return {entry_id.int: outcome.kind for entry_id, outcome in report.outcomes.items()}
