"""Putting entries: G1 (all or nothing) and what arrives is what was put."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from carrick.entry import State
from carrick.errors import ChannelConflict, EntryNotFound, KeyReused, PayloadTooLarge, StoreError, UnknownChannel
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.samples import claim, declare, ids, put, put_run, sample

PAYLOADS = [
    b'{"name":"J\xc3\xb6rg \xf0\x9f\x91\x8b"}',
    rb'{"nul":"a\u0000b"}',
    rb'{"lone":"\ud83d","pair":"\ud83d\udc4b"}',
    b'{"big":123456789012345678901234567890,"float":1.10,"exp":1E5}',
    b' { "b" : 1 ,\n\t"a" : [ ] , "b" : 2 } ',
    b'"text"',
    b"null",
    b"[]",
    b"0",
    b'"' + b"x" * 100_000 + b'"',
]


class PutContract:
    """G1 Atomic, and the way of an entry's fields from the producer to the sink."""

    def test_a_put_entry_waits_and_can_be_claimed(self, store: Store) -> None:
        declare(store)
        answer = store.put(sample())
        assert answer.created
        assert answer.state is State.PENDING
        assert ids(claim(store)) == [answer.id]

    def test_put_many_answers_in_the_order_given(self, store: Store) -> None:
        declare(store)
        answers = store.put_many([sample(payload=b"%d" % n) for n in range(20)])
        batch = claim(store)
        assert ids(batch) == [answer.id for answer in answers]
        assert [entry.payload for entry in batch] == [b"%d" % n for n in range(20)]

    def test_put_many_takes_entries_of_several_channels(self, store: Store) -> None:
        declare(store, "one")
        declare(store, "two")
        first, second = store.put_many([sample("one"), sample("two")])
        assert ids(claim(store, "one")) == [first.id]
        assert ids(claim(store, "two")) == [second.id]

    def test_put_many_of_nothing_writes_nothing(self, store: Store) -> None:
        assert store.put_many([]) == []

    def test_put_many_with_an_unknown_channel_writes_nothing(self, store: Store) -> None:
        declare(store)
        with pytest.raises(UnknownChannel):
            store.put_many([sample(), sample("nowhere"), sample()])
        assert not claim(store)

    def test_put_many_with_a_payload_that_is_too_large_writes_nothing(self, store: Store) -> None:
        declare(store, max_payload_bytes=10)
        with pytest.raises(PayloadTooLarge):
            store.put_many([sample(payload=b"1"), sample(payload=b'"0123456789"')])
        assert not claim(store)

    def test_put_many_with_a_reused_key_writes_nothing(self, store: Store) -> None:
        declare(store)
        with pytest.raises(KeyReused):
            store.put_many([sample(), sample(key="k", payload=b"1"), sample(key="k", payload=b"2")])
        assert not claim(store)

    def test_an_unknown_channel_is_refused_with_the_known_ones(self, store: Store) -> None:
        declare(store, "billing")
        declare(store, "alerts")
        with pytest.raises(UnknownChannel) as caught:
            store.put(sample("biling"))
        assert {"alerts", "billing"} <= set(caught.value.known)
        assert "alerts, billing" in str(caught.value)

    def test_a_payload_as_large_as_allowed_is_taken_and_one_byte_more_is_not(self, store: Store) -> None:
        declare(store, max_payload_bytes=10)
        put(store, payload=b'"01234567"')
        with pytest.raises(PayloadTooLarge, match="payload"):
            store.put(sample(payload=b'"012345678"'))
        assert [entry.payload for entry in claim(store)] == [b'"01234567"']

    def test_a_payload_that_is_too_large_is_refused_with_the_bytes_that_are_accepted(self, store: Store) -> None:
        declare(store, max_payload_bytes=10)
        says = r"^payload: has 11 bytes; accepted: at most 10 bytes \(max_payload_bytes of channel 'things'\)$"
        with pytest.raises(PayloadTooLarge, match=says):
            store.put(sample(payload=b'"012345678"'))
        with pytest.raises(PayloadTooLarge, match=says):
            store.put_many([sample(payload=b"1"), sample(payload=b'"012345678"')])

    @pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload[:12].decode(errors="replace"))
    def test_the_bytes_put_are_the_bytes_claimed(self, store: Store, payload: bytes) -> None:
        declare(store)
        put(store, payload=payload)
        store.put_many([sample(payload=payload), sample(payload=payload, key="k")])
        batch = claim(store)
        assert [entry.payload for entry in batch] == [payload] * 3
        assert {entry.payload_size_bytes for entry in batch} == {len(payload)}

    @pytest.mark.parametrize("bulk", [False, True], ids=["put", "put_many"])
    def test_every_field_of_an_entry_reaches_the_claim(self, store: Store, bulk: bool) -> None:
        declare(store)
        new = sample(
            event_type="invoice.paid",
            key="inv-42",
            tenant_id="tenant ü",
            group_key="g'1",
            principal='p"2',
            priority=-3,
            headers=b'{"a":"\xc3\xa4","n":[1,{"x":null}]}',
            traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            occurred_at=datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=UTC),
        )
        answer = store.put_many([new])[0] if bulk else store.put(new)
        (entry,) = claim(store)
        assert entry.id == answer.id
        assert (entry.channel, entry.event_type, entry.key) == ("things", "invoice.paid", "inv-42")
        assert (entry.tenant_id, entry.group_key, entry.principal) == ("tenant ü", "g'1", 'p"2')
        assert (entry.priority, entry.traceparent, entry.occurred_at) == (-3, new.traceparent, new.occurred_at)
        assert entry.headers == {"a": "ä", "n": [1, {"x": None}]}
        assert (entry.attempt_count, entry.crash_count, entry.intent) == (0, 0, None)

    def test_fields_that_were_not_given_are_empty(self, store: Store) -> None:
        declare(store)
        put(store)
        (entry,) = claim(store)
        assert entry.tenant_id == ""
        assert (entry.key, entry.group_key, entry.principal, entry.headers) == (None, None, None, None)
        assert (entry.priority, entry.traceparent, entry.occurred_at) == (0, None, None)

    def test_ids_are_uuid_version_7_and_sequence_numbers_grow(self, store: Store) -> None:
        declare(store)
        put(store)
        put_run(store, 3)
        put(store, key="k")
        batch = claim(store)
        assert {entry.id.version for entry in batch} == {7}
        assert len({entry.id for entry in batch}) == 5
        seqs = [entry.seq for entry in batch]
        assert seqs == sorted(set(seqs))

    def test_a_store_with_the_schema_of_this_release_says_so(self, store: Store) -> None:
        store.check_schema()

    def test_a_closed_store_cannot_be_used(self, store: Store) -> None:
        declare(store)
        store.close()
        with pytest.raises(StoreError):
            store.put(sample())
        with pytest.raises(StoreError):
            claim(store)

    def test_an_entry_that_was_never_put_is_not_found(self, store: Store) -> None:
        with pytest.raises(EntryNotFound):
            store.standing(UUID(int=7))


class DeclareContract:
    """Channels: declared once, declared again, read back."""

    def test_a_declared_channel_reads_back_as_declared(self, store: Store) -> None:
        channel = declare(
            store,
            mode=Mode.COALESCE,
            one_tenant=True,
            fair=False,
            batch_rows=7,
            batch_bytes=8,
            lease_seconds=9,
            max_attempts=10,
            backoff_base_seconds=0.25,
            backoff_cap_seconds=12.5,
            max_payload_bytes=13,
            max_backlog_bytes=14,
            retention_days=0.5,
            dead_retention_days=1.5,
            remember_keys_days=2.5,
        )
        assert store.channels()["things"] == channel

    def test_declaring_again_changes_the_options(self, store: Store) -> None:
        declare(store)
        changed = declare(store, batch_rows=3, max_attempts=1)
        assert store.channels()["things"] == changed

    def test_declaring_again_takes_options_back_to_their_defaults(self, store: Store) -> None:
        declare(store, max_backlog_bytes=100, batch_rows=3)
        plain = declare(store)
        assert store.channels()["things"] == plain

    def test_the_mode_of_a_channel_with_entries_cannot_change(self, store: Store) -> None:
        declare(store)
        put(store)
        with pytest.raises(ChannelConflict):
            declare(store, mode=Mode.ORDERED)
        batch = claim(store)
        with pytest.raises(ChannelConflict):
            declare(store, mode=Mode.ORDERED)
        assert store.channels()["things"].mode is Mode.STREAM
        store.finish_all(batch.token)
        declare(store, mode=Mode.ORDERED)
        assert store.channels()["things"].mode is Mode.ORDERED
