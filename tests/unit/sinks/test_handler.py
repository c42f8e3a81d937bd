from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import sys
import threading
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Batch, Outcome, OutcomeKind
from carrick.outbox.handling import Handling, Reject, Retry
from carrick.relay.split import Sending
from carrick.sinks.handler import HandlerSink
from carrick.sinks.sink import Refused, Report, Results, Unavailable
from tests.entries import claimed_run, deliver

ENTRIES = claimed_run(3)
DELIVERED = Outcome.delivered()
LONG = 30.0


def call(handler: Any, entries: Any = ENTRIES, *, seconds: float = LONG, **options: Any) -> Report:
    return asyncio.run(deliver(HandlerSink(handler, **options), entries, seconds))


def outcomes(report: Report) -> dict[UUID, Outcome]:
    assert isinstance(report, Results), report
    return dict(report.outcomes)


def each(outcome: Outcome) -> dict[UUID, Outcome]:
    return {entry.id: outcome for entry in ENTRIES}


def both(function: Any) -> list[Any]:
    """The function as it is, and as a coroutine function."""

    @functools.wraps(function)
    async def wrapped(batch: Batch) -> Any:
        return function(batch)

    return [pytest.param(function, id="sync"), pytest.param(wrapped, id="async")]


def does_nothing(batch: Batch) -> None: ...


def answers(batch: Batch) -> dict[UUID, Outcome]:
    first, *_ = batch
    return {first.id: Outcome.rejected("no")}


def retries(batch: Batch) -> None:
    raise Retry("busy", after=7)


def rejects(batch: Batch) -> None:
    raise Reject("bad entry")


def fails(batch: Batch) -> None:
    raise ZeroDivisionError("ouch")


def retries_strangely(batch: Batch) -> None:
    raise Retry("busy", after="5")  # type: ignore[arg-type]


def ends_the_interpreter(batch: Batch) -> None:
    sys.exit(3)


def returns_true(batch: Batch) -> Any:
    return True


@pytest.mark.parametrize("handler", both(does_nothing))
def test_a_handler_that_returns_has_delivered_everything(handler: Any) -> None:
    assert outcomes(call(handler)) == each(DELIVERED)


@pytest.mark.parametrize("handler", both(answers))
def test_a_handler_may_answer_per_entry_and_what_it_leaves_out_was_not_tried(handler: Any) -> None:
    assert outcomes(call(handler)) == {ENTRIES[0].id: Outcome.rejected("no")}


@pytest.mark.parametrize("handler", both(retries))
def test_retry_means_another_attempt_for_all(handler: Any) -> None:
    assert outcomes(call(handler)) == each(Outcome.retry(after=7, code="retry", message="busy"))


@pytest.mark.parametrize("handler", both(rejects))
def test_reject_refuses_the_batch_so_that_the_relay_finds_the_bad_entry(handler: Any) -> None:
    assert call(handler) == Refused(code="rejected", message="bad entry")


def test_only_the_entry_that_a_handler_rejects_is_dead() -> None:
    bad = ENTRIES[1].id

    def handler(batch: Batch) -> None:
        if bad in {entry.id for entry in batch}:
            raise Reject("bad entry")

    sink = HandlerSink(handler)
    sending = Sending(lambda entries: deliver(sink, entries))
    asyncio.run(sending.deliver(ENTRIES))
    assert sending.outcomes == each(DELIVERED) | {bad: Outcome.rejected("bad entry", code="rejected")}


@pytest.mark.parametrize("handler", both(fails))
def test_another_exception_is_a_retry_with_its_name_and_a_traceback_in_the_log(
    handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert outcomes(call(handler)) == each(Outcome.retry(code="ZeroDivisionError", message="ouch"))
    (record,) = caplog.records
    assert (record.message, record.levelno) == ("handler.failed", logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("handler", [*both(returns_true), *both(retries_strangely)])
def test_an_answer_that_means_nothing_is_a_retry_and_logged_once(
    handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    codes = {(outcome.kind, outcome.code) for outcome in outcomes(call(handler)).values()}
    assert codes == {(OutcomeKind.RETRY, "invalid_answer")}
    assert [record.message for record in caplog.records] == ["handler.answer_refused"]


@pytest.mark.parametrize("handler", both(ends_the_interpreter))
def test_a_handler_that_ends_the_interpreter_only_fails(handler: Any) -> None:
    assert outcomes(call(handler)) == each(Outcome.retry(code="SystemExit", message="3"))


def test_a_keyboard_interrupt_in_the_event_loop_stays_one() -> None:
    async def handler(batch: Batch) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(handler)


def test_a_generator_is_a_handler_and_runs_beside_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def handler(batch: Batch) -> Any:
        for entry in batch:
            threads.append(threading.current_thread())
            yield entry.id, DELIVERED
        raise Retry("the last of it failed")

    assert {outcome.code for outcome in outcomes(call(handler)).values()} == {"retry"}
    assert threading.main_thread() not in threads


def test_a_handler_that_cancels_itself_has_failed() -> None:
    async def handler(batch: Batch) -> None:
        raise asyncio.CancelledError

    assert {outcome.code for outcome in outcomes(call(handler)).values()} == {"CancelledError"}


def test_a_handlers_own_timeout_is_an_exception_like_others() -> None:
    def handler(batch: Batch) -> None:
        raise TimeoutError("of a database")

    assert outcomes(call(handler)) == each(Outcome.retry(code="TimeoutError", message="of a database"))


class Callable:
    def __call__(self, batch: Batch) -> None: ...


@pytest.mark.parametrize("handler", [functools.partial(does_nothing), lambda batch: asyncio.sleep(0), Callable()])
def test_anything_that_can_be_called_is_a_handler(handler: Any) -> None:
    assert outcomes(call(handler)) == each(DELIVERED)


def test_the_batch_holds_the_entries_of_the_delivery_in_their_order() -> None:
    seen: list[Batch] = []
    call(seen.append, ENTRIES[1:])
    assert [(batch.channel, batch.entries) for batch in seen] == [("things", tuple(ENTRIES[1:]))]


def test_a_sync_handler_runs_beside_the_event_loop_with_the_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: list[tuple[str, bool]] = []

    def handler(batch: Batch) -> None:
        seen.append((variable.get(), threading.current_thread() is threading.main_thread()))

    variable.set("here")
    call(handler)
    assert seen == [("here", False)]


async def sleeps(batch: Batch) -> None:
    await asyncio.sleep(LONG)


@pytest.mark.parametrize(("idempotent", "kind"), [(True, OutcomeKind.RETRY), (False, OutcomeKind.UNSURE)])
def test_a_handler_that_is_too_late_is_a_retry_or_unsure(idempotent: bool, kind: OutcomeKind) -> None:
    found = outcomes(call(sleeps, timeout=0.01, idempotent=idempotent))
    assert {(outcome.kind, outcome.code) for outcome in found.values()} == {(kind, "timeout")}


def test_without_a_timeout_of_its_own_a_handler_has_what_is_left_of_the_lease() -> None:
    assert {outcome.code for outcome in outcomes(call(sleeps, seconds=0.01)).values()} == {"timeout"}


def test_the_lease_counts_more_than_the_handlers_timeout() -> None:
    assert {outcome.code for outcome in outcomes(call(sleeps, seconds=0.01, timeout=3600)).values()} == {"timeout"}


def test_a_delivery_without_time_calls_nothing() -> None:
    calls: list[Batch] = []
    report = call(calls.append, seconds=-1)
    assert isinstance(report, Unavailable)
    assert (report.code, calls) == ("no_time", [])


def test_a_delivery_without_entries_calls_nothing() -> None:
    calls: list[Batch] = []
    assert outcomes(call(calls.append, [])) == {}
    assert calls == []


def test_a_cancelled_delivery_cancels_an_async_handler() -> None:
    ended: list[str] = []

    async def story() -> None:
        started = asyncio.Event()

        async def handler(batch: Batch) -> None:
            started.set()
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        task = asyncio.create_task(deliver(HandlerSink(handler), ENTRIES))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert ended == ["cancelled"]


class Stuck:
    """A sync handler whose first call ends only when it is let go."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.calls = 0

    def __call__(self, batch: Batch) -> None:
        self.calls += 1
        if self.calls == 1:
            self.release.wait(LONG)


def test_nothing_more_is_handed_to_a_sync_handler_that_overran_until_it_has_ended() -> None:
    stuck = Stuck()

    async def story() -> list[Report]:
        sink = HandlerSink(stuck, timeout=0.2)  # long enough for the call that ends at once
        late = await deliver(sink, ENTRIES)
        refused = await deliver(sink, ENTRIES, seconds=0.01)
        assert stuck.calls == 1
        waiting = asyncio.create_task(deliver(sink, ENTRIES))
        stuck.release.set()
        return [late, refused, await waiting]

    late, refused, after = asyncio.run(story())
    assert {outcome.code for outcome in outcomes(late).values()} == {"timeout"}
    assert isinstance(refused, Unavailable)
    assert refused.code == "handler_overrun"
    assert (outcomes(after), stuck.calls) == (each(DELIVERED), 2)


def test_calls_that_are_in_time_may_run_side_by_side() -> None:
    together = threading.Barrier(2)

    def handler(batch: Batch) -> None:
        together.wait(LONG)

    async def story() -> list[Report]:
        sink = HandlerSink(handler)
        return list(await asyncio.gather(deliver(sink, ENTRIES), deliver(sink, ENTRIES)))

    assert [outcomes(report) for report in asyncio.run(story())] == [each(DELIVERED)] * 2


def test_a_handler_that_still_runs_when_the_sink_is_closed_is_named(caplog: pytest.LogCaptureFixture) -> None:
    stuck = Stuck()

    async def story() -> None:
        sink = HandlerSink(stuck, timeout=0.01)
        await deliver(sink, ENTRIES)
        await sink.close()
        stuck.release.set()
        await deliver(sink, ENTRIES)

    asyncio.run(story())
    assert "handler.still_running" in [record.message for record in caplog.records]


def test_a_registered_handler_keeps_its_options() -> None:
    handling = Handling(channel="things", handler=sleeps, timeout=0.01, idempotent=False)
    report = asyncio.run(deliver(HandlerSink.of(handling), ENTRIES))
    assert {outcome.kind for outcome in outcomes(report).values()} == {OutcomeKind.UNSURE}


def test_a_handler_is_always_reachable() -> None:
    assert asyncio.run(HandlerSink(does_nothing).reachable())
