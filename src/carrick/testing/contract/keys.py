"""Keys: G6, the same key with the same content is one entry."""

from __future__ import annotations

import pytest

from carrick.entry import NewEntry, Outcome, State
from carrick.errors import KeyReused
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import DAY, claim, declare, ids, put, sample

OTHER_CONTENT = [
    sample(key="k", payload=b'{"n":2}'),
    sample(key="k", event_type="thing.unhappened"),
    sample(key="k", group_key="g"),
    sample(key="k", principal="p"),
]


class KeyContract:
    """G6 Once put."""

    def test_the_same_key_and_content_is_one_entry(self, store: Store) -> None:
        declare(store)
        first = store.put(sample(key="k"))
        again = store.put(sample(key="k"))
        assert (again.id, again.created, again.state) == (first.id, False, State.PENDING)
        assert ids(claim(store)) == [first.id]

    def test_the_same_key_twice_in_one_put_many_is_one_entry(self, store: Store) -> None:
        declare(store)
        first, again, other = store.put_many([sample(key="k"), sample(key="k"), sample(key="l")])
        assert (again.id, again.created, other.created) == (first.id, False, True)
        assert ids(claim(store)) == [first.id, other.id]

    def test_put_many_recognises_a_key_that_was_put_before(self, store: Store) -> None:
        declare(store)
        first = store.put(sample(key="k"))
        again, other = store.put_many([sample(key="k"), sample()])
        assert (again.id, again.created) == (first.id, False)
        assert ids(claim(store)) == [first.id, other.id]

    def test_json_that_differs_only_in_spaces_and_order_is_the_same_content(self, store: Store) -> None:
        declare(store)
        first = store.put(sample(key="k", payload=b'{"a":1,"b":[true]}'))
        again = store.put(sample(key="k", payload=b'{ "b": [true], "a": 1 }'))
        assert (again.id, again.created) == (first.id, False)

    @pytest.mark.parametrize("other", OTHER_CONTENT, ids=["payload", "event_type", "group_key", "principal"])
    def test_the_same_key_with_other_content_is_refused_and_nothing_is_written(
        self, store: Store, other: NewEntry
    ) -> None:
        declare(store)
        first = put(store, key="k")
        with pytest.raises(KeyReused) as caught:
            store.put(other)
        assert (caught.value.channel, caught.value.tenant_id, caught.value.key) == ("things", "", "k")
        (entry,) = claim(store)
        assert (entry.id, entry.payload, entry.event_type) == (first, b'{"n":1}', "thing.happened")

    @pytest.mark.parametrize("payload", [rb'"\u0000"', rb'"\ud800"', b"1e400000"], ids=["nul", "surrogate", "huge"])
    def test_payloads_that_a_database_cannot_compare_are_compared_as_text(self, store: Store, payload: bytes) -> None:
        declare(store)
        first = store.put(sample(key="k", payload=payload))
        assert store.put(sample(key="k", payload=payload)).id == first.id
        with pytest.raises(KeyReused):
            store.put(sample(key="k", payload=b"[%s]" % payload))

    def test_the_same_key_of_another_tenant_or_channel_is_another_entry(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        answers = [
            store.put(sample(key="k")),
            store.put(sample(key="k", tenant_id="t", payload=b"2")),
            store.put(sample("others", key="k", payload=b"3")),
        ]
        assert all(answer.created for answer in answers)
        assert len({answer.id for answer in answers}) == 3

    def test_entries_without_a_key_are_never_the_same(self, store: Store) -> None:
        declare(store)
        assert put(store) != put(store)

    @pytest.mark.parametrize("key", ["%", "_", "\\", "'", "K", "\uff4b", "k "])
    def test_a_key_matches_only_itself(self, store: Store, key: str) -> None:
        declare(store)
        put(store, key="k")
        assert store.put(sample(key=key, payload=b"2")).created
        assert store.put(sample(key="kk", payload=b"3")).created
        assert not store.put(sample(key=key, payload=b"2")).created

    def test_a_key_is_known_in_every_state_of_its_entry(self, store: Store) -> None:
        declare(store)
        first = put(store, key="k")
        batch = claim(store)
        assert store.put(sample(key="k")).state is State.CLAIMED
        store.finish(batch.token, {first: Outcome.rejected("no")})
        answer = store.put(sample(key="k"))
        assert (answer.id, answer.created, answer.state) == (first, False, State.DEAD)
        put(store, key="l")
        store.finish_all(claim(store).token)
        assert store.put(sample(key="l")).state is State.DELIVERED
        assert not claim(store)

    def test_a_key_is_free_again_when_its_entry_was_pruned(self, store: Store, clock: Clock) -> None:
        declare(store, retention_days=1)
        put(store, key="k")
        store.finish_all(claim(store).token)
        clock.shift(1.1 * DAY)
        assert store.prune("things") == 1
        assert store.put(sample(key="k", payload=b"2")).created

    @pytest.mark.parametrize("payload", [b'{"n":1}', rb'"\u0000"', rb'"\ud800"', b"1e400000"])
    def test_a_remembered_key_outlives_its_entry(self, store: Store, clock: Clock, payload: bytes) -> None:
        declare(store, retention_days=1, remember_keys_days=3)
        first = put(store, key="k", payload=payload)
        store.finish_all(claim(store).token)
        clock.shift(1.1 * DAY)
        assert store.prune("things") == 1
        again = store.put(sample(key="k", payload=payload))
        assert (again.id, again.created, again.state) == (first, False, State.DELIVERED)
        with pytest.raises(KeyReused):
            store.put(sample(key="k", payload=b"2"))
        clock.shift(3.1 * DAY)
        assert store.put(sample(key="k", payload=b"2")).created
