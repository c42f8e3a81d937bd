"""A worker stopped past its lease and woken later: no write of it has any effect (G3, with real processes)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Batch, Standing, State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.opening import open_store
from carrick.outbox.store import Store
from carrick.testing.samples import put_run
from carrick.testing.zombie import WRITES, Zombie
from tests.scenario.conftest import Shared

LEASE = 10


@pytest.fixture(params=list(Mode))
def store(request: pytest.FixtureRequest, shared: Shared) -> Iterator[Store]:
    """The store of worker B, with a channel of each mode and one group of entries in it."""
    store = open_store(shared.url)
    store.declare(Channel(name="c", mode=request.param))
    put_run(store, 3, "c", group_key="g")
    yield store
    store.close()


def facts(store: Store, ids: list[UUID]) -> list[dict[str, Any]]:
    """Everything about the entries but the moment it was asked."""
    return [
        {name: getattr(standing, name) for name in Standing.__struct_fields__ if name != "now"}
        for standing in map(store.standing, ids)
    ]


def take_over(store: Store) -> list[Batch]:
    """B claims what it can of what the dead worker held, and holds it."""
    batches = []
    while batch := store.claim("c", "worker-b", lease_seconds=1000):
        batches.append(batch)
    return batches


def goes_on_in_vain(zombie: Zombie, store: Store) -> None:
    """A is woken, does every write there is, and nothing changes."""
    before = facts(store, zombie.ids)
    zombie.tell(WRITES[0])
    zombie.wake()
    for this, following in zip(WRITES, [*WRITES[1:], None], strict=True):
        assert zombie.effect() == 0, this
        assert facts(store, zombie.ids) == before, this
        if following is not None:
            zombie.tell(following)


def test_a_woken_worker_changes_nothing_while_another_holds_its_entries(shared: Shared, store: Store) -> None:
    with Zombie(shared.url, "c", lease_seconds=LEASE) as zombie:
        assert len(zombie.ids) == 3
        zombie.stop()
        shared.clock.shift(LEASE + 1)
        batches = take_over(store)
        assert batches
        goes_on_in_vain(zombie, store)
        for batch in batches:
            assert set(store.finish_all(batch.token).values()) == {State.DELIVERED}


def test_a_woken_worker_changes_nothing_after_another_has_finished(shared: Shared, store: Store) -> None:
    with Zombie(shared.url, "c", lease_seconds=LEASE) as zombie:
        zombie.stop()
        shared.clock.shift(LEASE + 1)
        while batch := store.claim("c", "worker-b"):
            store.finish_all(batch.token)
        assert [store.standing(entry_id).state for entry_id in zombie.ids] == [State.DELIVERED] * 3
        goes_on_in_vain(zombie, store)


def test_a_woken_worker_changes_nothing_while_its_entries_wait_again(shared: Shared, store: Store) -> None:
    with Zombie(shared.url, "c", lease_seconds=LEASE) as zombie:
        zombie.stop()
        shared.clock.shift(LEASE + 1)
        assert store.release_expired("c") == 3
        goes_on_in_vain(zombie, store)
        assert take_over(store)


@pytest.mark.parametrize("write", ["renew", "finish_all", "release"])
def test_a_worker_that_wakes_within_its_lease_goes_on_as_if_nothing_had_been(
    shared: Shared, store: Store, write: str
) -> None:
    """The proof that the writes of the kit have an effect where they may."""
    with Zombie(shared.url, "c", lease_seconds=LEASE) as zombie:
        zombie.stop()
        shared.clock.shift(LEASE - 5)
        assert not store.claim("c", "worker-b")
        zombie.tell(write)
        zombie.wake()
        assert zombie.effect() == 3
