"""What every adapter offers, and how an operation is driven over a connection that belongs to the caller.

An adapter neither commits nor rolls back what the caller has begun. Where the caller has begun nothing and the driver
would commit each statement by itself, the operation gets a short transaction of its own (`transaction.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

from carrick.outbox.statement import Row, Statement, Step, Steps

T = TypeVar("T")

Dialect = Literal["postgresql", "sqlite"]


class SyncAdapter(Protocol):
    """Runs operations on a connection whose calls block."""

    @property
    def is_async(self) -> Literal[False]:
        """False: `run` answers at once."""

    @property
    def dialect(self) -> Dialect:
        """Which database is behind the connection. Raises UnsupportedConnection when it is neither of the two."""

    @property
    def can_bulk(self) -> bool:
        """Whether operations may yield what the database has for many rows: `Copy` or `Values`."""

    def run(self, steps: Steps[T]) -> T:
        """Run the operation in the caller's transaction. Raises what the operation or the driver raises."""


class AsyncAdapter(Protocol):
    """Runs operations on a connection whose calls are awaited."""

    @property
    def is_async(self) -> Literal[True]:
        """True: the answer of `run` must be awaited."""

    @property
    def dialect(self) -> Dialect:
        """Which database is behind the connection. Raises UnsupportedConnection when it is neither of the two."""

    @property
    def can_bulk(self) -> bool:
        """Whether operations may yield what the database has for many rows: `Copy` or `Values`."""

    async def run(self, steps: Steps[T]) -> T:
        """Run the operation in the caller's transaction. Raises what the operation or the driver raises."""


Adapter = SyncAdapter | AsyncAdapter


def drive(steps: Steps[T], perform: Callable[[Step], list[Row]]) -> T:
    """Perform each step and send its rows back.

    An error of the driver is raised inside the operation, where it yielded, so that the operation can undo or translate
    it; what it does not catch comes out of here.
    """
    try:
        step = next(steps)
        while True:
            try:
                rows = perform(step)
            except BaseException as error:  # noqa: BLE001  the operation decides, and raises it again unless it knows better
                step = steps.throw(error)
            else:
                step = steps.send(rows)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def drive_async(steps: Steps[T], perform: Callable[[Step], Awaitable[list[Row]]]) -> T:
    """As `drive`; a cancelled task is also told to the operation, which may still undo what it did."""
    try:
        step = next(steps)
        while True:
            try:
                rows = await perform(step)
            except BaseException as error:  # noqa: BLE001  the operation decides, and raises it again unless it knows better
                step = steps.throw(error)
            else:
                step = steps.send(rows)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def statement_only(step: Step) -> Statement:
    """The step as a statement; an operation that yields another to a driver that cannot is a fault in Carrick."""
    if isinstance(step, Statement):
        return step
    raise TypeError(f"this driver has no {type(step).__name__}: operations must look at can_bulk")


def driver_error(error: BaseException) -> BaseException:
    """The driver's own error inside one that SQLAlchemy (`orig`) or Django (`__cause__`) has wrapped around it."""
    while True:
        inner: Any = getattr(error, "orig", None) or error.__cause__
        if not isinstance(inner, Exception) or _says_what(error):
            return error
        error = inner


def sqlstate_of(error: BaseException) -> str | None:
    """PostgreSQL's five-character code behind the error, whichever library raised it; None when there is none."""
    code = getattr(driver_error(error), "sqlstate", None)
    return code if isinstance(code, str) else None


def _says_what(error: BaseException) -> bool:
    return getattr(error, "sqlstate", None) is not None or getattr(error, "sqlite_errorname", None) is not None
