from __future__ import annotations

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
    assert outcomes_of(BATCH, None) == dict.fromkeys([ONE, OTHER], Outcome.delivered())


@pytest.mark.parametrize("form", [dict, list])
def test_an_answer_is_a_mapping_or_pairs(form: Any) -> None:
    outcomes = {ONE: Outcome.delivered(), OTHER: Outcome.retry(after=3)}
    assert outcomes_of(BATCH, form(outcomes.items())) == outcomes


@pytest.mark.parametrize(
    "answer",
    [True, 7, "ok", [ONE], {ONE: "delivered"}, {str(ONE): Outcome.delivered()}, {UUID(int=0): Outcome.delivered()}],
)
def test_an_answer_of_another_form_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidInput, match="^answer: .*accepted: None, or outcomes by entry id"):
        outcomes_of(BATCH, answer)


def test_retry_and_reject_say_what_they_mean_for_an_entry() -> None:
    assert Retry("busy", after=9).outcome() == Outcome.retry(after=9, code="retry", message="busy")
    assert Reject("no such account").outcome() == Outcome.rejected("no such account", code="rejected")
