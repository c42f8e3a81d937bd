from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from carrick import Batch, Outbox, Outcome, wiring
from carrick.errors import InvalidInput
from carrick.outbox.handling import Reject, Retry, outcomes_of
from tests.entries import claimed_run

BATCH = Batch(channel="things", token=UUID(int=0), lease_expires_at=None, entries=tuple(claimed_run(2)))
ONE, OTHER = (entry.id for entry in BATCH)


@pytest.fixture
def outbox(sqlite_path: Path) -> Any:
    url = f"sqlite:///{sqlite_path}"
    wiring.migrate(url)
    with Outbox.connect(url) as outbox:
        yield outbox


def test_a_decorated_function_is_listed_and_stays_what_it_was(outbox: Outbox) -> None:
    def send(batch: Batch) -> None: ...

    assert outbox.handler("billing", timeout=5, idempotent=False)(send) is send
    handling = outbox.handlers["billing"]
    assert (handling.handler, handling.timeout, handling.idempotent) == (send, 5, False)


def test_a_second_handler_for_a_channel_is_refused_and_the_first_named(outbox: Outbox) -> None:
    @outbox.handler("billing")
    def first(batch: Batch) -> None: ...

    with pytest.raises(InvalidInput, match="'billing' has a handler already: .*first"):

        @outbox.handler("billing")
        def second(batch: Batch) -> None: ...

    assert outbox.handlers["billing"].handler is first


@pytest.mark.parametrize("timeout", [0, -1, 100_000, float("nan")])
def test_a_timeout_that_cannot_be_is_refused(outbox: Outbox, timeout: float) -> None:
    with pytest.raises(InvalidInput, match="timeout"):
        outbox.handler("billing", timeout=timeout)(lambda batch: None)


def test_the_list_of_handlers_cannot_be_changed_from_outside(outbox: Outbox) -> None:
    with pytest.raises(TypeError):
        outbox.handlers["billing"] = None  # type: ignore[index]


def test_no_answer_means_that_everything_is_delivered() -> None:
    assert outcomes_of(BATCH, None) == (dict.fromkeys([ONE, OTHER], Outcome.delivered()), [])


@pytest.mark.parametrize("form", [dict, list])
def test_an_answer_is_a_mapping_or_pairs(form: Any) -> None:
    outcomes = {ONE: Outcome.delivered(), OTHER: Outcome.retry(after=3)}
    assert outcomes_of(BATCH, form(outcomes.items())) == (outcomes, [])


@pytest.mark.parametrize("answer", [True, 7, "ok", [ONE]])
def test_what_is_no_answer_at_all_is_another_attempt_for_each_entry(answer: Any) -> None:
    outcomes, (fault,) = outcomes_of(BATCH, answer)
    assert str(fault).startswith("answer: the handler returned ")
    assert outcomes == dict.fromkeys([ONE, OTHER], Outcome.retry(code="invalid_answer", message=str(fault)))


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("delivered", "answer: the outcome is 'delivered'; accepted: None, or outcomes by entry id"),
        (Outcome(kind="sent"), "answer: the outcome is Outcome"),  # type: ignore[arg-type]
        (Outcome.retry(after="5"), "after: '5' is out of range; accepted: 0 or more seconds"),  # type: ignore[arg-type]
        (Outcome.retry(after=float("nan")), "after: nan is out of range"),
        (Outcome.retry(after=-1), "after: -1 is out of range"),
        (Outcome.retry(after=10**400), "int too large"),
        (Outcome.retry(code=5.03), "code: is 5.03; accepted: text, or a whole number"),  # type: ignore[arg-type]
        (Outcome.rejected({"why": "no"}), "message: is {'why': 'no'}; accepted: text, or an exception"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_fault_in_one_outcome_is_that_entrys_next_attempt_and_the_others_keep_theirs(outcome: Any, said: str) -> None:
    outcomes, (fault,) = outcomes_of(BATCH, {ONE: outcome, OTHER: Outcome.delivered()})
    assert str(fault).startswith(said)
    assert outcomes == {ONE: Outcome.retry(code="invalid_answer", message=str(fault)), OTHER: Outcome.delivered()}


@pytest.mark.parametrize("strange", [str(OTHER), UUID(int=0), 7])
def test_an_outcome_of_nothing_in_the_batch_is_a_fault_of_the_entries_that_are_not_named(strange: Any) -> None:
    outcomes, (fault,) = outcomes_of(BATCH, {ONE: Outcome.delivered(), strange: Outcome.delivered()})
    assert str(fault).startswith(f"answer: {strange!r} is no id of this batch")
    assert outcomes == {ONE: Outcome.delivered(), OTHER: Outcome.retry(code="invalid_answer", message=str(fault))}


def test_outcomes_take_whole_numbers_timedeltas_and_exceptions_for_what_they_obviously_mean() -> None:
    error = ConnectionError("refused")
    assert Outcome.retry(after=timedelta(minutes=2), code=HTTPStatus.BAD_GATEWAY, message=error) == Outcome.retry(
        after=120.0, code="502", message="refused"
    )
    assert Outcome.rejected(KeyError(), code=404) == Outcome.rejected("KeyError", code="404")
    assert Outcome.unsure(after=timedelta(seconds=1), message=error) == Outcome.unsure(after=1.0, message="refused")


def test_retry_and_reject_say_what_they_mean_for_an_entry() -> None:
    assert Retry("busy", after=9).outcome() == Outcome.retry(after=9, code="retry", message="busy")
    assert Reject("no such account").outcome() == Outcome.rejected("no such account", code="rejected")


def test_retry_and_reject_take_exceptions_and_a_timedelta() -> None:
    retry = Retry(ConnectionError("refused"), after=timedelta(seconds=9))
    assert retry.outcome() == Outcome.retry(after=9, code="retry", message="refused")
    assert Reject(ValueError("no number")).outcome() == Outcome.rejected("no number", code="rejected")
