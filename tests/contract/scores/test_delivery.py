"""Points arrive in OSM once, whatever becomes of the calls that bring them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from carrick.errors import StoreUnavailable
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.osm import errors
from carrick_scoreboard.store.scores import Update
from tests.contract.scores.world import Kind, World, story
from tests.osm import EAGLES, HAZEL, JASPER, LIONS, ROBIN, SCOUTS, TERM, WOLVES


def states(updates: list[Update]) -> list[str | None]:
    return [update.state for update in updates]


def scores(updates: list[Update]) -> list[tuple[int | None, int | None]]:
    return [(update.previous_score, update.new_score) for update in updates]


def test_n_updates_of_p_patrols_cost_one_read_and_p_writes(kind: Kind) -> None:
    async def test(world: World) -> None:
        eagles, lions = await world.osm.points(EAGLES), await world.osm.points(LIONS)
        first = await world.submit([(EAGLES, 5), (LIONS, -2), (EAGLES, 3)])
        await world.submit({EAGLES: 1})
        await world.deliver()
        assert await world.osm.points(EAGLES) == eagles + 9
        assert await world.osm.points(LIONS) == lions - 2
        assert await world.calls() == ["read", "write", "write"]
        given = await world.updates(first)
        assert scores(given) == [(eagles, eagles + 5), (lions, lions - 2), (eagles + 5, eagles + 8)]
        assert states(given) == ["delivered"] * 3

    story(kind, test)


def test_points_that_add_up_to_nothing_cost_no_write(kind: Kind) -> None:
    async def test(world: World) -> None:
        eagles = await world.osm.points(EAGLES)
        given = await world.submit([(EAGLES, 5), (EAGLES, -5)])
        await world.deliver()
        assert await world.calls() == ["read"]
        assert scores(await world.updates(given)) == [(eagles, eagles + 5), (eagles + 5, eagles)]

    story(kind, test)


def test_each_leader_writes_with_their_own_credential(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        await world.submit({EAGLES: 5}, ROBIN)
        await world.submit({EAGLES: 3}, HAZEL)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 8
        writers = [call["user_id"] for call in await world.osm.calls() if call.get("endpoint") == "points"]
        assert writers == [ROBIN, HAZEL]

    story(kind, test)


def test_merged_leaders_share_one_write(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        await world.submit({EAGLES: 5}, ROBIN)
        await world.submit({EAGLES: 3}, HAZEL)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 8
        assert await world.calls() == ["read", "write"]

    story(kind, test, merge_leaders=True)


DOUBTFUL: list[dict[str, object]] = [
    {"kind": "apply_then_drop"},
    {"kind": "drop_before_apply"},
    {"kind": "never_answer"},
    {"kind": "truncated"},
    {"kind": "server_error"},
    {"kind": "server_error", "applied": True},
    {"kind": "invalid_json"},
    {"kind": "wrong_structure"},
]


@pytest.mark.parametrize("fault", DOUBTFUL, ids=str)
def test_a_write_without_an_answer_of_osms_is_compared_before_it_is_done_again(
    kind: Kind, fault: dict[str, object]
) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", endpoint="points", **fault)
        await world.deliver()
        (update,) = await world.updates(given)
        assert (update.state, update.attempt_count, update.target) == ("pending", 0, before + 5)
        await world.later()
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 5
        assert states(await world.updates(given)) == ["delivered"]
        assert scores(await world.updates(given)) == [(before, before + 5)]

    story(kind, test)


@pytest.mark.parametrize("applied", [False, True])
def test_a_write_that_osm_says_no_to_is_looked_at_at_once(kind: Kind, applied: bool) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", endpoint="points", kind="error_200", applied=applied)
        await world.deliver()
        assert await world.calls() == ["read", "write", "read"]
        (update,) = await world.updates(given)
        assert (update.state, update.target) == ("delivered" if applied else "pending", None)
        await world.later()
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 5
        assert scores(await world.updates(given)) == [(before, before + 5)]

    story(kind, test)


def test_a_doubt_that_cannot_be_settled_asks_a_person_with_both_numbers(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", kind="apply_then_drop", endpoint="points")
        await world.deliver()
        await world.osm.control("points", section_id=40104, patrol_id=EAGLES, add=7)
        await world.later()
        await world.deliver()
        (update,) = await world.updates(given)
        assert (update.state, update.last_error_code) == ("dead", "needs_review")
        assert (update.base, update.target, update.found) == (before, before + 5, before + 12)
        assert await world.osm.points(EAGLES) == before + 12

    story(kind, test)


def test_one_patrol_that_is_refused_does_not_hold_the_others(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 1, LIONS: 2, WOLVES: 3})
        before = {patrol: await world.osm.points(patrol) for patrol in (EAGLES, LIONS, WOLVES)}
        await world.osm.control("fault", kind="server_error", endpoint="points", patrol_id=LIONS)
        await world.deliver()
        await world.later()
        await world.deliver()
        assert [await world.osm.points(p) - before[p] for p in (EAGLES, LIONS, WOLVES)] == [1, 2, 3]
        assert states(await world.updates(given)) == ["delivered"] * 3

    story(kind, test)


def test_a_revoked_leader_waits_and_the_rest_of_the_patrol_goes_on(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        mine, theirs = await world.submit({EAGLES: 5}, ROBIN), await world.submit({EAGLES: 3}, HAZEL)
        await world.leaders.usable(ROBIN)
        await world.osm.control("revoke", user_id=ROBIN)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 3
        assert states(await world.updates(mine)) + states(await world.updates(theirs)) == ["pending", "delivered"]
        (update,) = await world.updates(mine)
        assert update.attempt_count == 0
        await world.leaders.sign_in(ROBIN)
        await world.threads.call(world.outbox.store.open_gate, "osm-scores", f"principal:{ROBIN}")
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 8

    story(kind, test)


def test_a_rate_limit_holds_that_leader_until_then_and_spends_no_attempt(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", kind="rate_limited", retry_after=600, endpoint="points")
        await world.deliver()
        (update,) = await world.updates(given)
        assert (update.state, update.attempt_count) == ("pending", 0)
        (stats,) = [one for one in await world.threads.call(world.outbox.store.stats) if one.channel == SCORES.name]
        assert stats.last_error_at is not None
        world.notes.users.clear()
        world.notes.budgets.clear()
        await world.later(500)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before
        await world.later(101)
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 5

    story(kind, test)


def test_points_use_the_part_of_the_budget_that_is_kept_for_them(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        await world.osm.control("budget", user_id=ROBIN, remaining=9)
        await world.submit({EAGLES: 1})
        await world.deliver()  # from now on it is known how little is left
        with pytest.raises(errors.OutOfBudget):
            await world.client.patrols(await world.leaders.usable(ROBIN), SCOUTS, TERM)
        await world.submit({EAGLES: 2})
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 3

    story(kind, test)


def test_nothing_leaves_while_the_application_is_blocked(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({EAGLES: 5})
        await world.osm.control("block")
        await world.deliver()
        before = len(await world.osm.calls())
        for _ in range(3):
            await world.later(120)
            await world.deliver()
        assert len(await world.osm.calls()) == before
        (update,) = await world.updates(given)
        assert (update.state, update.attempt_count) == ("pending", 0)

    story(kind, test)


def test_a_leader_whom_osm_refuses_is_told_so_and_holds_nobody_else(kind: Kind) -> None:
    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        theirs, mine = await world.submit({EAGLES: 5}, JASPER), await world.submit({EAGLES: 3}, ROBIN)
        await world.deliver()
        (update,) = await world.updates(theirs)
        assert (update.state, update.last_error_code, update.attempt_count) == ("pending", "refused", 1)
        assert states(await world.updates(mine)) == ["delivered"]
        assert await world.osm.points(EAGLES) == before + 3

    story(kind, test)


def test_a_patrol_that_is_not_there_is_told_so(kind: Kind) -> None:
    async def test(world: World) -> None:
        given = await world.submit({999: 5, EAGLES: 1})
        await world.deliver()
        first, second = await world.updates(given)
        assert (first.state, first.last_error_code, second.state) == ("dead", "patrol_not_found", "delivered")

    story(kind, test)


def test_points_that_somebody_else_changed_are_respected_and_shown(kind: Kind) -> None:
    async def test(world: World) -> None:
        world.wall.shown[str(EAGLES)] = 1
        before = await world.osm.points(EAGLES)
        await world.submit({EAGLES: 5})
        await world.deliver()
        assert await world.osm.points(EAGLES) == before + 5
        assert world.wall.shown[str(EAGLES)] == before + 5

    story(kind, test)


def test_a_patrol_is_shown_as_soon_as_its_points_have_arrived_and_displays_are_told_once(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(world: World) -> None:
        before = {patrol: await world.osm.points(patrol) for patrol in (EAGLES, LIONS)}
        shown = []

        async def looking(*write: Any, **options: Any) -> None:
            shown.append(dict(world.wall.shown))
            await set_points(*write, **options)

        set_points = world.client.set_points
        monkeypatch.setattr(world.client, "set_points", looking)
        await world.submit({EAGLES: 5, LIONS: 3})
        await world.deliver()
        now = {str(EAGLES): before[EAGLES] + 5, str(LIONS): before[LIONS] + 3}
        assert shown == [{}, {str(EAGLES): now[str(EAGLES)]}]
        assert world.wall.told == [now]

    story(kind, test)


@pytest.mark.parametrize("fault", [None, "apply_then_drop"])
def test_points_that_have_reached_osm_are_told_with_the_score_before_and_after(
    kind: Kind, caplog: pytest.LogCaptureFixture, fault: str | None
) -> None:
    caplog.set_level(logging.INFO)

    async def test(world: World) -> None:
        before = await world.osm.points(EAGLES)
        await world.submit([(EAGLES, 5), (EAGLES, 2)])
        if fault is not None:
            await world.osm.control("fault", kind=fault, endpoint="points")
            await world.deliver()
            await world.later()
        await world.deliver()
        [told] = [record.__dict__ for record in caplog.records if record.message == "scores.applied"]
        assert (told["section"], told["patrol"], told["entries"]) == (SCOUTS, str(EAGLES), 2)
        assert (told["before"], told["after"]) == (before, before + 7)

    story(kind, test)


def test_a_database_that_is_away_in_the_middle_costs_no_attempt(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: World) -> None:
        before = {patrol: await world.osm.points(patrol) for patrol in (EAGLES, LIONS, WOLVES)}
        given = await world.submit(dict.fromkeys(before, 5))
        settle = world.scores.settle

        def away_the_second_time(*what: Any, **options: Any) -> Any:
            if any(one.entry_id == updates[1].entry_id for one in what[0]):
                raise StoreUnavailable("gone")
            return settle(*what, **options)

        updates = await world.updates(given)
        monkeypatch.setattr(world.scores, "settle", away_the_second_time)
        await world.deliver()
        monkeypatch.undo()
        assert states(await world.updates(given)) == ["delivered", "pending", "pending"]
        assert [update.attempt_count for update in await world.updates(given)] == [1, 0, 0]
        await world.later()
        await world.deliver()
        assert states(await world.updates(given)) == ["delivered"] * 3
        assert {patrol: await world.osm.points(patrol) - before[patrol] for patrol in before} == dict.fromkeys(
            before, 5
        )

    story(kind, test)
