"""Puts in the caller's own transaction: G1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from carrick.errors import EntryNotFound, KeyReused, UnknownChannel
from carrick.outbox.outbox import Outbox
from carrick.testing.samples import claim, declare, ids

Connect = Callable[[], Any]


class CallerContract:
    """G1 Atomic: an entry exists exactly when the caller's transaction committed.

    Needs two fixtures more: `outbox`, an Outbox over the store; `connect`, which opens a connection that begins a
    transaction by itself and has `execute`, `commit`, `rollback` and `close`.
    """

    @pytest.fixture
    def caller(self, outbox: Outbox, connect: Connect) -> Iterator[Any]:
        """The connection of an application that has a table of its own."""
        declare(outbox.store)
        with closing(connect()) as connection:
            connection.execute("create table invoice (number int)")
            connection.commit()
            yield connection
            connection.rollback()
            connection.execute("drop table invoice")
            connection.commit()

    def test_an_entry_exists_when_the_callers_transaction_committed(self, outbox: Outbox, caller: Any) -> None:
        caller.execute("insert into invoice values (1)")
        answer = outbox.put(caller, channel="things", event_type="e", payload=1)
        caller.commit()
        assert ids(claim(outbox.store)) == [answer.id]
        assert caller.execute("select number from invoice").fetchall() == [(1,)]

    def test_an_entry_does_not_exist_before_the_commit(self, outbox: Outbox, caller: Any) -> None:
        answer = outbox.put(caller, channel="things", event_type="e", payload=1)
        with pytest.raises(EntryNotFound):
            outbox.store.standing(answer.id)
        caller.commit()
        assert outbox.store.standing(answer.id).id == answer.id

    @pytest.mark.parametrize("key", [None, "k"])
    def test_an_entry_never_exists_when_the_caller_rolled_back(
        self, outbox: Outbox, caller: Any, key: str | None
    ) -> None:
        caller.execute("insert into invoice values (1)")
        answer = outbox.put(caller, channel="things", event_type="e", payload=1, key=key)
        outbox.put_many(caller, [{"channel": "things", "event_type": "e", "payload": 1}] * 3)
        caller.rollback()
        assert not claim(outbox.store)
        with pytest.raises(EntryNotFound):
            outbox.store.standing(answer.id)
        assert outbox.put(channel="things", event_type="e", payload=2, key=key).created

    def test_put_many_commits_with_the_caller(self, outbox: Outbox, caller: Any) -> None:
        answers = outbox.put_many(caller, [{"channel": "things", "event_type": "e", "payload": n} for n in range(5)])
        caller.commit()
        assert ids(claim(outbox.store)) == [answer.id for answer in answers]

    def test_a_refused_put_leaves_the_callers_transaction_usable(self, outbox: Outbox, caller: Any) -> None:
        caller.execute("insert into invoice values (1)")
        kept = outbox.put(caller, channel="things", event_type="e", payload=1, key="k")
        with pytest.raises(KeyReused):
            outbox.put(caller, channel="things", event_type="e", payload=2, key="k")
        with pytest.raises(UnknownChannel):
            outbox.put(caller, channel="nowhere", event_type="e", payload=2)
        many = [{"channel": "things", "event_type": "e", "payload": 9, "key": key} for key in ("l", "k")]
        with pytest.raises(KeyReused):
            outbox.put_many(caller, many)
        caller.execute("insert into invoice values (2)")
        caller.commit()
        assert ids(claim(outbox.store)) == [kept.id]
        assert sorted(caller.execute("select number from invoice").fetchall()) == [(1,), (2,)]
