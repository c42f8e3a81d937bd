"""Spans of put, claim, deliver and finish: one trace from the producer to the destination; nothing without the API."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, Status, StatusCode, TraceFlags

from carrick import tracing, wiring
from carrick.entry import Outcome
from carrick.outbox.outbox import Outbox
from carrick.relay.relay import Relay, RelaySettings
from carrick.settings import CloudSettings
from carrick.sinks.http import HttpSink
from carrick.sinks.sink import Delivery, Report, Results, Sink, Unavailable
from tests.receivers import accepting, receiving

OTHER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


class Recorded(trace.NonRecordingSpan):
    """A span that remembers what it was told."""

    def __init__(self, name: str, context: SpanContext, parent: SpanContext, links: Sequence[trace.Link]) -> None:
        super().__init__(context)
        self.name = name
        self.parent = parent
        self.links = [link.context for link in links]
        self.code: StatusCode | None = None
        self.ended = False

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self.code = status.status_code if isinstance(status, Status) else status

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class Recorder:
    """What an SDK would be, as small as the test needs it."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    @contextmanager
    def start_as_current_span(self, name: str, context: Any = None, **given: Any) -> Iterator[Span]:
        parent = trace.get_current_span(context).get_span_context()
        number = len(self.spans) + 1
        trace_id = parent.trace_id if parent.is_valid else number
        made = SpanContext(trace_id, number, False, TraceFlags(1))
        span = Recorded(name, made, parent, given.get("links", ()))
        self.spans.append(span)
        with trace.use_span(span, end_on_exit=True):
            yield span

    def named(self, verb: str) -> list[Recorded]:
        return [span for span in self.spans if span.name == f"carrick.{verb}"]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(tracing, "TRACER", recorder)
    monkeypatch.setattr(tracing, "has_sdk", lambda: True)
    return recorder


@pytest.fixture
def outbox(sqlite_path: Path) -> Iterator[Outbox]:
    wiring.migrate(f"sqlite:///{sqlite_path}")
    with wiring.open_outbox(f"sqlite:///{sqlite_path}") as outbox:
        outbox.channel("things")
        yield outbox


class Seeing(Sink):
    """Answers the same for everything; remembers what span was open."""

    def __init__(self, report: Report | None = None) -> None:
        self._report = report
        self.saw: list[str | None] = []

    async def deliver(self, delivery: Delivery) -> Report:
        self.saw.append(tracing.current())
        delivered = Results(outcomes={entry.id: Outcome.delivered() for entry in delivery.entries})
        return self._report or delivered

    async def reachable(self) -> bool:
        return True

    async def close(self) -> None: ...


def relay(outbox: Outbox, sink: Any) -> None:
    """Deliver what is due."""

    async def once() -> None:
        channel = outbox.store.channels()["things"]
        await Relay(outbox.store, sink, channel, RelaySettings(owner="w")).once()

    asyncio.run(once())


def put(outbox: Outbox, **fields: Any) -> None:
    outbox.put(channel="things", event_type="e", payload={}, **fields)


def test_the_delivery_goes_on_in_the_trace_of_the_put(outbox: Outbox, recorder: Recorder) -> None:
    put(outbox)
    sink = Seeing()
    relay(outbox, sink)
    (made,), (deliver,), (finish,) = recorder.named("put"), recorder.named("deliver"), recorder.named("finish")
    assert deliver.parent == finish.parent
    assert (deliver.parent.trace_id, deliver.parent.span_id) == (
        made.get_span_context().trace_id,
        made.get_span_context().span_id,
    )
    context = deliver.get_span_context()
    assert sink.saw == [f"00-{context.trace_id:032x}-{context.span_id:016x}-01"]
    assert recorder.named("claim")
    assert all(span.ended for span in recorder.spans)


def test_a_batch_of_many_traces_links_to_the_others(outbox: Outbox, recorder: Recorder) -> None:
    put(outbox)
    put(outbox)
    put(outbox, traceparent=OTHER)
    put(outbox, traceparent="nonsense")
    relay(outbox, Seeing())
    first, second, *_ = recorder.named("put")
    (deliver,) = recorder.named("deliver")
    assert deliver.parent.span_id == first.get_span_context().span_id
    assert [link.span_id for link in deliver.links] == [second.get_span_context().span_id, int("b" * 16, 16)]


def test_many_entries_share_the_span_of_their_put(outbox: Outbox, recorder: Recorder) -> None:
    fields = {"channel": "things", "event_type": "e", "payload": {}}
    outbox.put_many([fields, fields, {**fields, "traceparent": OTHER}])
    (span,) = recorder.named("put")
    context = span.get_span_context()
    mine = f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    assert [entry.traceparent for entry in outbox.claim("things")] == [mine, mine, OTHER]


def test_a_delivery_that_does_not_get_through_is_an_error_in_its_span(outbox: Outbox, recorder: Recorder) -> None:
    put(outbox)
    relay(outbox, Seeing(Unavailable(code="http_503", message="later")))
    (deliver,) = recorder.named("deliver")
    assert deliver.code is StatusCode.ERROR


def test_the_http_sink_sends_the_span_of_the_delivery(outbox: Outbox, recorder: Recorder) -> None:
    put(outbox, tenant_id="acme")

    async def story() -> str:
        async with receiving(accepting) as receiver:
            cloud = CloudSettings(url=f"http://127.0.0.1:{receiver.port}/batch")
            sink = HttpSink(cloud, edge_id="edge")
            await Relay(outbox.store, sink, outbox.store.channels()["things"], RelaySettings(owner="w")).once()
            await sink.close()
            return receiver.requests[0].headers["traceparent"]

    sent = asyncio.run(story())
    (deliver,) = recorder.named("deliver")
    assert sent.split("-")[2] == f"{deliver.get_span_context().span_id:016x}"


def test_a_put_outside_of_any_span_has_no_context(outbox: Outbox) -> None:
    put(outbox)
    assert [entry.traceparent for entry in outbox.claim("things")] == [None]


def test_without_an_sdk_no_span_is_made() -> None:
    assert tracing.ON
    assert tracing.span("put", "things") is tracing.NOTHING


def test_the_tracer_is_that_of_the_sdk_that_is_set_up_later() -> None:
    program = """
from carrick import tracing
from opentelemetry import trace
class Provider(trace.NoOpTracerProvider): ...
trace.set_tracer_provider(Provider())
print(tracing.has_sdk(), tracing.span("put", "things") is tracing.NOTHING)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_without_the_api_nothing_is_traced_and_everything_works(sqlite_path: Path) -> None:
    program = f"""
import sys
sys.modules["opentelemetry"] = None
from carrick import tracing, wiring
wiring.migrate("sqlite:///{sqlite_path}")
outbox = wiring.open_outbox("sqlite:///{sqlite_path}")
outbox.channel("things")
outbox.put(channel="things", event_type="e", payload={{}}, traceparent="{OTHER}")
assert tracing.ON is False and tracing.current() is None
assert tracing.span("put", "x") is tracing.NOTHING
tracing.fail("x")
print(outbox.claim("things").entries[0].traceparent)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == OTHER, done.stderr
