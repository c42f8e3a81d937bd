"""Eight processes claim what fifty tenants have put: everything once, groups in order, the quiet tenant in its turn."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from carrick.entry import NewEntry, State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from tests.many import many
from tests.scenario.conftest import Shared

PROCESSES = 8
TENANTS = 50
GROUPS = 500
ENTRIES = int(os.environ.get("CARRICK_TEST_ENTRIES", "20000"))
LONG = 200_000
BATCH = 100
QUIET = "quiet"


class Claimed(NamedTuple):
    """One batch: when it was asked for and got, when it was about to be finished, and what was in it.

    Times are of the machine's monotonic clock, which all processes share. `entries`: id, tenant, group, seq.
    """

    asked_at: int
    got_at: int
    done_at: int
    entries: list[tuple[UUID, str, str | None, int]]


def work(url: str, started: Any, all_put: Any, results: Any) -> None:
    """One worker: its batches, or what stopped it, as its result."""
    try:
        results.put(deliver(url, started, all_put))
    except Exception as error:
        results.put(repr(error))
        raise


def deliver(url: str, started: Any, all_put: Any) -> list[Claimed]:
    """Claim and deliver until nothing is left and nothing more comes."""
    store = open_store(url)
    batches: list[Claimed] = []
    while True:
        asked_at = time.monotonic_ns()
        batch = store.claim("c", f"worker-{os.getpid()}", max_rows=BATCH)
        got_at = time.monotonic_ns()
        if not batch:
            assert all_put.wait(60)
            if all(stats.pending_count == 0 for stats in store.stats() if stats.channel == "c"):
                store.close()
                return batches
            continue
        started.set()
        entries = [(entry.id, entry.tenant_id, entry.group_key, entry.seq) for entry in batch]
        batches.append(Claimed(asked_at, got_at, time.monotonic_ns(), entries))
        assert len(store.finish_all(batch.token)) == len(batch)


@contextmanager
def workers(context: ForkServerContext, *args: Any) -> Iterator[list[Any]]:
    """Eight of them at work; none outlives the test."""
    processes = [context.Process(target=work, args=args, daemon=True) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.join()


def put_all(store: Store, count: int) -> set[UUID]:
    """Entries of all tenants in all groups, in turn."""
    answers = set()
    for start in range(0, count, 1000):
        entries = [
            NewEntry(
                channel="c",
                event_type="e",
                payload=b"%d" % n,
                tenant_id=f"t{n % TENANTS:02}",
                group_key=f"g{n % GROUPS:03}",
            )
            for n in range(start, min(start + 1000, count))
        ]
        answers |= {answer.id for answer in store.put_many(entries)}
    return answers


def run(shared: Shared, mode: Mode, count: int) -> tuple[set[UUID], list[Claimed], tuple[UUID, int]]:
    """What was put, what the workers claimed in the order of claims, and the quiet tenant's entry with its time."""
    store = open_store(shared.url)
    store.declare(Channel(name="c", mode=mode))
    expected = put_all(store, count)
    context = many()
    started, all_put, results = context.Event(), context.Event(), context.Queue()
    with workers(context, shared.url, started, all_put, results):
        assert started.wait(60)
        quiet = store.put(NewEntry(channel="c", event_type="e", payload=b"0", tenant_id=QUIET)).id
        put_at = time.monotonic_ns()
        all_put.set()
        answers = [results.get(timeout=600) for _ in range(PROCESSES)]
    assert [answer for answer in answers if isinstance(answer, str)] == []
    claimed = [batch for answer in answers for batch in answer]
    states = {store.standing(entry_id).state for entry_id in list(expected)[:200]} | {store.standing(quiet).state}
    assert states == {State.DELIVERED}
    (stats,) = [stats for stats in store.stats() if stats.channel == "c"]
    assert (stats.pending_count, stats.claimed_count, stats.dead_count) == (0, 0, 0)
    store.close()
    return expected | {quiet}, sorted(claimed, key=lambda batch: batch.got_at), (quiet, put_at)


def check(shared: Shared, mode: Mode, count: int) -> None:
    expected, claimed, (quiet, put_at) = run(shared, mode, count)
    taken = [entry_id for batch in claimed for entry_id, *_ in batch.entries]
    assert len(taken) == len(set(taken)), "an entry was claimed twice"
    assert set(taken) == expected
    check_turn(claimed, quiet, put_at)
    if mode is Mode.ORDERED:
        check_groups(claimed)


def check_turn(claimed: list[Claimed], quiet: UUID, put_at: int) -> None:
    """The quiet tenant is served within as many claims as there are tenants, or by one that was asked for before, and
    perhaps even before the put has returned."""
    served_at = next(batch.got_at for batch in claimed if quiet in [entry[0] for entry in batch.entries])
    before = [batch for batch in claimed if put_at < batch.got_at < served_at]
    assert len(before) <= TENANTS + PROCESSES


def check_groups(claimed: list[Claimed]) -> None:
    """In every group the entries came in order, and no batch began before the one before it was done."""
    last_seq: dict[tuple[str, str], int] = defaultdict(int)
    busy_until: dict[tuple[str, str], int] = defaultdict(int)
    for batch in claimed:
        for _, tenant, group, seq in batch.entries:
            if group is None:
                continue
            assert seq > last_seq[tenant, group], f"group {group} went backwards"
            last_seq[tenant, group] = seq
            assert busy_until[tenant, group] <= batch.got_at, f"two leases held group {group}"
        for _, tenant, group, _ in batch.entries:
            if group is not None:
                busy_until[tenant, group] = batch.done_at


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
def test_eight_processes_claim_everything_once(shared: Shared, mode: Mode) -> None:
    check(shared, mode, ENTRIES)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", [Mode.STREAM, Mode.ORDERED])
def test_eight_processes_claim_two_hundred_thousand_entries_once(shared: Shared, mode: Mode) -> None:
    check(shared, mode, LONG)
