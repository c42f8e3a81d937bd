"""Leases: G3, every write after a claim is fenced by the token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from carrick.entry import Batch, Outcome, OutcomeKind, State
from carrick.errors import InvalidInput, InvalidToken
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import claim, declare, ids, put, put_run, sample, states

Write = Callable[[Store, Batch], object]


def finish_as(kind: OutcomeKind) -> Write:
    """A finish that gives every entry of the batch one outcome."""
    outcome = Outcome(kind=kind, after=500, code="stale", message="stale")
    return lambda store, batch: store.finish(batch.token, dict.fromkeys(ids(batch), outcome))


WRITES: dict[str, Write] = {
    "renew": lambda store, batch: store.renew(batch.token, 60),
    "note": lambda store, batch: store.note(batch.token, {"stale": True}),
    "finish_all": lambda store, batch: store.finish_all(batch.token),
    "release": lambda store, batch: store.release(batch.token),
    **{f"finish {kind}": finish_as(kind) for kind in OutcomeKind},
}
"""Every write after a claim; each answers zero or nothing when the lease has moved on."""

fenced = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())


class LeaseContract:
    """G3 Fenced."""

    @pytest.mark.parametrize("mode", list(Mode))
    @fenced
    def test_a_write_with_a_stale_token_changes_nothing_while_another_holds_the_entries(
        self, store: Store, clock: Clock, mode: Mode, write: Write
    ) -> None:
        declare(store, mode=mode)
        put_run(store, 2, group_key="g")
        stale = claim(store, lease_seconds=10)
        clock.shift(11)
        current = claim(store, owner="worker-2", max_rows=1, lease_seconds=100)
        before = [store.standing(entry_id) for entry_id in ids(stale)]
        assert write(store, stale) in (0, {})
        after = [store.standing(entry_id) for entry_id in ids(stale)]
        assert [facts(standing) for standing in after] == [facts(standing) for standing in before]
        assert set(store.finish_all(current.token).values()) == {State.DELIVERED}

    @fenced
    def test_a_lost_lease_is_told_in_the_log(
        self, store: Store, write: Write, caplog: pytest.LogCaptureFixture
    ) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        store.finish_all(batch.token)
        caplog.clear()
        write(store, batch)
        assert [record.message for record in caplog.records] == ["outbox.lease_lost"]

    def test_a_write_under_a_live_lease_is_not_told_as_lost(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        store.renew(batch.token, 10)
        store.finish(batch.token, {})
        store.finish_all(batch.token)
        assert caplog.records == []

    @fenced
    def test_a_write_with_a_stale_token_changes_nothing_after_another_delivered(
        self, store: Store, clock: Clock, write: Write
    ) -> None:
        declare(store)
        entry_id = put(store)
        stale = claim(store, lease_seconds=10)
        clock.shift(11)
        store.finish_all(claim(store).token)
        before = store.standing(entry_id)
        assert write(store, stale) in (0, {})
        assert facts(store.standing(entry_id)) == facts(before)
        assert not claim(store)

    @fenced
    def test_a_write_with_a_stale_token_changes_nothing_while_the_entry_waits_again(
        self, store: Store, clock: Clock, write: Write
    ) -> None:
        declare(store)
        entry_id = put(store)
        stale = claim(store, lease_seconds=10)
        clock.shift(11)
        assert store.release_expired("things") == 1
        before = store.standing(entry_id)
        assert write(store, stale) in (0, {})
        assert facts(store.standing(entry_id)) == facts(before)
        assert ids(claim(store)) == [entry_id]

    @fenced
    def test_a_write_with_an_unknown_token_changes_nothing(self, store: Store, write: Write) -> None:
        declare(store)
        put_run(store, 2)
        batch = claim(store)
        stranger = Batch(channel="things", token=uuid4(), lease_expires_at=None, entries=batch.entries)
        assert write(store, stranger) in (0, {})
        assert states(store, ids(batch)) == [State.CLAIMED] * 2

    @fenced
    def test_a_second_write_after_the_batch_is_finished_changes_nothing(self, store: Store, write: Write) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        store.finish_all(batch.token)
        assert write(store, batch) in (0, {})
        assert states(store, ids(batch)) == [State.DELIVERED]

    def test_finish_ignores_entries_of_another_lease(self, store: Store) -> None:
        declare(store)
        put_run(store, 2)
        mine, other = claim(store, max_rows=1), claim(store, max_rows=1)
        given = dict.fromkeys([*ids(mine), *ids(other), uuid4()], Outcome.delivered())
        assert store.finish(mine.token, given) == {ids(mine)[0]: State.DELIVERED}
        assert states(store, ids(other)) == [State.CLAIMED]

    def test_renew_says_how_many_are_held_and_moves_the_end_of_the_lease(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 3)
        batch = claim(store, lease_seconds=10)
        assert store.renew(batch.token, 1000) == 3
        expires = store.standing(ids(batch)[0]).lease_expires_at
        assert expires is not None
        assert timedelta(seconds=900) < expires - store.now() <= timedelta(seconds=1000)
        clock.shift(500)
        assert not claim(store)
        assert len(store.finish_all(batch.token)) == 3

    def test_renew_counts_only_what_is_not_finished_yet(self, store: Store) -> None:
        declare(store)
        first, _, _ = put_run(store, 3)
        batch = claim(store)
        store.finish(batch.token, {first: Outcome.delivered()})
        assert store.renew(batch.token, 60) == 2
        assert store.note(batch.token, {}) == 2
        assert store.release(batch.token) == 2

    def test_renew_can_shorten_a_lease(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        batch = claim(store, lease_seconds=1000)
        store.renew(batch.token, 10)
        clock.shift(11)
        assert ids(claim(store)) == ids(batch)

    def test_an_expired_lease_that_nobody_took_over_can_still_finish(self, store: Store, clock: Clock) -> None:
        declare(store)
        put(store)
        batch = claim(store, lease_seconds=10)
        clock.shift(11)
        assert set(store.finish_all(batch.token).values()) == {State.DELIVERED}

    def test_a_note_stays_with_the_entries_and_the_last_one_counts(self, store: Store, clock: Clock) -> None:
        declare(store, mode=Mode.COALESCE)
        put(store)
        batch = claim(store, lease_seconds=10)
        assert store.note(batch.token, {"step": 1}) == 1
        assert store.note(batch.token, {"step": [2, None, "ü"]}) == 1
        clock.shift(11)
        assert [entry.intent for entry in claim(store)] == [{"step": [2, None, "ü"]}]

    @pytest.mark.parametrize(
        "intent",
        [None, 0, "", [], {"a": {"b": [1, 2.5, True, None]}}, "\U0001f44b", 2**70, "a\x00b", "\ud800"],
        ids=ascii,
    )
    def test_an_intent_comes_back_as_it_was_noted_or_is_refused(
        self, store: Store, clock: Clock, intent: object
    ) -> None:
        declare(store, mode=Mode.COALESCE)
        put(store)
        batch = claim(store, lease_seconds=10)
        try:
            assert store.note(batch.token, intent) == 1
        except InvalidInput:
            assert states(store, ids(batch)) == [State.CLAIMED]
            return
        clock.shift(11)
        assert [entry.intent for entry in claim(store)] == [intent]

    def test_an_intent_that_is_no_json_is_refused_by_name(self, store: Store) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        for intent in (object(), float("nan"), {1, 2}):
            with pytest.raises(InvalidInput) as caught:
                store.note(batch.token, intent)
            assert caught.value.field == "intent"

    def test_release_gives_everything_back_and_spends_nothing(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 3)
        before = [store.standing(entry_id).next_attempt_at for entry_id in waiting]
        batch = claim(store)
        assert store.release(batch.token) == 3
        after = [store.standing(entry_id) for entry_id in waiting]
        assert [standing.next_attempt_at for standing in after] == before
        assert [(s.state, s.attempt_count, s.crash_count) for s in after] == [(State.PENDING, 0, 0)] * 3
        assert [s.last_attempt_at for s in after] == [None] * 3
        assert ids(claim(store)) == waiting

    def test_two_claims_under_one_token_are_finished_together(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 2)
        token = uuid4()
        claim(store, max_rows=1, token=token)
        claim(store, max_rows=1, token=token)
        assert store.renew(token, 60) == 2
        assert store.finish_all(token) == dict.fromkeys(waiting, State.DELIVERED)

    def test_a_token_that_is_no_uuid_is_refused(self, store: Store) -> None:
        declare(store)
        bad: UUID = "not-a-uuid"  # type: ignore[assignment]
        operations: list[Callable[[], object]] = [
            lambda: claim(store, token=bad),
            lambda: store.renew(bad, 10),
            lambda: store.note(bad, 1),
            lambda: store.finish(bad, {}),
            lambda: store.finish_all(bad),
            lambda: store.release(bad),
        ]
        for operation in operations:
            with pytest.raises(InvalidToken, match="not-a-uuid"):
                operation()

    @pytest.mark.parametrize("seconds", [0, -1, 86_401, 10**15])
    def test_a_lease_cannot_be_renewed_for_an_absurd_time(self, store: Store, seconds: int) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        with pytest.raises(InvalidInput):
            store.renew(batch.token, seconds)
        assert states(store, ids(batch)) == [State.CLAIMED]

    def test_a_put_of_the_same_key_does_not_disturb_a_lease(self, store: Store) -> None:
        declare(store)
        put(store, key="k")
        batch = claim(store)
        store.put(sample(key="k"))
        assert len(store.finish_all(batch.token)) == 1


def facts(standing: object) -> dict[str, object]:
    """A standing without the moment it was looked at."""
    return {name: getattr(standing, name) for name in standing.__struct_fields__ if name != "now"}  # type: ignore[attr-defined]
