"""Two replicas and two leaders at once, requests that come twice, and holders that wake up too late."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from carrick_scoreboard.store.scores import AlreadyUndone, NewUpdate, Reused
from tests.asleep import sleeping
from tests.contract.scores.world import PATIENCE_SECONDS, Kind, Leaders, Wall, World, story, world
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, SCOUTS


def two_replicas(kind: Kind, test: object) -> None:
    """A story with two replicas of one database."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), world(kind) as first:
            second = World(first.osm, kind, Leaders(first.osm), Wall())
            try:
                await test(first, second)  # type: ignore[operator]
            finally:
                await second.close()

    asyncio.run(main())


def test_two_leaders_on_two_replicas_between_read_and_write_add_up(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        before = await first.osm.points(EAGLES)
        await first.submit({EAGLES: 5}, ROBIN)
        await first.osm.control("hold", name="write", point="before_apply", endpoint="points")
        first.client.timeout_seconds = 30
        delivering = asyncio.create_task(first.deliver())
        await first.osm.reached("write")
        given = await second.submit({EAGLES: 3, LIONS: 1}, HAZEL)
        await second.deliver()  # the patrol is somebody's; the other one is not
        assert [update.state for update in await second.updates(given)] == ["pending", "delivered"]
        await first.osm.control("release", name="write")
        await delivering
        await second.deliver()
        assert await first.osm.points(EAGLES) == before + 8

    two_replicas(kind, test)


def test_a_holder_that_wakes_up_after_its_lease_does_not_write(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        before = await first.osm.points(EAGLES)
        await first.submit({EAGLES: 5})
        await first.osm.control("hold", name="read", point="before_answer", endpoint="patrols")
        first.client.timeout_seconds = 30
        stalled = asyncio.create_task(first.deliver())
        await first.osm.reached("read")
        await first.later()
        assert (await second.deliver()).delivered == 1
        await first.osm.control("release", name="read")
        assert (await stalled).lost == 1
        assert await first.osm.points(EAGLES) == before + 5
        assert (await first.calls()).count("write") == 1

    two_replicas(kind, test)


def test_a_write_does_not_leave_after_the_machine_has_slept_through_the_lease(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = sleeping(monkeypatch)

    async def test(there: World) -> None:
        doubt, nights = there.scores.doubt, [1000.0]

        def asleep(*write: Any) -> str:
            sleep(nights.pop() if nights else 0)
            return doubt(*write)

        monkeypatch.setattr(there.scores, "doubt", asleep)
        await there.submit({EAGLES: 5})
        await there.deliver()
        assert await there.calls() == ["read", "read", "write"]

    story(kind, test)


def test_a_holder_that_wakes_up_after_its_note_does_not_hide_the_doubt_of_the_next_one(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(first: World, second: World) -> None:
        before, noted, go_on = await first.osm.points(EAGLES), threading.Event(), threading.Event()
        doubt = first.scores.doubt

        def stalling(*write: Any) -> str:
            noted.set()
            assert go_on.wait(PATIENCE_SECONDS)
            return doubt(*write)

        monkeypatch.setattr(first.scores, "doubt", stalling)
        await first.submit({EAGLES: 5})
        stalled = asyncio.create_task(first.deliver())
        await asyncio.to_thread(noted.wait)
        await first.later()
        await first.osm.control("hold", name="write", point="after_apply", endpoint="points")
        second.client.timeout_seconds = 30
        delivering = asyncio.create_task(second.deliver())
        await first.osm.reached("write")
        go_on.set()
        assert (await stalled).lost == 1
        assert len(await second.threads.call(second.scores.doubts, SCOUTS)) == 1
        await first.osm.control("release", name="write")
        await delivering
        assert await first.osm.points(EAGLES) == before + 5

    two_replicas(kind, test)


def test_a_request_that_arrives_long_after_its_caller_has_gone_counts_once(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        before = await first.osm.points(EAGLES)
        given = await first.submit({EAGLES: 5})
        await first.osm.control("hold", name="late", point="before_apply", endpoint="points")
        await first.deliver()  # gives up after its timeout; the request is still on its way
        assert await first.osm.points(EAGLES) == before
        await first.osm.control("release", name="late")
        await first.osm.calls(finished=2)
        await second.later()
        await second.deliver()
        assert await first.osm.points(EAGLES) == before + 5
        assert [update.state for update in await second.updates(given)] == ["delivered"]

    two_replicas(kind, test)


def test_twenty_copies_of_one_request_have_one_effect_and_one_answer(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        before = await first.osm.points(EAGLES)
        copies = [replica.submit({EAGLES: 5}, key="same") for _ in range(10) for replica in (first, second)]
        answers = await asyncio.gather(*copies)
        assert len({answer.id for answer in answers}) == 1
        await first.deliver()
        assert await first.osm.points(EAGLES) == before + 5
        assert (await second.submit({EAGLES: 5}, key="same")).id == answers[0].id

    two_replicas(kind, test)


@pytest.mark.parametrize("wild", ["%", "_", "same%", "_ame"])
def test_a_key_matches_nothing_but_itself(kind: Kind, wild: str) -> None:
    async def test(first: World, _: World) -> None:
        one, other = await first.submit({EAGLES: 5}, key="same"), await first.submit({EAGLES: 5}, key=wild)
        assert one.id != other.id

    two_replicas(kind, test)


def test_two_users_with_one_key_are_two_submissions(kind: Kind) -> None:
    async def test(first: World, _: World) -> None:
        before = await first.osm.points(EAGLES)
        await first.submit({EAGLES: 5}, ROBIN, key="same")
        await first.submit({EAGLES: 5}, HAZEL, key="same")
        await first.deliver()
        assert await first.osm.points(EAGLES) == before + 10

    two_replicas(kind, test)


def test_a_key_with_another_body_is_refused_and_nothing_is_written(kind: Kind) -> None:
    async def test(first: World, _: World) -> None:
        given = await first.submit({EAGLES: 5}, key="same")
        with pytest.raises(Reused):
            await first.submit({EAGLES: 6}, key="same")
        assert [update.points for update in await first.updates(given)] == [5]
        assert await first.threads.call(first.scores.waiting, ROBIN) == 1

    two_replicas(kind, test)


def test_points_are_taken_back_once(kind: Kind) -> None:
    async def test(first: World, second: World) -> None:
        given = await first.submit({EAGLES: 5})
        await first.deliver()
        (update,) = await first.updates(given)

        async def undo(replica: World, key: str) -> object:
            back = [NewUpdate(patrol_id=update.patrol_id, points=-5, undo_of=update.id)]
            submit = replica.scores.submit
            return await replica.threads.call(submit, replica.outbox, ROBIN, key, "d" * 64, SCOUTS, back, delay=None)

        both = await asyncio.gather(undo(first, "u1"), undo(second, "u2"), return_exceptions=True)
        assert [isinstance(one, AlreadyUndone) for one in both].count(True) == 1
        await first.deliver()
        assert await first.threads.call(first.scores.waiting, ROBIN) == 0

    two_replicas(kind, test)
