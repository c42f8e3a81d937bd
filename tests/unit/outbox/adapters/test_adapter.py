"""How an operation is driven, and what is inside a wrapped error."""

from __future__ import annotations

import asyncio

import pytest

from carrick.outbox.adapters.adapter import drive, drive_async, driver_error, sqlstate_of
from carrick.outbox.statement import Row, Statement, Step, Steps


class DriverError(Exception):
    """What a driver raises, with PostgreSQL's code."""

    sqlstate = "23505"


class WrappedError(Exception):
    """What SQLAlchemy makes of a driver's error."""

    def __init__(self, orig: BaseException) -> None:
        self.orig = orig


def _echoing() -> Steps[list[Row]]:
    first = yield Statement("one", {})
    second = yield Statement("two", {})
    return first + second


def _catching() -> Steps[str]:
    try:
        yield Statement("bad", {})
    except DriverError:
        rows = yield Statement("undo", {})
        return str(rows[0][0])
    return "no error"


def _perform(step: Step) -> list[Row]:
    assert isinstance(step, Statement)
    if step.sql == "bad":
        raise DriverError
    return [(step.sql,)]


async def _perform_async(step: Step) -> list[Row]:
    return _perform(step)


def test_an_operation_is_sent_its_rows_and_its_result_comes_out() -> None:
    assert drive(_echoing(), _perform) == [("one",), ("two",)]
    assert asyncio.run(drive_async(_echoing(), _perform_async)) == [("one",), ("two",)]


def test_an_operation_may_catch_a_drivers_error_and_go_on() -> None:
    assert drive(_catching(), _perform) == "undo"
    assert asyncio.run(drive_async(_catching(), _perform_async)) == "undo"


def test_an_error_that_the_operation_does_not_catch_comes_out_as_it_is() -> None:
    def careless() -> Steps[None]:
        yield Statement("bad", {})

    with pytest.raises(DriverError):
        drive(careless(), _perform)
    with pytest.raises(DriverError):
        asyncio.run(drive_async(careless(), _perform_async))


def test_an_operation_without_statements_answers_at_once() -> None:
    def nothing() -> Steps[int]:
        return 7
        yield Statement("never", {})

    assert drive(nothing(), _perform) == 7


def test_the_drivers_error_is_found_inside_a_wrapper() -> None:
    inner = DriverError()
    caused = ValueError()
    caused.__cause__ = inner
    assert driver_error(WrappedError(inner)) is inner
    assert driver_error(WrappedError(caused)) is inner
    assert driver_error(inner) is inner


def test_an_error_that_no_database_knows_has_no_code() -> None:
    assert sqlstate_of(ValueError()) is None
    assert sqlstate_of(WrappedError(DriverError())) == "23505"
