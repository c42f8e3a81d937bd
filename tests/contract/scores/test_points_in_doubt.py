"""Points of which nobody knows whether OSM has them, and all that may be decided about them meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from carrick.sinks.sink import LeaseLost
from carrick.steady import steady_seconds
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.osm import client
from carrick_scoreboard.rounds import SETTLE_SECONDS
from carrick_scoreboard.store.scores import InDoubt, Submission, Update
from tests.contract.scores.test_concurrency import two_replicas
from tests.contract.scores.world import Kind, World, bury, story
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, SCOUTS

YEARS = 10 * 365 * 86_400


async def only(world: World, given: Submission) -> Update:
    (update,) = await world.updates(given)
    return update


async def again_of(world: World, update: Update) -> Update:
    """The same points as they stand now."""
    found = await world.threads.call(world.scores.update, update.id)
    assert found is not None
    return found


async def lost(world: World, fault: str = "apply_then_drop") -> Update:
    """Points that are dead, and OSM has them or not: the answer did not come, and workers died with them since."""
    given = await world.submit({EAGLES: 5})
    await world.osm.control("fault", kind=fault, endpoint="points", times=1)
    await world.deliver()
    await world.later()
    await world.threads.call(bury, world.outbox.store, world.clock)
    update = await only(world, given)
    assert (update.state, update.is_open) == ("dead", True)
    return update


async def unclear(world: World) -> Update:
    """Points that are dead, and somebody else has changed the score: a person must look."""
    update = await lost(world)
    await world.osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, add=1)
    await world.threads.call(world.scores.retry, update)
    await world.deliver()
    (again,) = await world.threads.call(world.scores.unfinished, ROBIN)
    assert (again.state, again.last_error_code) == ("dead", "needs_review")
    return again


async def redriven_by_an_operator(world: World) -> None:
    """All that is dead goes round again: console, `carrick dlq redrive`, SQL."""
    await world.threads.call(world.outbox.store.redrive, SCORES.name, spread_seconds=0)


def test_points_in_doubt_that_an_operator_sends_round_again_on_two_replicas_count_once(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        before = await first.osm.points(EAGLES)
        update = await lost(first)
        both = (first, second)
        await asyncio.gather(
            *(redriven_by_an_operator(replica) for replica in both),
            *(replica.threads.call(replica.scores.retry, update) for replica in both),
        )
        await asyncio.gather(*(replica.deliver() for replica in both))
        assert await first.osm.points(EAGLES) == before + 5
        assert await first.threads.call(first.scores.unfinished, ROBIN) == []

    two_replicas(kind, test)


def test_who_decides_twice_does_not_end_the_doubt_of_a_write_under_way(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        update = await unclear(first)
        before = await first.osm.points(EAGLES)
        await first.threads.call(first.scores.retry, update)
        await first.osm.control("fault", kind="apply_then_drop", endpoint="points", times=1)
        await first.osm.control("hold", name="write", point="after_apply", endpoint="points")
        first.client.timeout_seconds = 30
        writing = asyncio.create_task(first.deliver())
        await first.osm.reached("write")
        await second.threads.call(second.scores.retry, update)
        await first.osm.control("release", name="write")
        await writing
        await second.later()
        await second.threads.call(bury, second.outbox.store, second.clock)
        await second.threads.call(second.scores.retry, update)
        await second.deliver()
        assert await first.osm.points(EAGLES) == before + 5
        assert await first.threads.call(first.scores.unfinished, ROBIN) == []

    two_replicas(kind, test)


def test_what_needs_a_person_still_does_when_an_operator_sends_it_round_again(kind: Kind) -> None:
    async def test(world: World) -> None:
        update = await unclear(world)
        before = await world.osm.points(EAGLES)
        await redriven_by_an_operator(world)
        await world.deliver()
        again = await again_of(world, update)
        assert (again.state, again.last_error_code, again.found) == ("dead", "needs_review", update.found)
        assert await world.osm.points(EAGLES) == before

    story(kind, test)


@pytest.mark.parametrize("fault", ["apply_then_drop", "drop_before_apply"])
def test_given_up_points_are_never_applied_whoever_sends_them_round_again(kind: Kind, fault: str) -> None:
    async def test(world: World) -> None:
        update = await lost(world, fault)
        before = await world.osm.points(EAGLES)
        assert not await world.threads.call(world.scores.discard, update)
        for _ in range(3):
            await world.deliver()
            await redriven_by_an_operator(world)
        assert await world.osm.points(EAGLES) == before
        now = await again_of(world, update)
        has_it = fault == "apply_then_drop"
        assert (now.applied_at is not None, now.discarded_at is not None) == (has_it, not has_it)

    story(kind, test)


def test_points_that_are_discarded_while_an_operator_sends_them_round_again_are_not_applied(kind: Kind) -> None:
    async def test(world: World) -> None:
        update = await unclear(world)
        before = await world.osm.points(EAGLES)
        await redriven_by_an_operator(world)  # after the leader's page has asked, before the leader decides
        assert await world.threads.call(world.scores.discard, update)
        await world.deliver()
        await redriven_by_an_operator(world)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before
        assert await world.threads.call(world.scores.unfinished, ROBIN) == []

    story(kind, test)


def test_points_that_somebody_has_settled_meanwhile_cannot_be_discarded(kind: Kind) -> None:
    async def test(world: World) -> None:
        update = await lost(world)
        await world.submit({EAGLES: 2}, HAZEL)
        await world.deliver()
        with pytest.raises(InDoubt):
            await world.threads.call(world.scores.discard, update)
        assert (await again_of(world, update)).discarded_at is None

    story(kind, test)


def test_points_that_are_given_up_while_their_doubt_is_settled_are_not_applied(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        update = await lost(first, "drop_before_apply")
        before = await first.osm.points(EAGLES)
        await first.submit({EAGLES: 2}, HAZEL)
        await first.osm.control("hold", name="read", point="before_answer", endpoint="patrols")
        first.client.timeout_seconds = 30
        settling = asyncio.create_task(first.deliver())
        await first.osm.reached("read")
        assert not await second.threads.call(second.scores.discard, update)
        await first.osm.control("release", name="read")
        await settling
        await second.deliver()
        assert await first.osm.points(EAGLES) == before + 2
        assert await first.threads.call(first.scores.unfinished, ROBIN) == []

    two_replicas(kind, test)


def test_what_others_write_after_a_doubt_that_stays_goes_on_from_the_score_that_is_there(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        await world.submit({EAGLES: 5}, ROBIN, key=str(uuid4()))
        await world.submit({EAGLES: 3}, HAZEL, key=str(uuid4()))
        world.client.timeout_seconds = 30
        await world.osm.control("fault", kind="error_200", endpoint="points", text="try later", times=1)
        await world.osm.control("hold", name="write", point="before_answer", endpoint="points", times=1)
        delivering = asyncio.create_task(world.deliver())
        await world.osm.reached("write")
        await world.osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, add=7)
        await world.osm.control("release", name="write")
        await delivering
        assert await world.osm.points(EAGLES) == before + 7 + 3

    story(kind, test)


@pytest.mark.parametrize("merged", [False, True])
def test_a_doubt_of_a_leader_who_must_sign_in_holds_nobody_else_and_is_settled_by_them(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    async def test(world: World) -> None:
        before, set_points = await world.osm.points(EAGLES), world.client.set_points

        async def dies(*write: Any, **options: Any) -> None:
            await set_points(*write, **options)
            raise LeaseLost

        mine, theirs = await world.submit({EAGLES: 5}, ROBIN), await world.submit({EAGLES: 3}, HAZEL)
        monkeypatch.setattr(world.client, "set_points", dies)
        await world.deliver()
        monkeypatch.undo()
        await world.later()
        world.leaders.revoked.add(ROBIN)
        await world.threads.call(world.outbox.store.close_gate, SCORES.name, f"principal:{ROBIN}", None, "auth_revoked")
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 8
        applied = [(update.state, update.new_score) for one in (mine, theirs) for update in await world.updates(one)]
        assert applied == [("pending", before + 5), ("delivered", before + 8)]
        await world.threads.call(world.outbox.store.open_gate, SCORES.name, f"principal:{ROBIN}")
        await world.deliver()
        assert (await only(world, mine)).state == "delivered"
        assert await world.osm.points(EAGLES) == before + 8

    story(kind, test, merge_leaders=merged)


def test_a_young_doubt_holds_its_patrol_only_and_nobody_sleeps_over_it(kind: Kind) -> None:
    async def test(world: World) -> None:
        lions = await world.osm.points(LIONS)
        given = await world.submit([(EAGLES, 5), (LIONS, 1)])
        (eagles, _) = await world.updates(given)
        await world.threads.call(world.scores.doubt, SCOUTS, str(EAGLES), [eagles.entry_id], 32, 37)
        await world.deliver()
        assert [update.state for update in await world.updates(given)] == ["pending", "delivered"]
        assert await world.osm.points(LIONS) == lions + 1
        await world.later(SETTLE_SECONDS)
        await world.deliver()
        assert (await again_of(world, eagles)).new_score == 37

    story(kind, test)


@pytest.mark.parametrize("points", [(5, 3), (5, -5)])
def test_points_that_are_discarded_while_they_are_about_to_be_written_are_not_applied(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, points: tuple[int, int]
) -> None:
    async def test(world: World) -> None:
        before, name = await world.osm.points(EAGLES), "doubt" if sum(points) else "settle"
        given = await world.submit([(EAGLES, one) for one in points])
        first, _ = await world.updates(given)
        act = getattr(world.scores, name)

        def discarded_before(*write: Any, **options: Any) -> Any:
            monkeypatch.undo()
            assert world.scores.discard(first)
            return act(*write, **options)

        monkeypatch.setattr(world.scores, name, discarded_before)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + points[1]
        assert [update.applied_at is not None for update in await world.updates(given)] == [False, True]

    story(kind, test)


def test_points_that_wait_for_their_leader_can_be_discarded(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        world.leaders.revoked.add(ROBIN)
        await world.deliver()
        assert await world.threads.call(world.scores.discard, await only(world, given))
        assert await world.threads.call(world.scores.pending, [SCOUTS]) == {SCOUTS: {}}
        assert await world.threads.call(world.scores.unfinished, ROBIN) == []
        await world.leaders.sign_in(ROBIN)
        await world.threads.call(world.outbox.store.open_gate, SCORES.name, f"principal:{ROBIN}")
        await world.deliver()
        await redriven_by_an_operator(world)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before

    story(kind, test)


def test_points_in_doubt_that_retention_has_removed_can_be_given_up(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        await lost(world)
        await world.later(86_400 * (SCORES.dead_retention_days + 1))
        await world.threads.call(world.outbox.store.prune, SCORES.name)
        await world.threads.call(lambda: world.scores.tidy(days=400))
        (update,) = await world.threads.call(world.scores.unfinished, ROBIN)
        assert (update.state, update.is_open) == (None, True)
        assert await world.threads.call(world.scores.discard, update)
        assert await world.threads.call(world.scores.unfinished, ROBIN) == []
        await world.submit({EAGLES: 1}, HAZEL)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 6
        assert (await again_of(world, update)).new_score == before + 5  # OSM had them all the time

    story(kind, test)


def test_a_doubt_from_a_time_when_the_clock_was_years_ahead_is_settled_all_the_same(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        await world.later(YEARS)
        entry_ids = [(await only(world, given)).entry_id]
        await world.threads.call(world.scores.doubt, SCOUTS, str(EAGLES), entry_ids, before, before + 5)
        await world.later(-YEARS)
        await world.deliver()
        await world.later(SETTLE_SECONDS + 1)
        await world.deliver()
        assert (await only(world, given)).state == "delivered"
        assert await world.osm.points(EAGLES) == before + 5

    story(kind, test)


def test_points_in_doubt_for_a_patrol_that_is_gone_can_be_given_up(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({999: 5})
        await world.threads.call(world.scores.doubt, SCOUTS, "999", [(await only(world, given)).entry_id], 10, 15)
        await world.later()
        await world.deliver()
        update = await only(world, given)
        assert (update.last_error_code, update.is_open) == ("patrol_not_found", True)
        assert not await world.threads.call(world.scores.discard, update)
        await world.deliver()
        assert await world.threads.call(world.scores.unfinished, ROBIN) == []

    story(kind, test)


def test_a_write_that_could_not_leave_for_a_while_does_not_leave_so_that_its_doubt_is_not_too_young(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(world: World) -> None:
        before, doubt = await world.osm.points(EAGLES), world.scores.doubt

        def stalling(*write: Any) -> str:
            monkeypatch.setattr(client, "steady_seconds", lambda: steady_seconds() + 2 * world.client.timeout_seconds)
            return doubt(*write)

        given = await world.submit({EAGLES: 5})
        monkeypatch.setattr(world.scores, "doubt", stalling)
        await world.deliver()
        assert await world.calls() == ["read"]
        assert await world.threads.call(world.scores.doubts, SCOUTS) == []
        monkeypatch.undo()
        await world.later()
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 5
        assert (await only(world, given)).state == "delivered"

    story(kind, test)
