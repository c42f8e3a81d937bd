"""Entries handed to a function of the application, in this process: the sink behind `@outbox.handler`.

A coroutine function runs in the relay's event loop, any other function in a thread. A thread cannot be killed: a
function that overruns its time goes on, and this sink hands over nothing more until it has ended.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from contextlib import suppress
from typing import Any
from uuid import UUID

from carrick.entry import Batch, Outcome
from carrick.outbox.handling import Answer, Handler, Handling, Reject, Retry, name_of, outcomes_of
from carrick.sinks.sink import Delivery, Refused, Report, Results, Sink, Unavailable

log = logging.getLogger("carrick.handler")

NO_TOKEN = UUID(int=0)
"""A handler's batch has no lease token: what becomes of the entries is the relay's to write down."""


class HandlerSink(Sink):
    """Calls a handler with each delivery's entries. Several calls may be under way at once."""

    def __init__(self, handler: Handler, *, timeout: float | None = None, idempotent: bool = True) -> None:
        self._handler = handler
        self._name = name_of(handler)
        self._timeout = timeout
        self.idempotent = idempotent
        self._is_async = _is_async(handler)
        self._overrun: set[asyncio.Future[Any]] = set()

    @classmethod
    def of(cls, handling: Handling) -> HandlerSink:
        """The sink of a registered handler."""
        return cls(handling.handler, timeout=handling.timeout, idempotent=handling.idempotent)

    async def deliver(self, delivery: Delivery) -> Report:
        """Call the handler when its former calls have ended. See docs/how-to/handle-entries.md."""
        if not delivery.entries:
            return Results(outcomes={})
        if not await self._former_calls_ended(delivery):
            return Unavailable(code="handler_overrun", message=f"an earlier call of {self._name} has not ended yet")
        seconds = delivery.seconds_left()
        if seconds <= 0:
            return Unavailable(code="no_time", message=f"no time was left to call {self._name}")
        return await self._report(_batch(delivery, seconds), seconds)

    async def reachable(self) -> bool:
        """A function of this process always is."""
        return True

    async def close(self) -> None:
        """Holds nothing open. A call that still runs cannot be stopped; it is named in the log."""
        if self._overrun:
            log.warning("handler.still_running", extra={"handler": self._name, "calls": len(self._overrun)})

    async def _former_calls_ended(self, delivery: Delivery) -> bool:
        """Wait for calls that overran their time, as long as this delivery may take."""
        if not self._overrun:
            return True
        _, running = await asyncio.wait(self._overrun, timeout=max(0.0, delivery.seconds_left()))
        return not running

    async def _report(self, batch: Batch, seconds: float) -> Report:
        """Call the handler with the batch, at most for so long; what it returns or raises becomes the report."""
        try:
            async with asyncio.timeout(seconds if self._timeout is None else min(seconds, self._timeout)) as limit:
                answer = await self._call(batch)
        except Retry as retry:
            return self._answered(batch, dict.fromkeys(_ids(batch), retry.outcome()))
        except Reject as reject:
            return Refused(code="rejected", message=str(reject))
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            return _all(batch, Outcome.retry(code="CancelledError", message="the handler cancelled itself"))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # sys.exit() too: in a task it would end the process
            if isinstance(error, TimeoutError) and limit.expired():
                return self._too_late(batch)
            log.exception("handler.failed", extra={"handler": self._name, "entries": len(batch)})
            return _all(batch, Outcome.retry(code=type(error).__name__, message=error))
        return self._answered(batch, answer)

    async def _call(self, batch: Batch) -> Answer:
        answer = self._handler(batch) if self._is_async else await self._call_in_thread(batch)
        return await answer if inspect.isawaitable(answer) else answer

    async def _call_in_thread(self, batch: Batch) -> Any:
        running = _in_thread(self._handler, batch)
        try:
            answer, error = await asyncio.shield(running)
        except asyncio.CancelledError:
            log.warning("handler.overrun", extra={"handler": self._name, "entries": len(batch)})
            self._overrun.add(running)
            running.add_done_callback(self._overrun.discard)
            raise
        if error is None:
            return answer
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise RuntimeError(f"the handler ended with {type(error).__name__}") from error
        raise error

    def _answered(self, batch: Batch, answer: Answer) -> Report:
        outcomes, faults = outcomes_of(batch, answer)
        for fault in faults[:1]:  # one line, also where all are of one kind
            log.error("handler.answer_refused", extra={"handler": self._name, "error": str(fault)})
        return Results(outcomes=outcomes)

    def _too_late(self, batch: Batch) -> Report:
        """It did not end in time: it may have done all, some or nothing of its work."""
        log.warning("handler.too_late", extra={"handler": self._name, "entries": len(batch)})
        kind = Outcome.retry if self.idempotent else Outcome.unsure
        return _all(batch, kind(code="timeout", message=f"{self._name} did not end in time"))


def _batch(delivery: Delivery, seconds: float) -> Batch:
    """The entries of this delivery, and no others, as the handler sees them."""
    return Batch(
        channel=delivery.entries[0].channel,
        token=NO_TOKEN,
        lease_expires_at=None,
        entries=tuple(delivery.entries),
        lease_seconds=seconds,
    )


def _all(batch: Batch, outcome: Outcome) -> Results:
    return Results(outcomes=dict.fromkeys(_ids(batch), outcome))


def _ids(batch: Batch) -> list[UUID]:
    return [entry.id for entry in batch]


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


def _being_cancelled() -> bool:
    """Whether somebody cancels this delivery, rather than the handler itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _in_thread(handler: Handler, batch: Batch) -> asyncio.Future[tuple[Any, BaseException | None]]:
    """Call it in a thread of its own, which does not keep the process alive; the answer, and what it raised."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        answer, fault = None, None
        try:
            answer = context.run(_answer_of, handler, batch)
        except BaseException as error:  # noqa: BLE001  whatever it is, the event loop hears of it
            fault = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, future, (answer, fault))

    threading.Thread(target=run, name="carrick-handler", daemon=True).start()
    return future


def _answer_of(handler: Handler, batch: Batch) -> Any:
    """What it returns; a generator runs to its end here, for it is a part of the handler."""
    answer = handler(batch)
    return list(answer) if inspect.isgenerator(answer) else answer


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)
