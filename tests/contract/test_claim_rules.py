"""The judge of the model test can say no: each rule, broken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from carrick.entry import NewEntry, Outcome
from carrick.outbox.channel import Channel, Mode
from carrick.testing.claim_rules import Asked, Judge
from carrick.testing.model import Model, ModelEntry

PLENTY = 1000


def judged(mode: Mode, *, one_tenant: bool = False) -> tuple[Model, Judge]:
    model = Model({"c": Channel(name="c", mode=mode, one_tenant=one_tenant)}, now=10_000.0)
    return model, Judge(model)


def put(model: Model, **fields: object) -> ModelEntry:
    model.tick()
    given = {"channel": "c", "event_type": "e", "payload": b"12345", **fields}
    entry = model.put(NewEntry(**given))  # type: ignore[arg-type]
    model.tick()
    return entry


def crashed(model: Model, *entries: ModelEntry) -> None:
    model.take("c", len(model.leases) + 100, entries, 10)
    model.shift(10)
    model.return_expired("c")


def unsure(model: Model, *entries: ModelEntry) -> None:
    model.take("c", 1, entries, 10)
    model.finish(1, {entry.number: Outcome.unsure() for entry in entries})
    model.tick()


def refused(judge: Judge, taken: list[ModelEntry], why: str, *, rows: int = 5, size: int = PLENTY) -> None:
    with pytest.raises(AssertionError, match=why):
        judge.check(Asked("c", rows, size), taken)


def test_a_legal_claim_passes() -> None:
    model, judge = judged(Mode.STREAM)
    taken = [put(model), put(model)]
    judge.check(Asked("c", 5, PLENTY), taken)


def test_claiming_nothing_though_something_is_due_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    put(model)
    refused(judge, [], "nothing was claimed")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda model, entry: model.close_gate("c", "*", None, "person"),
        lambda model, entry: model.close_gate("c", "tenant:", 10, "person"),
        lambda model, entry: model.take("c", 1, [entry], 10),
        lambda model, entry: setattr(entry, "due", model.now + 1),
    ],
    ids=["channel gate", "tenant gate", "claimed", "not due"],
)
def test_claiming_what_may_not_go_is_refused(spoil: Callable[[Model, ModelEntry], None]) -> None:
    model, judge = judged(Mode.STREAM)
    entry = put(model)
    spoil(model, entry)
    refused(judge, [entry], "may not go now")


def test_too_many_rows_or_bytes_are_refused() -> None:
    model, judge = judged(Mode.STREAM)
    taken = [put(model), put(model)]
    refused(judge, taken, "more rows", rows=1)
    refused(judge, taken, "more bytes", size=9)


def test_passing_over_an_older_entry_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    put(model)
    refused(judge, [put(model)], "rank before", rows=1)


def test_a_batch_that_is_not_sorted_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    first, second = put(model), put(model)
    refused(judge, [second, first], "not sorted")


def test_a_batch_with_room_left_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    first = put(model)
    put(model)
    refused(judge, [first], "room")


def test_mixed_tenants_are_refused_in_a_one_tenant_channel() -> None:
    model, judge = judged(Mode.STREAM, one_tenant=True)
    refused(judge, [put(model, tenant_id="a"), put(model, tenant_id="b")], "tenants were mixed")


def test_passing_a_tenant_over_too_often_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    put(model, tenant_id="quiet")
    judge.check(Asked("c", 1, PLENTY), [put(model, tenant_id="busy")])
    model.take("c", 1, [model.entries[1]], 1000)
    refused(judge, [put(model, tenant_id="busy")], "passed over too often", rows=1)


def test_taking_the_second_of_an_ordered_group_is_refused() -> None:
    model, judge = judged(Mode.ORDERED)
    put(model, group_key="g")
    refused(judge, [put(model, group_key="g")], "passed over", rows=1)


def test_taking_from_a_group_that_is_held_is_refused() -> None:
    model, judge = judged(Mode.ORDERED)
    model.take("c", 1, [put(model, group_key="g")], 1000)
    refused(judge, [put(model, group_key="g")], "may not go now")


def test_taking_half_a_coalesced_group_is_refused() -> None:
    model, judge = judged(Mode.COALESCE)
    first = put(model, group_key="g")
    put(model, group_key="g")
    refused(judge, [first], "not taken whole")


def test_taking_a_debounced_group_too_early_is_refused() -> None:
    model, judge = judged(Mode.COALESCE)
    first = put(model, group_key="g", delay_seconds=1)
    model.shift(2)
    refused(judge, [first, put(model, group_key="g", delay_seconds=1)], "may not go now")


def test_more_suspects_than_their_cap_are_refused() -> None:
    model, judge = judged(Mode.STREAM)
    entries = [put(model) for _ in range(4)]
    crashed(model, *entries)
    refused(judge, entries[:3], "cap")
    judge.check(Asked("c", 5, PLENTY), entries[:2])


def test_suspects_together_with_others_are_refused() -> None:
    model, judge = judged(Mode.STREAM)
    suspects = [put(model) for _ in range(4)]
    crashed(model, *suspects)
    refused(judge, [suspects[0], put(model)], "together with others")


def test_a_part_of_a_frozen_batch_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    entries = [put(model), put(model)]
    unsure(model, *entries)
    refused(judge, entries[:1], "frozen batch")
    refused(judge, entries[::-1], "frozen batch")
    judge.check(Asked("c", 1, PLENTY), entries)


@pytest.mark.parametrize("mode", list(Mode))
def test_an_old_entry_in_a_claim_of_fresh_ones_is_refused(mode: Mode) -> None:
    model, judge = judged(mode)
    old = put(model, group_key="g")
    model.shift(100)
    behind, other = put(model, group_key="g"), put(model, group_key="h")
    fresh = Asked("c", 5, PLENTY, fresh=50)
    with pytest.raises(AssertionError, match="may not go now"):
        judge.check(fresh, [old, behind, other])
    judge.check(fresh, [behind, other] if mode is Mode.STREAM else [other])


def test_entries_that_come_back_apart_are_not_fresh() -> None:
    model, judge = judged(Mode.STREAM)
    suspect = put(model)
    crashed(model, suspect)
    with pytest.raises(AssertionError, match="may not go now"):
        judge.check(Asked("c", 5, PLENTY, fresh=1000), [suspect])
    judge.check(Asked("c", 5, PLENTY, fresh=1000), [])


def test_claims_of_fresh_entries_cost_no_other_claim_its_turn() -> None:
    model, judge = judged(Mode.STREAM)
    put(model, tenant_id="quiet")
    for _ in range(3):
        model.shift(100)
        judge.check(Asked("c", 1, PLENTY, fresh=50), [put(model, tenant_id="busy")])
        model.take("c", len(model.entries), [model.entries[-1]], 1000)
    first, second = put(model, tenant_id="busy"), put(model, tenant_id="busy")
    judge.check(Asked("c", 1, PLENTY), [first])
    model.take("c", 100, [first], 1000)
    refused(judge, [second], "passed over too often", rows=1)


def test_more_than_one_through_a_half_open_gate_is_refused() -> None:
    model, judge = judged(Mode.STREAM)
    entries = [put(model), put(model)]
    gate = model.fail_gate("c", "*", probe=False)
    assert gate is not None
    gate.until = model.now
    refused(judge, entries, "more rows")
    judge.check(Asked("c", 5, PLENTY), entries[:1])
    model.take("c", 1, entries[:1], 10)
    refused(judge, entries[1:], "may not go now")
