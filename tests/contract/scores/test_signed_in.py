"""Points behind a leader's sign-in: the gate closes for tokens that are the leader's still, and opens with new ones."""

from __future__ import annotations

import asyncio

import pytest

from carrick_scoreboard import credentials
from carrick_scoreboard.credentials import Credentials
from carrick_scoreboard.delivery import SCORES, ScoreSink
from carrick_scoreboard.holding import Holding
from carrick_scoreboard.osm.answers import Profile
from carrick_scoreboard.osm.client import Tokens
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.store.credentials import StoredCredentials
from tests.contract.scores.whole import whole
from tests.contract.scores.world import PATIENCE_SECONDS, Kind, Wall, World, story
from tests.osm import EAGLES, HAZEL, ROBIN, TERM, simulated

GATE = f"principal:{ROBIN}"
YEARS = 10 * 365 * 86_400


class Real:
    """The keeping of credentials as the service has it, beside a world."""

    def __init__(self, world: World, key: str = "test") -> None:
        self._world = world
        stored = StoredCredentials(world.tables)
        self.holding = Holding(world.outbox.store, stored, world.threads)
        self.credentials = Credentials(
            stored,
            KeyRing({key: b"k" * 32}),
            world.client,
            world.threads,
            "replica",
            revoked=self.holding.revoked,
            signed_in=self.holding.signed_in,
        )
        self.sink = ScoreSink(
            world.scores, world.threads, world.client, self.credentials, self._term, Wall(), self.holding.hold
        )

    async def _term(self, *_: object) -> int:
        return TERM

    async def sign_in(self) -> None:
        given = await self._world.osm.control("tokens", user_id=ROBIN)
        tokens = Tokens(access_token=given["access_token"], refresh_token=given["refresh_token"], expires_in=3600)
        await self.credentials.sign_in(tokens, Profile(user_id=ROBIN))


def test_a_401_about_old_tokens_does_not_hold_a_leader_who_has_new_ones(kind: Kind) -> None:
    async def test(world: World) -> None:
        real, before = Real(world), await world.osm.points(EAGLES)
        await real.sign_in()
        given = await world.submit({EAGLES: 5})
        for endpoint in ("patrols", "points"):
            await world.osm.control("fault", kind="unauthorized", endpoint=endpoint)
            await world.osm.control("hold", name=endpoint, point="before_answer", endpoint=endpoint)
        delivering = asyncio.create_task(world.deliver(real.sink))
        for endpoint in ("patrols", "points"):
            await world.osm.reached(endpoint)
            await real.sign_in()
            await world.osm.control("release", name=endpoint)
        await delivering
        assert await world.gate(GATE) is None
        (update,) = await world.updates(given)
        assert (update.state, update.attempt_count) == ("delivered", 1)
        assert await world.osm.points(EAGLES) == before + 5

    story(kind, test)


def test_a_401_about_the_tokens_in_use_holds_the_leader_until_they_sign_in(kind: Kind) -> None:
    async def test(world: World) -> None:
        real = Real(world)
        await real.sign_in()
        given = await world.submit({EAGLES: 5})
        await world.osm.control("fault", kind="unauthorized", endpoint="patrols")
        await world.deliver(real.sink)
        assert await world.gate(GATE) == "auth_revoked"
        await real.sign_in()
        assert await world.gate(GATE) is None
        await world.deliver(real.sink)
        assert [update.state for update in await world.updates(given)] == ["delivered"]

    story(kind, test)


def test_who_closes_the_gate_after_the_leader_has_signed_in_again_opens_it(kind: Kind) -> None:
    """As when the sign-in comes between the note that tokens were refused and the gate."""

    async def test(world: World) -> None:
        real = Real(world)
        await real.sign_in()
        await real.holding.revoked(ROBIN)
        assert await world.gate(GATE) is None

    story(kind, test)


def test_a_sign_in_ends_what_osm_refused_before(kind: Kind) -> None:
    async def test(world: World) -> None:
        real = Real(world)
        await real.sign_in()
        await real.holding.hold(ROBIN, 3600, "refused: You may not do this")
        await world.threads.call(world.outbox.store.close_gate, SCORES.name, "tenant:1", 3600, "auth_revoked")
        await real.sign_in()
        assert await world.gate(GATE) is None
        assert await world.gate("tenant:1") is not None

    story(kind, test)


def test_tokens_that_no_key_opens_hold_their_leader_and_cost_no_attempt(kind: Kind) -> None:
    async def test(world: World) -> None:
        await Real(world).sign_in()
        given = await world.submit({EAGLES: 5})
        await world.deliver(Real(world, key="another").sink)
        (update,) = await world.updates(given)
        assert (update.state, update.attempt_count) == ("pending", 0)
        assert str(await world.gate(GATE)).startswith("misconfigured: ")
        await world.later()
        await world.deliver(Real(world).sink)
        assert [update.state for update in await world.updates(given)] == ["delivered"]

    story(kind, test)


def test_tokens_that_cannot_be_renewed_now_hold_nobody_but_their_leader(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a replica has died while it renewed them."""
    monkeypatch.setattr(credentials, "LOOKS", 1)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            await there.sign_in(ROBIN, seconds=1)
            await there.sign_in(HAZEL)
            generation = (await there.parts.threads.call(there.parts.stored.get, ROBIN)).generation  # type: ignore[union-attr]
            assert await there.parts.threads.call(there.parts.stored.begin_refresh, ROBIN, generation, "died", 60.0)
            mine, theirs = await there.submit({EAGLES: 5}, ROBIN), await there.submit({EAGLES: 3}, HAZEL)
            await there.deliver()
            assert (await there.states(mine), await there.states(theirs)) == (["pending"], ["delivered"])
            await there.later(61)
            await there.deliver()
            assert await there.states(mine) == ["delivered"]

    asyncio.run(main())


def test_tokens_whose_renewal_began_while_the_clock_was_years_ahead_are_renewed(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LOOKS", 1)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), simulated() as osm, whole(osm, kind) as there:
            await there.sign_in(seconds=1)
            generation = (await there.parts.threads.call(there.parts.stored.get, ROBIN)).generation  # type: ignore[union-attr]
            await there.later(YEARS)
            assert await there.parts.threads.call(there.parts.stored.begin_refresh, ROBIN, generation, "died", 60.0)
            await there.later(-YEARS)
            assert (await there.parts.credentials.usable(ROBIN)).user_id == ROBIN
            assert "token" in [call["endpoint"] for call in await osm.calls()]

    asyncio.run(main())
