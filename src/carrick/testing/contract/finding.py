"""Finding entries by what they are called, and what dead ones died of."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from carrick.entry import Outcome, State
from carrick.errors import InvalidInput, UnknownChannel
from carrick.outbox import finding
from carrick.outbox.dead import discard_all
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.contract.listing import entries_in, listed
from carrick.testing.samples import claim, declare, finish_each, put, put_run, sample

BACKWARDS = (State.DELIVERED, State.DEAD, State.CLAIMED, State.PENDING)


class FindContract:
    """Finding entries by id, key, group and tenant."""

    def test_an_entry_is_found_by_its_id_and_by_its_key_in_every_state(self, store: Store) -> None:
        declare(store)
        for state in BACKWARDS:
            (entry_id,) = entries_in(store, state, 1, key=f"k-{state}", tenant_id="mill")
            for text in (str(entry_id), str(entry_id).upper(), f"k-{state}"):
                found = store.find(text)
                assert [(line.id, line.state) for line in found.lines] == [(entry_id, state)]
                assert (found.cut, found.tenants_unseen, found.ended_unseen) == (False, False, False)

    @pytest.mark.parametrize("name", ["tenant_id", "group_key"])
    def test_a_tenant_and_a_group_are_found_with_all_their_entries_what_waits_first(
        self, store: Store, name: str
    ) -> None:
        declare(store)
        made = {state: entries_in(store, state, 1, **{name: "mill"})[0] for state in BACKWARDS}
        put(store, **{name: "barn"})
        declare(store, "others")
        elsewhere = put(store, "others", **{name: "mill"})
        found = {line.id: line.state for line in store.find("mill").lines}
        assert found == {entry_id: state for state, entry_id in made.items()} | {elsewhere: State.PENDING}
        assert list(found.values())[-3:] == [State.CLAIMED, State.DEAD, State.DELIVERED]

    def test_one_text_may_name_several_things_and_a_tenant_narrows_it(self, store: Store) -> None:
        declare(store)
        by_key = put(store, key="7", tenant_id="a")
        by_group = put(store, group_key="7", tenant_id="b")
        by_tenant = put(store, tenant_id="7")
        assert [line.id for line in store.find("7").lines] == [by_key, by_group, by_tenant]
        assert [line.id for line in store.find("7", tenant="b").lines] == [by_group, by_tenant]

    def test_more_than_asked_for_is_said(self, store: Store) -> None:
        declare(store)
        put_run(store, 3, tenant_id="mill")
        found = store.find("mill", max_rows=2)
        assert (len(found.lines), found.cut) == (2, True)
        assert not store.find("mill", max_rows=3).cut

    def test_where_the_look_ends_is_said_and_a_tenant_leads_behind_it(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(finding, "MOST_PAIRS", 2)
        declare(store)
        for tenant in ("a", "b", "c"):
            put(store, key="k", tenant_id=tenant)
        found = store.find("k")
        assert ([line.tenant_id for line in found.lines], found.tenants_unseen) == (["a", "b"], True)
        found = store.find("k", tenant="c")
        assert ([line.tenant_id for line in found.lines], found.tenants_unseen) == (["c"], False)

    @pytest.mark.parametrize("state", [State.DEAD, State.DELIVERED])
    def test_of_what_has_ended_the_newest_are_looked_at(
        self, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, state: State
    ) -> None:
        monkeypatch.setattr(finding, "LOOK_ROWS", 4)
        monkeypatch.setattr(finding, "LEAST_ROWS", 2)
        declare(store)
        for tenant in ("old", "new", "new"):
            entries_in(store, state, 1, tenant_id=tenant)
            clock.shift(1)
        assert (store.find("old").lines, store.find("old").ended_unseen) == ((), True)
        assert (len(store.find("new").lines), store.find("new").ended_unseen) == (2, True)

    def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        declare(store)
        put(store, key="k", group_key="g", tenant_id="t")
        for text in ("nothing", str(uuid4()), "'; drop table", "%"):
            assert store.find(text).lines == ()

    def test_what_names_nothing_is_refused(self, store: Store) -> None:
        for text in ("", "x" * 256, "a\x00", "\ud800"):
            with pytest.raises(InvalidInput, match="text"):
                store.find(text)
        with pytest.raises(InvalidInput, match="tenant"):
            store.find("a", tenant="\x00")
        for rows in (0, 201):
            with pytest.raises(InvalidInput, match="max_rows"):
                store.find("a", max_rows=rows)


class DeadContract:
    """What dead entries died of, and removing many of them."""

    def test_dead_entries_are_counted_by_what_they_died_of(self, store: Store, clock: Clock) -> None:
        declare(store)
        store.put_many([sample(), sample(), sample()])
        finish_each(store, claim(store, max_rows=1), Outcome.rejected(code="http_422"))
        clock.shift(60)
        finish_each(store, claim(store), Outcome.rejected(code="http_413"))
        most, least = store.dead("things")
        assert (most.reason, most.error_code, most.count) == ("rejected", "http_413", 2)
        assert (least.error_code, least.count) == ("http_422", 1)
        assert most.first_at - least.last_at >= timedelta(seconds=59)
        assert store.dead("things", reason="evicted") == []
        with pytest.raises(UnknownChannel):
            store.dead("nowhere")

    def test_all_dead_entries_go_the_oldest_first_and_nothing_else(self, store: Store) -> None:
        declare(store, remember_keys_days=1)
        kept = [entry_id for state in BACKWARDS if state != State.DEAD for entry_id in entries_in(store, state, 1)]
        claim(store)
        first, *others = entries_in(store, State.DEAD, 3)
        assert store.discard_all("things", reason="evicted") == 0
        assert store.discard_all("things", max_rows=1) == 1
        assert first not in listed(store)
        assert store.discard_all("things", reason="rejected") == len(others)
        assert sorted(listed(store)) == sorted(kept)
        with pytest.raises(UnknownChannel):
            store.discard_all("nowhere")
        with pytest.raises(InvalidInput):
            store.discard_all("things", max_rows=0)

    def test_what_died_after_somebody_looked_stays(self, store: Store, clock: Clock) -> None:
        declare(store)
        entries_in(store, State.DEAD, 2)
        looked = store.now()
        clock.shift(1)
        (later,) = entries_in(store, State.DEAD, 1)
        assert discard_all(store, "things", died_by=looked) == (2, False)
        assert listed(store) == [later]

    def test_many_go_transaction_by_transaction_until_the_limit_or_the_time_is_up(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("carrick.outbox.dead.MOST_DISCARDED", 2)
        declare(store)
        entries_in(store, State.DEAD, 9)
        assert discard_all(store, "things", limit=3) == (3, False)
        assert discard_all(store, "things", seconds=0) == (2, True)
        assert discard_all(store, "things", seconds=60) == (4, False)

    @pytest.mark.parametrize("limit", [0, -1, 2**31])
    def test_a_limit_that_is_none_removes_nothing(self, store: Store, limit: int) -> None:
        declare(store)
        kept = entries_in(store, State.DEAD, 1)
        with pytest.raises(InvalidInput, match=f"^limit: {limit} is out of range"):
            discard_all(store, "things", limit=limit)
        assert listed(store) == kept
