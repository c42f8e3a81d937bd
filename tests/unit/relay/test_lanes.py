"""A claim of several deliveries: which of its entries go out side by side, and how many a claim asks for."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrick.entry import Entry
from carrick.outbox.channel import Channel, Mode
from carrick.relay.lanes import MOST_CLAIMED, Part, Size, Width, lanes_of, widest
from carrick.testing.samples import claimed
from tests.contract.scripted_sink import ScriptedSink
from tests.unit.relay.entries import entry

SIZE = Size(rows=100, bytes=1_000_000)


def numbers(lanes: list[list[Part]]) -> list[list[list[int]]]:
    return [[[entry.seq for entry in part] for part in lane] for lane in lanes]


def test_entries_without_a_group_are_shared_out_evenly() -> None:
    lanes = lanes_of([entry(n) for n in range(1, 351)], SIZE)
    assert [[len(part) for part in lane] for lane in lanes] == [[88], [88], [88], [86]]


def test_what_one_delivery_holds_goes_in_one_piece() -> None:
    assert numbers(lanes_of([entry(1), entry(2)], SIZE)) == [[[1, 2]]]


def test_a_group_is_in_one_lane_and_its_parts_go_in_order() -> None:
    lanes = lanes_of([entry(n, group="a") for n in range(1, 8)], Size(rows=3, bytes=1000))
    assert numbers(lanes) == [[[1, 2, 3], [4, 5, 6], [7]]]


def test_a_lane_takes_whole_groups_as_long_as_they_are_one_part() -> None:
    entries = [entry(n, group=f"g-{n % 5}") for n in range(1, 41)]  # five groups of eight
    lanes = lanes_of(entries, Size(rows=20, bytes=1000))
    assert [[len(part) for part in lane] for lane in lanes] == [[16], [16], [8]]
    assert numbers(lanes)[0] == [[n for n in range(1, 41) if n % 5 in (1, 2)]]


def test_a_lane_takes_whole_groups_as_long_as_their_bytes_are_one_part() -> None:
    entries = [entry(n, group=f"g-{n % 3}", size=20) for n in range(1, 7)]
    lanes = lanes_of(entries, Size(rows=20, bytes=80))
    assert numbers(lanes) == [[[1, 2, 4, 5]], [[3, 6]]]


def test_the_same_group_of_another_tenant_is_another() -> None:
    entries = [claimed(n, tenant_id=tenant, group_key="g") for n, tenant in enumerate(["a", "a", "b", "b"], 1)]
    assert numbers(lanes_of(entries, Size(rows=2, bytes=1000))) == [[[1, 2]], [[3, 4]]]


def test_parts_are_cut_by_bytes_and_one_that_is_too_large_goes_alone() -> None:
    entries = [entry(1, size=60), entry(2, size=40), entry(3, size=500), entry(4, size=10)]
    lanes = lanes_of(entries, Size(rows=10, bytes=100))
    assert all(
        len(part) == 1 or sum(one.payload_size_bytes for one in part) <= 100 for part in chain.from_iterable(lanes)
    )
    assert sorted(one.seq for part in chain.from_iterable(lanes) for one in part) == [1, 2, 3, 4]


@given(
    groups=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=60),
    rows=st.integers(1, 20),
    size_bytes=st.integers(1, 200),
)
def test_every_entry_goes_once_within_the_limits_and_in_the_order_of_its_group(
    groups: list[str | None], rows: int, size_bytes: int
) -> None:
    entries = [entry(n, group=group, size=1 + n % 30) for n, group in enumerate(groups, 1)]
    lanes = lanes_of(entries, Size(rows, size_bytes))
    parts = list(chain.from_iterable(lanes))
    assert sorted(one.seq for part in parts for one in part) == [one.seq for one in entries]
    for part in parts:
        assert 0 < len(part) <= rows
        assert len(part) == 1 or sum(one.payload_size_bytes for one in part) <= size_bytes
    for group in {"a", "b", "c"}:
        homes = [lane for lane in lanes if any(_is_of(group, part) for part in lane)]
        assert len(homes) <= 1
        order = [one.seq for lane in homes for part in lane for one in part if one.group_key == group]
        assert order == sorted(order)


def _is_of(group: str, part: Part) -> bool:
    return any(one.group_key == group for one in part)


def test_a_claim_asks_for_more_while_claims_come_back_full_and_for_one_delivery_after_one_that_does_not() -> None:
    width = Width(4, in_flight=4)
    asked = []
    for got in (1, 2, 4, 4, 0.3, 0):
        asked.append(width.asks(SIZE)["max_rows"])
        width.claimed(got)
    assert asked == [None, 200, 400, 400, 400, None]
    assert width.asks(SIZE) == {"max_rows": None, "max_bytes": 1_000_000}  # as many as the channel says by now


def test_wide_claims_are_fewer_at_a_time() -> None:
    width = Width(4, in_flight=4)
    assert width.leases == 4
    width.claimed(1)
    assert width.leases == 2


@pytest.mark.parametrize(
    ("mode", "side_by_side", "rows", "in_flight", "most"),
    [
        (Mode.STREAM, True, 100, 4, 4),
        (Mode.ORDERED, True, 100, 64, MOST_CLAIMED // 100),
        (Mode.ORDERED, True, 1000, 4, 1),
        (Mode.ORDERED, True, 5000, 4, 1),
        (Mode.STREAM, True, 100, 1, 1),
        (Mode.STREAM, False, 100, 4, 1),
        (Mode.COALESCE, True, 100, 4, 1),
    ],
)
def test_a_claim_is_as_wide_as_sink_channel_and_settings_allow(
    mode: Mode, side_by_side: bool, rows: int, in_flight: int, most: int
) -> None:
    channel = Channel(name="c", mode=mode, batch_rows=rows)
    assert widest(channel, ScriptedSink(side_by_side=side_by_side), in_flight) == most


def test_how_much_a_claim_got_is_told_by_rows_or_bytes() -> None:
    entries: list[Entry] = [entry(n, size=30) for n in range(1, 11)]
    assert Size(rows=5, bytes=1000).deliveries(entries) == 2
    assert Size(rows=100, bytes=100).deliveries(entries) == 3
    assert Size(rows=5, bytes=1000).deliveries([]) == 0
