"""Fairness between tenants: G8."""

from __future__ import annotations

from uuid import UUID

import pytest

from carrick.outbox.channel import Mode
from carrick.outbox.store import Store
from carrick.testing.clock import Clock
from carrick.testing.samples import claim, declare, ids, put, put_run

BUSY = 1000


class FairnessContract:
    """G8 Fair: with k tenants waiting, a tenant's head entry is claimed within k claims."""

    @pytest.mark.parametrize("mode", list(Mode))
    def test_each_of_k_tenants_is_served_within_k_claims_of_one_row(self, store: Store, mode: Mode) -> None:
        declare(store, mode=mode)
        tenants = ["", "a", "b", "c", "zz"]
        for tenant in tenants:
            put_run(store, 3, tenant_id=tenant)
        for _ in range(3):
            served = [claim(store, max_rows=1).entries[0].tenant_id for _ in tenants]
            assert sorted(served) == tenants

    @pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
    @pytest.mark.parametrize("hidden", [0, 5, 30])
    def test_a_tenant_is_not_passed_over_when_bytes_are_short(self, store: Store, mode: Mode, hidden: int) -> None:
        """Neither for older entries of another, nor when its own oldest wait behind the head of their group."""
        declare(store, mode=mode)
        put_run(store, 3, tenant_id="a", payload=b"1")
        put(store, group_key="g", delay_seconds=60, payload=b"1")
        put_run(store, hidden, group_key="g", payload=b"1")
        put_run(store, 3, payload=b"1")
        served = []
        for _ in range(4):
            batch = claim(store, max_rows=2, max_bytes=1)
            served += [entry.tenant_id for entry in batch]
            store.release(batch.token)
        assert sorted(served[:2]) == sorted(served[2:]) == ["", "a"]

    def test_tenants_take_turns_in_a_one_tenant_channel(self, store: Store) -> None:
        declare(store, one_tenant=True)
        for tenant in ("", "a", "b"):
            put_run(store, 6, tenant_id=tenant)
        served = [{entry.tenant_id for entry in claim(store, max_rows=2)} for _ in range(6)]
        assert served[:3] == served[3:]
        assert sorted(tenant for (tenant,) in served[:3]) == ["", "a", "b"]

    @pytest.mark.parametrize("busy", ["", "a", "m", "z"])
    def test_a_quiet_tenant_does_not_wait_for_a_busy_one(self, store: Store, busy: str) -> None:
        declare(store)
        put_run(store, BUSY, tenant_id=busy)
        for _ in range(3):
            claim(store, max_rows=10)
        quiet = put(store, tenant_id="q")
        assert quiet in ids(claim(store, max_rows=1)) + ids(claim(store, max_rows=1))

    def test_a_quiet_tenant_is_in_the_next_batch_of_a_busy_one(self, store: Store) -> None:
        declare(store)
        put_run(store, BUSY, tenant_id="busy")
        claim(store, max_rows=100)
        quiet = put(store, tenant_id="quiet")
        batch = ids(claim(store, max_rows=100))
        assert quiet in batch
        assert len(batch) == 100

    @pytest.mark.parametrize("arrives", ["", "a", "d", "x"])
    def test_a_tenant_that_arrives_in_the_middle_is_served_within_k_claims(self, store: Store, arrives: str) -> None:
        declare(store)
        for tenant in ("b", "c", "e"):
            put_run(store, 10, tenant_id=tenant)
        for _ in range(2):
            claim(store, max_rows=1)
        late = put(store, tenant_id=arrives)
        served = [claim(store, max_rows=1).entries[0].id for _ in range(4)]
        assert late in served

    def test_a_tenant_with_nothing_due_costs_the_others_no_turn(self, store: Store) -> None:
        declare(store)
        for tenant in "abc":
            put_run(store, 3, tenant_id=tenant, delay_seconds=3600)
        for tenant in "de":
            put_run(store, 3, tenant_id=tenant)
        served = [claim(store, max_rows=1).entries[0].tenant_id for _ in range(6)]
        assert sorted(served[:2]) == sorted(served[2:4]) == sorted(served[4:]) == ["d", "e"]

    @pytest.mark.parametrize("mode", list(Mode))
    def test_a_byte_limit_that_only_one_tenant_fits_in_does_not_starve_the_others(
        self, store: Store, mode: Mode
    ) -> None:
        declare(store, mode=mode)
        for tenant in "abc":
            put_run(store, 3, tenant_id=tenant, payload=b'"01234567"')
        for _ in range(3):
            served = [entry.tenant_id for _ in range(3) for entry in claim(store, max_rows=10, max_bytes=10)]
            assert sorted(served) == ["a", "b", "c"]

    def test_many_tenants_share_a_batch_evenly(self, store: Store) -> None:
        declare(store)
        put_run(store, 50, tenant_id="busy")
        for tenant in "abcd":
            put_run(store, 5, tenant_id=tenant)
        counts = dict.fromkeys(["busy", *"abcd"], 0)
        for entry in claim(store, max_rows=10):
            counts[entry.tenant_id] += 1
        assert counts == dict.fromkeys(["busy", *"abcd"], 2)

    def test_what_some_tenants_leave_over_goes_to_the_others(self, store: Store) -> None:
        declare(store)
        put_run(store, 50, tenant_id="busy")
        put(store, tenant_id="a")
        put(store, tenant_id="b")
        batch = claim(store, max_rows=12)
        assert len(batch) == 12
        assert {entry.tenant_id for entry in batch} == {"a", "b", "busy"}

    def test_more_tenants_than_rows_are_all_served_in_one_round(self, store: Store) -> None:
        declare(store)
        for n in range(60):
            put_run(store, 2, tenant_id=f"t{n:02}")
        served = [entry.tenant_id for _ in range(6) for entry in claim(store, max_rows=10)]
        assert sorted(served) == [f"t{n:02}" for n in range(60)]

    def test_entries_of_a_dead_worker_do_not_take_the_turns_of_other_tenants(self, store: Store, clock: Clock) -> None:
        declare(store)
        put_run(store, 8, tenant_id="a")
        claim(store, max_rows=8, lease_seconds=1)
        clock.shift(2)
        quiet = put(store, tenant_id="b")
        served = ids(claim(store, max_rows=1)) + ids(claim(store, max_rows=1))
        assert quiet in served

    def test_nothing_starves_behind_a_stream_of_higher_priority(self, store: Store, clock: Clock) -> None:
        declare(store)
        patient = put(store)
        taken: list[UUID] = []
        for _ in range(5):
            put_run(store, 2, priority=2)
            batch = claim(store, max_rows=1)
            store.finish_all(batch.token)
            taken += ids(batch)
            clock.shift(610)
        assert patient in taken
