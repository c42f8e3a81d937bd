"""`deliver_all`: what an application's tests call to let everything arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from carrick.entry import Batch, Outcome, State
from carrick.errors import InvalidInput
from carrick.outbox.handling import Reject, Retry
from carrick.outbox.outbox import Outbox
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing import SqliteClock, deliver_all
from carrick.testing.samples import declare, ids, put, put_run, states
from tests.sqlite_file import engine_file


@pytest.fixture
def outbox(sqlite_path: Path) -> Iterator[Outbox]:
    engine_file(sqlite_path)
    with closing(Outbox(SqliteStore(sqlite_path), dialect="sqlite")) as outbox:
        declare(outbox.store, batch_rows=2)
        declare(outbox.store, "others")
        yield outbox


def test_everything_that_is_due_is_delivered_in_order(outbox: Outbox) -> None:
    waiting = put_run(outbox.store, 5)
    other = put(outbox.store, "others")
    later = put(outbox.store, delay_seconds=60)
    delivered = ids(deliver_all(outbox))
    assert [entry_id for entry_id in delivered if entry_id != other] == waiting
    assert states(outbox.store, [*waiting, other, later]) == [State.DELIVERED] * 6 + [State.PENDING]
    assert deliver_all(outbox) == []


def test_only_the_named_channels_are_delivered(outbox: Outbox) -> None:
    left = put(outbox.store)
    other = put(outbox.store, "others")
    assert ids(deliver_all(outbox, channels=["others"])) == [other]
    assert states(outbox.store, [left]) == [State.PENDING]


def test_the_handler_sees_every_batch_and_decides(outbox: Outbox, sqlite_path: Path) -> None:
    good, bad, again = put_run(outbox.store, 3)
    seen: list[UUID] = []

    def handler(batch: Batch) -> Mapping[UUID, Outcome]:
        seen.extend(ids(batch))
        fates = {good: Outcome.delivered(), bad: Outcome.rejected("no"), again: Outcome.retry(after=30)}
        return {entry.id: fates[entry.id] for entry in batch}

    assert ids(deliver_all(outbox, handler)) == [good]
    assert seen == [good, bad, again]
    assert states(outbox.store, [good, bad, again]) == [State.DELIVERED, State.DEAD, State.PENDING]
    SqliteClock(sqlite_path).shift(31)
    assert ids(deliver_all(outbox)) == [again]


def test_an_entry_that_the_handler_releases_is_offered_once_and_stays(outbox: Outbox) -> None:
    waiting = put_run(outbox.store, 3)
    offered: list[UUID] = []

    def handler(batch: Batch) -> Mapping[UUID, Outcome]:
        offered.extend(ids(batch))
        return {entry.id: Outcome.released() for entry in batch}

    assert deliver_all(outbox, handler) == []
    assert sorted(offered) == sorted(waiting)
    assert states(outbox.store, waiting) == [State.PENDING] * 3


def test_entries_that_the_handler_does_not_mention_go_back(outbox: Outbox) -> None:
    waiting = put_run(outbox.store, 2)
    assert deliver_all(outbox, lambda batch: {}) == []
    assert states(outbox.store, waiting) == [State.PENDING] * 2


def test_what_the_handler_raises_comes_out_and_its_batch_goes_back_unspent(outbox: Outbox) -> None:
    entry_id = put(outbox.store)

    def handler(batch: Batch) -> None:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError, match="down"):
        deliver_all(outbox, handler)
    standing = outbox.store.standing(entry_id)
    assert (standing.state, standing.attempt_count) == (State.PENDING, 0)
    assert ids(deliver_all(outbox)) == [entry_id]


def test_what_is_wrong_with_an_answer_comes_out_and_its_batch_goes_back_unspent(outbox: Outbox) -> None:
    entry_id = put(outbox.store)
    with pytest.raises(InvalidInput, match="after: '5' is out of range"):
        deliver_all(outbox, lambda batch: {entry_id: Outcome.retry(after="5")})  # type: ignore[arg-type]
    assert outbox.store.standing(entry_id).attempt_count == 0


def test_registered_handlers_deliver_their_channels(outbox: Outbox) -> None:
    seen: list[UUID] = []

    @outbox.handler("things")
    async def handler(batch: Batch) -> None:
        seen.extend(ids(batch))

    mine, other = put(outbox.store), put(outbox.store, "others")
    assert sorted(ids(deliver_all(outbox))) == sorted([mine, other])
    assert seen == [mine]


def test_an_async_handler_is_awaited_also_where_a_loop_is_running(outbox: Outbox) -> None:
    entry_id = put(outbox.store)

    async def handler(batch: Batch) -> None: ...

    async def test_of_a_user() -> list[UUID]:
        return ids(deliver_all(outbox, handler))

    assert asyncio.run(test_of_a_user()) == [entry_id]


def test_a_handler_that_raises_retry_spends_an_attempt(outbox: Outbox) -> None:
    entry_id = put(outbox.store)

    def handler(batch: Batch) -> None:
        raise Retry("busy", after=30)

    assert deliver_all(outbox, handler) == []
    standing = outbox.store.standing(entry_id)
    assert (standing.state, standing.attempt_count, standing.last_error_message) == (State.PENDING, 1, "busy")


def test_of_several_entries_only_the_one_that_the_handler_rejects_is_dead(outbox: Outbox) -> None:
    good, bad, other = put_run(outbox.store, 3)

    def handler(batch: Batch) -> None:
        if bad in ids(batch):
            raise Reject("no")

    assert sorted(ids(deliver_all(outbox, handler))) == sorted([good, other])
    assert states(outbox.store, [good, bad, other]) == [State.DELIVERED, State.DEAD, State.DELIVERED]
