"""One bad event among many, on its way through the HTTP sink: it is found, and it holds up nobody."""

from __future__ import annotations

import math

from carrick.entry import OutcomeKind
from carrick.relay.split import Sending
from carrick.settings import CloudSettings
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Delivery
from carrick.steady import steady_seconds
from carrick.testing.samples import claimed
from tests.receivers import Line, Request, accepting, answering, receiving, run


async def refusing_bad_batches(request: Request, line: Line) -> bool:
    bad = b'"bad"' in request.text
    return await (answering(400, b'{"error": "an event is bad"}') if bad else accepting)(request, line)


def test_a_batch_that_is_refused_for_one_event_delivers_all_the_others() -> None:
    entries = [claimed(number, payload=b'"bad"' if number == 42 else b'"good"') for number in range(1, 101)]

    async def story() -> tuple[Sending, int]:
        async with receiving(refusing_bad_batches) as receiver:
            sink = HttpSink(CloudSettings(url=f"http://127.0.0.1:{receiver.port}/"), edge_id="edge-1")
            deadline = steady_seconds() + 60
            sending = Sending(lambda part: sink.deliver(Delivery(entries=part, deadline=deadline)))
            await sending.deliver(entries)
            await sink.close()
            return sending, len(receiver.requests)

    sending, requests = run(story())
    kinds = {entry_id.int: outcome.kind for entry_id, outcome in sending.outcomes.items()}
    assert kinds == {**dict.fromkeys(range(1, 101), OutcomeKind.DELIVERED), 42: OutcomeKind.REJECTED}
    assert requests <= 2 * math.ceil(math.log2(100)) + 1
