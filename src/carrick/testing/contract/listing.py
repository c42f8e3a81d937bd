"""Lists of entries, page by page; and removing dead ones by name."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from carrick.entry import Line, Outcome, State
from carrick.errors import InvalidInput, KeyReused, UnknownChannel
from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import OWNER, claim, declare, finish_each, ids, put, put_run, states

BACKWARDS = (State.DELIVERED, State.DEAD, State.CLAIMED, State.PENDING)
"""So that entries made for one state do not move on when the next are made."""
STATES = pytest.mark.parametrize("state", [*State, None])


def pages(store: Store, *, max_rows: int = 2, **filters: Any) -> list[list[Line]]:
    """All pages of a list, one after the other."""
    found = []
    after = None
    while True:
        page = store.entries("things", max_rows=max_rows, after=after, **filters)
        found.append(list(page.lines))
        assert len(page.lines) <= max_rows
        after = page.next
        if after is None:
            return found


def listed(store: Store, **filters: Any) -> list[UUID]:
    """The ids in a whole list."""
    return [line.id for page in pages(store, **filters) for line in page]


def entries_in(store: Store, state: State, count: int, **fields: Any) -> list[UUID]:
    """Entries that are in that state, in the order in which they came there."""
    made = put_run(store, count, **fields)
    outcomes = {State.DELIVERED: Outcome.delivered(), State.DEAD: Outcome.rejected("no")}
    if state is not State.PENDING:
        batch = claim(store, max_rows=count, lease_seconds=1000)
        assert set(ids(batch)) == set(made)
        if state in outcomes:
            finish_each(store, batch, outcomes[state])
    return made


class ListingContract:
    """Entries page by page."""

    @STATES
    def test_an_empty_channel_has_one_empty_page(self, store: Store, state: State | None) -> None:
        declare(store)
        assert pages(store, state=state) == [[]]

    @pytest.mark.parametrize("state", list(State))
    def test_the_pages_together_are_the_entries_of_a_state(self, store: Store, state: State) -> None:
        declare(store)
        declare(store, "others")
        put(store, "others")
        for other in BACKWARDS:
            made = entries_in(store, other, 5)
            if other is state:
                wanted = made
        assert listed(store, state=state) == wanted
        assert [len(page) for page in pages(store, state=state)] == [2, 2, 1]

    @pytest.mark.parametrize("max_rows", [1, 2, 3, 5, 8, 100])
    def test_without_a_state_the_pages_together_are_all_entries(self, store: Store, max_rows: int) -> None:
        declare(store)
        made = {state: entries_in(store, state, 2) for state in BACKWARDS}
        wanted = [*made[State.PENDING], *made[State.CLAIMED], *made[State.DEAD], *made[State.DELIVERED]]
        assert listed(store, max_rows=max_rows) == wanted

    @STATES
    def test_a_tenant_narrows_a_list(self, store: Store, state: State | None) -> None:
        declare(store)
        wanted = []
        for each in BACKWARDS:
            for tenant in ("a", "b", "c"):
                made = entries_in(store, each, 3, tenant_id=tenant)
                wanted += made if tenant == "b" and state in (None, each) else []
        assert set(listed(store, state=state, tenant="b")) == set(wanted)
        assert len(listed(store, state=state, tenant="b")) == len(wanted)
        assert listed(store, state=state, tenant="nobody") == []

    def test_waiting_entries_come_oldest_first_whoever_they_are_of(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        first = put(store, tenant_id="b", delay_seconds=60)
        put(store, "others")
        rest = [put(store, tenant_id="b"), put(store, tenant_id="a", priority=1), put(store)]
        assert listed(store, state=State.PENDING) == [first, *rest]

    def test_ended_entries_come_in_the_order_in_which_they_ended(self, store: Store, clock: Clock) -> None:
        declare(store)
        batches = [claim(store) for _ in range(3) if put(store)]
        for batch in reversed(batches):
            clock.shift(1)
            store.finish_all(batch.token)
        assert listed(store, state=State.DELIVERED) == [ids(batch)[0] for batch in reversed(batches)]

    def test_an_entry_that_moves_on_between_two_pages_is_not_missed(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 4)
        first = store.entries("things", max_rows=2)
        store.finish_all(claim(store).token)
        seen = [line.id for line in first.lines]
        after = first.next
        while after is not None:
            page = store.entries("things", max_rows=2, after=after)
            seen += [line.id for line in page.lines]
            after = page.next
        assert set(seen) == set(waiting)

    def test_entries_put_meanwhile_do_not_move_the_pages(self, store: Store) -> None:
        declare(store)
        waiting = put_run(store, 4)
        first = store.entries("things", state=State.PENDING, max_rows=2)
        put(store, priority=5)
        second = store.entries("things", state=State.PENDING, max_rows=2, after=first.next)
        assert [line.id for line in (*first.lines, *second.lines)] == waiting

    def test_a_rare_tenant_is_found_among_many_ended_entries(self, store: Store) -> None:
        declare(store)
        for _ in range(6):
            entries_in(store, State.DELIVERED, 1000, tenant_id="common")
        (rare,) = entries_in(store, State.DELIVERED, 1, tenant_id="rare")
        assert listed(store, state=State.DELIVERED, tenant="rare") == [rare]

    def test_a_line_tells_where_an_entry_is(self, store: Store) -> None:
        declare(store)
        put(
            store, tenant_id="t", principal="p", group_key="g", event_type="e", key="k", payload=b'"12345"', priority=3,
            occurred_at=store.now(),
        )  # fmt: skip
        finish_each(store, claim(store), Outcome.retry(after=1000, code="E500", message="try later"))
        (line,) = store.entries("things").lines
        standing = store.standing(line.id)
        assert (line.channel, line.tenant_id, line.principal, line.group_key) == ("things", "t", "p", "g")
        assert (line.event_type, line.key, line.payload_size_bytes, line.priority) == ("e", "k", 7, 3)
        assert line.occurred_at is not None
        assert (line.last_error_code, line.last_error_message, line.attempt_count) == ("E500", "try later", 1)
        for field in ("state", "created_at", "next_attempt_at", "last_attempt_at", "crash_count"):
            assert getattr(line, field) == getattr(standing, field)

    def test_a_claimed_line_tells_who_has_it_and_until_when(self, store: Store) -> None:
        declare(store)
        put(store)
        batch = claim(store)
        (line,) = store.entries("things").lines
        assert (line.state, line.claimed_by, line.lease_expires_at) == (State.CLAIMED, OWNER, batch.lease_expires_at)

    @pytest.mark.parametrize("outcome", [Outcome.delivered(), Outcome.rejected("no", code="E422")])
    def test_an_ended_line_tells_when_and_why(self, store: Store, outcome: Outcome) -> None:
        declare(store)
        put(store)
        finish_each(store, claim(store), outcome)
        (line,) = store.entries("things").lines
        standing = store.standing(line.id)
        for field in ("state", "delivered_at", "failed_at", "dlq_reason", "last_attempt_at", "last_error_code"):
            assert getattr(line, field) == getattr(standing, field)

    @pytest.mark.parametrize("cursor", ["", "x", "!!!", "bnVsbA", "ünïcode", "W10", "\x00"])
    def test_what_is_no_cursor_is_refused_by_name(self, store: Store, cursor: str) -> None:
        declare(store)
        with pytest.raises(InvalidInput, match="accepted: None, or the `next` of a page") as caught:
            store.entries("things", after=cursor)
        assert caught.value.field == "after"

    @pytest.mark.parametrize(
        "other", [{"channel": "others"}, {"state": State.CLAIMED}, {"tenant": "t"}, {"state": State.PENDING}], ids=str
    )
    def test_a_cursor_of_another_list_is_refused(self, store: Store, other: dict[str, Any]) -> None:
        declare(store)
        declare(store, "others")
        put_run(store, 2)
        after = store.entries("things", max_rows=1).next
        with pytest.raises(InvalidInput) as caught:
            store.entries(**{"channel": "things", "after": after, **other})
        assert caught.value.field == "after"

    @pytest.mark.parametrize("max_rows", [0, -1, 1001, True, 1.5])
    def test_an_absurd_size_of_a_page_is_refused_by_name(self, store: Store, max_rows: int) -> None:
        declare(store)
        with pytest.raises(InvalidInput) as caught:
            store.entries("things", max_rows=max_rows)
        assert caught.value.field == "max_rows"

    def test_an_unknown_channel_has_no_list(self, store: Store) -> None:
        declare(store)
        with pytest.raises(UnknownChannel):
            store.entries("nowhere")


class DiscardContract:
    """Removing dead entries by name."""

    def test_dead_entries_are_removed_for_good(self, store: Store) -> None:
        declare(store)
        first, second = entries_in(store, State.DEAD, 2)
        assert store.discard("things", [first]) == 1
        assert listed(store) == [second]
        assert store.discard("things", [first]) == 0
        assert store.redrive("things", ids=[first]) == 0

    def test_entries_in_other_states_and_channels_stay(self, store: Store) -> None:
        declare(store)
        declare(store, "others")
        put(store, "others")
        elsewhere = claim(store, "others")
        finish_each(store, elsewhere, Outcome.rejected())
        kept = [*ids(elsewhere)]
        for state in (State.DELIVERED, State.CLAIMED, State.PENDING):
            kept += entries_in(store, state, 1)
        before = states(store, kept)
        assert store.discard("things", [*kept, uuid4()]) == 0
        assert states(store, kept) == before

    def test_a_key_is_remembered_where_the_channel_says_so(self, store: Store) -> None:
        declare(store, remember_keys_days=1)
        (entry_id,) = entries_in(store, State.DEAD, 1, key="k")
        store.discard("things", [entry_id])
        with pytest.raises(KeyReused):
            put(store, key="k", payload=b"2")

    def test_a_key_is_free_again_otherwise(self, store: Store) -> None:
        declare(store)
        (entry_id,) = entries_in(store, State.DEAD, 1, key="k")
        store.discard("things", [entry_id])
        assert put(store, key="k", payload=b"2") != entry_id

    @pytest.mark.parametrize("mode", list(Mode))
    def test_naming_an_entry_twice_removes_it_once(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        (entry_id,) = entries_in(store, State.DEAD, 1)
        assert store.discard("things", [entry_id, entry_id]) == 1
        assert store.discard("things", []) == 0

    def test_an_unknown_channel_is_refused(self, store: Store) -> None:
        declare(store)
        with pytest.raises(UnknownChannel):
            store.discard("nowhere", [uuid4()])
