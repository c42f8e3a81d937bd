"""Who is not OSM refuses no points: proxies, firewalls, captive portals, and half of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from carrick.entry import ClosedBy
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.submitting import PatrolPoints
from tests.contract.scores.strangers import STRANGERS
from tests.contract.scores.whole import whole
from tests.contract.scores.world import PATIENCE_SECONDS, Kind, World, story
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, SCOUTS, WOLVES, simulated

NO = '{"error":"You may not do this"}'
REFUSED = "refused: You may not do this"
BEAVERS = 40102
"""A section that Robin does not see."""


async def untouched(world: World, submission: Any) -> bool:
    """Whether all of it waits, and has cost no attempt."""
    return all((update.state, update.attempt_count) == ("pending", 0) for update in await world.updates(submission))


@pytest.mark.parametrize("endpoint", ["points", "patrols"])
def test_more_answers_of_strangers_than_there_are_attempts_end_no_entry(kind: Kind, endpoint: str) -> None:
    async def test(world: World) -> None:
        before = {patrol: await world.osm.points(patrol) for patrol in (EAGLES, LIONS)}
        given = await world.submit({EAGLES: 5, LIONS: 2})
        for fault in STRANGERS:
            await world.osm.control("fault", endpoint=endpoint, **fault)
            await world.deliver()
            assert await untouched(world, given), fault
            reason = await world.gate("*")
            assert reason is not None, fault
            assert reason.startswith("osm_unavailable: "), fault
            await world.osm.control("clear-faults")
            await world.later()
        await world.deliver()
        assert {update.state for update in await world.updates(given)} == {"delivered"}
        assert {patrol: await world.osm.points(patrol) for patrol in before} == {
            EAGLES: before[EAGLES] + 5,
            LIONS: before[LIONS] + 2,
        }

    story(kind, test)


@pytest.mark.parametrize("status", [403, 404, 405, 410])
def test_what_osm_does_not_allow_holds_its_leader_ever_longer_and_nobody_else(kind: Kind, status: int) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        mine, theirs = await world.submit({EAGLES: 5}, ROBIN), await world.submit({EAGLES: 3}, HAZEL)
        no = {"kind": "custom", "status": status, "text": NO, "user_id": ROBIN, "times": None}
        await world.osm.control("fault", endpoint="points", **no)
        await world.deliver()
        assert await untouched(world, mine)
        assert await world.gate(f"principal:{ROBIN}") == REFUSED
        assert await world.gate("*") is None
        assert [update.state for update in await world.updates(theirs)] == ["delivered"]
        calls = len(await world.osm.calls())
        await world.later(61)
        await world.deliver()
        assert len(await world.osm.calls()) > calls
        calls = len(await world.osm.calls())
        await world.later(61)
        await world.deliver()
        assert len(await world.osm.calls()) == calls
        await world.osm.control("clear-faults")
        await world.later(60)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 8

    story(kind, test)


@pytest.mark.parametrize("status", [400, 409, 422])
def test_what_osm_itself_refuses_of_a_write_is_over_and_leaves_the_rest_alone(kind: Kind, status: int) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 5, LIONS: 2})
        no = {"kind": "custom", "status": status, "text": NO, "content_type": "text/html"}
        await world.osm.control("fault", endpoint="points", patrol_id=EAGLES, **no)
        await world.deliver()
        dead, other = await world.updates(given)
        assert (dead.state, dead.last_error_code, other.state) == ("dead", "refused", "delivered")
        assert dead.last_error_message == "You may not do this"

    story(kind, test)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("status", [200, 400])
def test_points_that_osm_refuses_hold_other_leaders_for_minutes_at_most(kind: Kind, status: int, merged: bool) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        no = {"kind": "custom", "status": status, "text": NO, "user_id": ROBIN, "times": None}
        await world.osm.control("fault", endpoint="points", **no)
        mine = await world.submit({EAGLES: 5}, ROBIN)
        theirs = [await world.submit({EAGLES: 3}, HAZEL)]
        await world.deliver()
        theirs.append(await world.submit({EAGLES: 1}, HAZEL))
        for _ in range(3):
            await world.deliver()
            await world.later(130)
        (refused,) = await world.updates(mine)
        assert (refused.state, refused.last_error_code) == ("dead", "refused")
        assert [update.state for given in theirs for update in await world.updates(given)] == ["delivered", "delivered"]
        assert await world.osm.points(EAGLES) == before + 4

    story(kind, test, merge_leaders=merged)


def test_a_fault_that_osm_names_ends_no_points_within_minutes(kind: Kind) -> None:
    async def test(world: World) -> None:
        no = {"kind": "custom", "status": 500, "text": NO, "times": None}
        await world.osm.control("fault", endpoint="points", **no)
        mine = await world.submit({EAGLES: 5}, ROBIN)
        for _ in range(4):
            await world.deliver()
            await world.later(1_000)
        (waiting,) = await world.updates(mine)
        assert (waiting.state, waiting.last_error_code) == ("pending", "refused")

    story(kind, test)


@pytest.mark.parametrize("status", [200, 400, 403])
def test_what_osm_refuses_of_a_read_holds_the_section_and_costs_no_attempt(kind: Kind, status: int) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", endpoint="patrols", kind="custom", status=status, text=NO, times=12)
        for _ in range(12):
            await world.deliver()
            assert await untouched(world, given)
            assert await world.gate(f"tenant:{SCOUTS}") == "section_denied: You may not do this"
            assert await world.gate(f"principal:{ROBIN}") is None
            await world.later()
        await world.deliver()
        assert [update.state for update in await world.updates(given)] == ["delivered"]

    story(kind, test)


def test_a_read_at_which_osm_itself_fails_costs_no_attempt_and_holds_the_channel(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", endpoint="patrols", kind="custom", status=500, text=NO)
        await world.deliver()
        assert await untouched(world, given)
        assert await world.gate("*") == "osm_unavailable: You may not do this"

    story(kind, test)


def test_a_section_that_a_leader_has_lost_does_not_hold_their_points_for_another(kind: Kind) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            await there.sign_in(ROBIN)
            lost = await there.submit({61001: 1}, section_id=BEAVERS)
            for _ in range(2):
                await there.later(1000)
                kept = await there.submit({EAGLES: 2})
                await there.deliver()
                assert (await there.states(lost), await there.states(kept)) == (["pending"], ["delivered"])
            [update] = await there.updates(lost)
            [why] = await there.parts.desk.reasons([update])
            assert (update.attempt_count, why.reason) == (0, "osm_unavailable")
            assert "OSM does not show you this section any more" in why.message

    asyncio.run(main())


def test_a_section_that_nobody_could_read_waits_no_longer_when_somebody_signs_in_who_has_it(kind: Kind) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            await there.sign_in(ROBIN)
            await there.submit({61001: 1}, section_id=BEAVERS)
            await there.deliver()
            assert [gate.scope for gate in there.outbox.store.gates(SCORES.name)] == [f"tenant:{BEAVERS}"]
            await there.sign_in(HAZEL)
            assert there.outbox.store.gates(SCORES.name) == []

    asyncio.run(main())


@pytest.mark.parametrize(("closed_by", "status"), [("destination", "applied"), ("person", "accepted")])
def test_new_points_open_a_section_that_osm_did_not_show_but_none_that_a_person_closed(
    kind: Kind, closed_by: ClosedBy, status: str
) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            await there.sign_in(HAZEL)
            there.outbox.store.close_gate(SCORES.name, f"tenant:{BEAVERS}", 900, "closed", closed_by=closed_by)
            giving = there.parts.desk.submit(HAZEL, BEAVERS, "key", [PatrolPoints("61002", 2)], "interactive")
            waiting = asyncio.create_task(giving)
            while not waiting.done():
                await there.deliver()
            assert (await waiting).status == status

    asyncio.run(main())


def test_points_of_a_leader_who_has_lost_the_section_are_decided_with_another_leaders_reading(kind: Kind) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            await there.sign_in(ROBIN)
            await there.sign_in(HAZEL)
            before = await osm.points(61001, BEAVERS)
            lost = await there.submit({61001: 1}, section_id=BEAVERS)
            for _ in range(3):
                await there.deliver()
                await there.later(130)
            [update] = await there.updates(lost)
            assert (update.state, update.last_error_code) == ("dead", "refused")
            assert await osm.points(61001, BEAVERS) == before

    asyncio.run(main())


def test_a_patrol_whose_write_somebody_always_answers_does_not_keep_the_others_from_osm(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 1, LIONS: 2, WOLVES: 3})
        await world.osm.control("fault", endpoint="points", patrol_id=EAGLES, kind="server_error", times=None)
        for _ in range(2):
            await world.deliver()
            await world.later()
        assert [update.state for update in await world.updates(given)] == ["pending", "delivered", "delivered"]

    story(kind, test)


def test_a_503_that_says_until_when_is_left_alone_until_then(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 5})
        sorry = {"kind": "custom", "status": 503, "text": "Sorry", "headers": {"Retry-After": "300"}}
        await world.osm.control("fault", endpoint="patrols", **sorry)
        await world.deliver()
        await world.later(299)
        await world.deliver()
        assert await untouched(world, given)
        await world.later(2)
        await world.deliver()
        assert [update.state for update in await world.updates(given)] == ["delivered"]

    story(kind, test)


@pytest.mark.parametrize("fault", ["block_page", "blocked_header"])
@pytest.mark.parametrize("applied", [False, True])
def test_a_block_that_is_told_on_the_answer_to_a_write_costs_no_attempt_and_is_compared_after_it(
    kind: Kind, fault: str, applied: bool
) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", endpoint="points", kind=fault, applied=applied)
        await world.deliver()
        assert await untouched(world, given)
        assert str(await world.gate("*")).startswith("service_blocked: ")
        await world.osm.control("unblock")
        world.notes.service = None
        await world.later()
        await world.deliver()
        assert [update.state for update in await world.updates(given)] == ["delivered"]
        assert await world.osm.points(EAGLES) == before + 5

    story(kind, test)
