"""Everything between Carrick and OSM answers in OSM's place, on every call, for a long evening; points count once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from carrick_scoreboard.patrols.patrols import Patrols
from carrick_scoreboard.store.scores import Submission
from tests.contract.scores.strangers import ON_THE_WAY_BACK, STRANGERS
from tests.contract.scores.whole import Whole, whole
from tests.contract.scores.world import PATIENCE_SECONDS, Kind
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, simulated

CALLS = ("resource", "patrols", "points", "token")
ROUNDS = 20
LONG_SECONDS = 4000
"""Longer than any gate is closed, and than tokens last."""


async def round_of(there: Whole, waiting: list[Submission], seconds: float) -> list[Submission]:
    """One delivery, and what a leader does who is asked to sign in; what waits after it. Nothing else is left."""
    await there.deliver()
    states = {one.id: await there.states(one) for one in waiting}
    assert {state for some in states.values() for state in some} <= {"pending", "delivered"}
    await there.osm.control("clear-faults")
    await there.later(seconds)
    there.now += timedelta(hours=12)
    for user_id in (ROBIN, HAZEL):
        if await there.parts.credentials.is_revoked(user_id):
            await there.sign_in(user_id)
    return [one for one in waiting if "pending" in states[one.id]]


def test_a_storm_of_strangers_on_every_call_loses_doubles_and_ends_no_points(kind: Kind) -> None:
    async def main() -> None:
        chance = Random(22)
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            before = {patrol: await osm.points(patrol) for patrol in (EAGLES, LIONS)}
            given = dict.fromkeys(before, 0)
            for user_id in (ROBIN, HAZEL):
                await there.sign_in(user_id)
            waiting: list[Submission] = []
            for number in range(ROUNDS):
                for user_id, patrol in ((ROBIN, EAGLES), (HAZEL, LIONS), (HAZEL, EAGLES)):
                    points = chance.randint(1, 9)
                    waiting.append(await there.submit({patrol: points}, user_id))
                    given[patrol] += points
                for endpoint in CALLS:
                    if endpoint == CALLS[number % len(CALLS)] or chance.random() < 0.25:
                        fault = chance.choice(STRANGERS + ON_THE_WAY_BACK)
                        await osm.control("fault", endpoint=endpoint, **fault)
                waiting = await round_of(there, waiting, LONG_SECONDS if number % 3 == 0 else 1000)
            answered = {call["endpoint"] for call in await osm.calls(limit=1000) if call["fault"]}
            assert answered == set(CALLS)
            for _ in range(4):
                waiting = await round_of(there, waiting, LONG_SECONDS)
            assert waiting == []
            assert {patrol: await osm.points(patrol) - before[patrol] for patrol in before} == given

    asyncio.run(main())


def test_a_stop_during_a_refresh_of_tokens_waits_for_the_new_ones(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        closing = asyncio.Event()
        close = Patrols.close

        async def told(patrols: Patrols) -> None:
            closing.set()
            await close(patrols)

        monkeypatch.setattr(Patrols, "close", told)
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm:
            async with whole(osm, kind) as there:
                await there.sign_in(seconds=60)
                await osm.control("hold", name="refresh", point="before_answer", endpoint="token")
                gone = asyncio.create_task(there.parts.credentials.usable(ROBIN))
                await osm.reached("refresh")
                gone.cancel()
                stopping = asyncio.create_task(there.parts.close())
                await closing.wait()
                await osm.control("release", name="refresh")
                await stopping
            async with whole(osm, kind) as again:
                credential = await again.parts.credentials.usable(ROBIN)
                assert (await again.parts.client.profile(credential.access_token)).user_id == ROBIN
            assert [call["endpoint"] for call in await osm.calls()].count("token") == 1

    asyncio.run(main())
