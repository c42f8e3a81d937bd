"""Requests with a key of their own: done once, answered the same way again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from carrick.errors import InvalidInput, KeyReused, RequestReused, UnknownChannel
from carrick.outbox.producing import new_entry
from carrick.outbox.store import RECEIPT_DAYS, Store
from carrick.testing.clock import Clock
from carrick.testing.samples import DAY, claim, declare, ids, sample

BODY, OTHER = b"1" * 32, b"2" * 32


class ReceiptContract:
    """Idempotent requests."""

    def test_the_same_request_answers_the_same_ids_and_puts_once(self, store: Store) -> None:
        declare(store)
        first = store.put_once("k", BODY, [sample(), sample()])
        assert list(store.put_once("k", BODY, [sample(), sample()])) == list(first)
        assert ids(claim(store)) == list(first)

    def test_another_body_under_the_same_key_is_refused_and_nothing_is_written(self, store: Store) -> None:
        declare(store)
        first = store.put_once("k", BODY, [sample()])
        with pytest.raises(RequestReused) as caught:
            store.put_once("k", OTHER, [sample(), sample()])
        assert caught.value.key == "k"
        assert ids(claim(store)) == list(first)

    def test_a_request_that_failed_may_come_again(self, store: Store) -> None:
        declare(store)
        with pytest.raises(UnknownChannel):
            store.put_once("k", BODY, [sample(), sample("nowhere")])
        store.put(sample(key="taken", payload=b"1"))
        with pytest.raises(KeyReused):
            store.put_once("k", BODY, [sample(), sample(key="taken", payload=b"2")])
        assert len(store.put_once("k", OTHER, [sample()])) == 1
        assert len(claim(store)) == 2

    def test_many_copies_at_once_have_one_effect_and_one_answer(self, store: Store) -> None:
        declare(store)
        with ThreadPoolExecutor(8) as threads:
            answers = [threads.submit(store.put_once, "k", BODY, [sample(), sample()]) for _ in range(20)]
            known = {tuple(answer.result()) for answer in answers}
        assert len(known) == 1
        assert len(claim(store)) == 2

    def test_a_key_is_forgotten_after_its_time(self, store: Store, clock: Clock) -> None:
        declare(store)
        store.put_once("k", BODY, [sample()])
        clock.shift((RECEIPT_DAYS - 1) * DAY)
        store.prune("things")
        with pytest.raises(RequestReused):
            store.put_once("k", OTHER, [sample()])
        clock.shift(2 * DAY)
        store.prune("things")
        assert len(store.put_once("k", OTHER, [sample()])) == 1


class GivenIdContract:
    """Entries whose producer gives the id."""

    def test_an_entry_has_the_id_that_it_was_given(self, store: Store) -> None:
        declare(store)
        given = new_entry(channel="things", event_type="e", payload=1, id=uuid4())
        assert store.put(given).id == given.id
        many = [new_entry(channel="things", event_type="e", payload=n, id=uuid4()) for n in range(3)]
        assert [put.id for put in store.put_many(many)] == [entry.id for entry in many]
        assert ids(claim(store)) == [given.id, *(entry.id for entry in many)]

    def test_the_same_id_again_is_the_same_entry(self, store: Store) -> None:
        declare(store)
        given = new_entry(channel="things", event_type="e", payload=1, id=uuid4())
        assert [store.put(given).created, store.put(given).created] == [True, False]
        with pytest.raises(KeyReused):
            store.put(new_entry(channel="things", event_type="e", payload=2, id=given.id))
        assert len(claim(store)) == 1

    def test_the_id_of_an_entry_with_another_key_is_refused(self, store: Store) -> None:
        declare(store)
        given = new_entry(channel="things", event_type="e", payload=1, id=uuid4(), key="one")
        store.put(given)
        other = new_entry(channel="things", event_type="e", payload=1, id=given.id, key="two")
        for again in (lambda: store.put(other), lambda: store.put_many([sample(), other])):
            with pytest.raises(InvalidInput) as caught:
                again()
            assert caught.value.field == "id"
        assert len(claim(store)) == 1
