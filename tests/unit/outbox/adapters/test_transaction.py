"""Whose transaction an operation runs in, where no driver is needed to see it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from carrick.outbox.adapters.adapter import drive
from carrick.outbox.adapters.sqlite_transaction import in_sqlite_transaction
from carrick.outbox.adapters.transaction import in_postgres_transaction
from carrick.outbox.statement import Row, Statement, Step, Steps


class Recorder:
    """Performs statements by writing them down; those in `failing` raise."""

    def __init__(self, *failing: str) -> None:
        self.said: list[str] = []
        self._failing = failing

    def __call__(self, step: Step) -> list[Row]:
        assert isinstance(step, Statement)
        self.said.append(step.sql)
        if step.sql in self._failing:
            raise OSError(f"{step.sql} failed")
        return []


def _writing() -> Steps[str]:
    yield Statement("write", {})
    return "written"


def _sqlite(**given: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"in_transaction": False, "isolation_level": "", **given})


def test_an_open_transaction_is_joined_without_a_word() -> None:
    record = Recorder()
    assert drive(in_sqlite_transaction(_writing(), _sqlite(in_transaction=True)), record) == "written"
    assert record.said == ["write"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["begin immediate", "write"]),
        ({"isolation_level": "exclusive"}, ["begin exclusive", "write"]),
        ({"isolation_level": None}, ["begin immediate", "write", "commit"]),
        ({"autocommit": -1}, ["begin immediate", "write"]),
        ({"autocommit": -1, "isolation_level": None}, ["begin immediate", "write", "commit"]),
        ({"autocommit": True}, ["begin immediate", "write", "commit"]),
        ({"autocommit": False, "isolation_level": None}, ["begin immediate", "write"]),
    ],
)
def test_sqlite_begins_and_leaves_the_commit_to_whom_the_mode_says(given: dict[str, Any], expected: list[str]) -> None:
    record = Recorder()
    drive(in_sqlite_transaction(_writing(), _sqlite(**given)), record)
    assert record.said == expected


def test_postgres_in_autocommit_mode_gets_a_transaction_only_when_idle() -> None:
    for status, expected in [(0, ["begin", "write", "commit"]), (2, ["write"])]:
        record = Recorder()
        connection = SimpleNamespace(info=SimpleNamespace(transaction_status=status))
        drive(in_postgres_transaction(_writing(), connection, autocommit=True), record)
        assert record.said == expected


def test_a_commit_that_fails_is_rolled_back() -> None:
    record = Recorder("commit")
    with pytest.raises(OSError, match="commit failed"):
        drive(in_sqlite_transaction(_writing(), _sqlite(isolation_level=None)), record)
    assert record.said[-1] == "rollback"


def test_a_rollback_that_fails_is_told_with_the_first_error() -> None:
    with pytest.raises(OSError, match="write failed") as raised:
        drive(in_sqlite_transaction(_writing(), _sqlite()), Recorder("write", "rollback"))
    assert raised.value.__notes__ == ["Rolling back failed as well: rollback failed"]


def test_an_abandoned_operation_says_nothing_more() -> None:
    steps = in_sqlite_transaction(_writing(), _sqlite())
    assert next(steps).sql == "begin immediate"  # type: ignore[union-attr]
    assert steps.send([]) == Statement("write", {})
    steps.close()
