"""Points on their way to a simulated OSM, on every kind of database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from uuid import uuid4

from carrick.outbox.outbox import Outbox
from carrick.outbox.store import Store
from carrick.outbox.transitions import CRASHES_UNTIL_DEAD
from carrick.relay.meter import Tally
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.threads import Threads
from carrick.sinks.sink import Sink
from carrick.testing import Clock
from carrick_scoreboard.delivery import SCORES, ScoreSink
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.client import Application, Credential, OsmClient
from carrick_scoreboard.rounds import Board
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.scores import NewUpdate, Scores, Submission, Update
from carrick_scoreboard.store.tables import Tables
from tests.osm import EVENING, ROBIN, SCOUTS, TERM, Osm, simulated
from tests.unit.scoreboard.osm.test_client import Calls, Notes

PATIENCE_SECONDS = 60


class Kind:
    """One kind of database: opens tables and an outbox of it."""

    def __init__(self, url: str, tables: Callable[[], Tables], clock: Clock) -> None:
        self.url = url
        self.tables = tables
        self.clock = clock


def bury(store: Store, clock: Clock) -> None:
    """What waits in the channel of scores kills its workers, and so dies."""
    for _ in range(CRASHES_UNTIL_DEAD):
        assert store.claim(SCORES.name, "dies", lease_seconds=1)
        clock.shift(1000)
    assert store.release_expired(SCORES.name) == 1


class Leaders:
    """Credentials without their keeping: a token of the simulator each."""

    def __init__(self, osm: Osm) -> None:
        self._osm = osm
        self.revoked: set[int] = set()
        self._tokens: dict[int, str] = {}

    async def usable(self, user_id: int) -> Credential:
        if user_id in self.revoked:
            raise errors.AuthRevoked
        if user_id not in self._tokens:
            self._tokens[user_id] = await self._osm.token(user_id)
        return Credential(user_id, self._tokens[user_id])

    async def refused(self, credential: Credential) -> bool:
        if credential.access_token != self._tokens[credential.user_id]:
            return False
        self.revoked.add(credential.user_id)
        return True

    async def leaders_of(self, _: int) -> list[int]:
        return []

    async def sign_in(self, user_id: int) -> None:
        self.revoked.discard(user_id)
        self._tokens[user_id] = await self._osm.token(user_id)


class Wall:
    """A display that remembers what it was told."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}
        self.told: list[dict[str, int]] = []
        """What was to be seen whenever it was told to look."""

    async def seen(self, _: int) -> Mapping[str, int]:
        return self.shown

    async def show(self, _: int, patrol_id: str, score: int) -> None:
        self.shown[patrol_id] = score

    async def tell(self, _: int) -> None:
        self.told.append(dict(self.shown))


class World:
    """One replica of the scoreboard's way out, and the OSM it goes to."""

    wall: Wall

    def __init__(self, osm: Osm, kind: Kind, leaders: Leaders, wall: Board, *, merge_leaders: bool = False) -> None:
        self._stack = ExitStack()
        self.osm = osm
        self.leaders = leaders
        self.clock = kind.clock
        self.threads = Threads(4)
        self._stack.callback(self.threads.close)
        self.tables = self._stack.enter_context(closing(kind.tables()))
        self.scores = Scores(self.tables)
        self.outbox = self._stack.enter_context(Outbox.connect(kind.url))
        self.outbox.store.declare(SCORES)
        self.notes = Notes()
        application = Application(osm.url, "carrick-demo", "not-a-secret")
        self.client = OsmClient(application, self.notes, Calls(), timeout_seconds=1.0, now=lambda: EVENING)
        self.sink = ScoreSink(
            self.scores,
            self.threads,
            self.client,
            leaders,
            self._term,
            wall,
            self._shut,
            merge_leaders=merge_leaders,
            now=lambda: EVENING,
        )

    async def close(self) -> None:
        await self.client.close()
        await asyncio.to_thread(self._stack.close)

    async def _term(self, _: int, __: Credential) -> int:
        return TERM

    async def _shut(self, user_id: int, seconds: float | None, reason: str) -> None:
        await self.threads.call(
            self.outbox.store.close_gate, SCORES.name, f"principal:{user_id}", seconds, reason, closed_by="destination"
        )

    async def submit(
        self,
        points: Mapping[int, int] | list[tuple[int, int]],
        user_id: int = ROBIN,
        *,
        key: str | None = None,
        delay: float | None = None,
    ) -> Submission:
        """A leader gives points to patrols."""
        pairs = list(points.items()) if isinstance(points, Mapping) else points
        updates = [NewUpdate(patrol_id=str(patrol), points=given) for patrol, given in pairs]
        return await self.threads.call(
            self.scores.submit,
            self.outbox,
            user_id,
            key or str(uuid4()),
            digest(str(pairs)),
            SCOUTS,
            updates,
            delay=delay,
        )

    async def updates(self, submission: Submission) -> list[Update]:
        return await self.threads.call(self.scores.updates, submission.id)

    async def deliver(self, sink: Sink | None = None) -> Tally:
        """What is due goes out."""
        settings = RelaySettings(owner="replica", in_flight=1, poll_seconds=600)
        return await Relay(self.outbox.store, sink or self.sink, SCORES, settings).once()

    async def gate(self, scope: str) -> str | None:
        """Why the gate is closed, if it is."""
        gates = await self.threads.call(self.outbox.store.gates, SCORES.name)
        return next((gate.reason for gate in gates if gate.scope == scope), None)

    async def later(self, seconds: float = 1000.0) -> None:
        await asyncio.to_thread(self.clock.shift, seconds)

    async def calls(self) -> list[str]:
        """What OSM was asked, call by call: `read` or `write`."""
        names = {"patrols": "read", "points": "write"}
        return [names[call["endpoint"]] for call in await self.osm.calls() if call.get("endpoint") in names]


@asynccontextmanager
async def world(kind: Kind, *, merge_leaders: bool = False) -> AsyncIterator[World]:
    """A simulator and one replica."""
    async with simulated() as osm:
        wall = Wall()
        there = World(osm, kind, Leaders(osm), wall, merge_leaders=merge_leaders)
        there.wall = wall
        try:
            yield there
        finally:
            await there.close()


def story(kind: Kind, test: Callable[[World], Awaitable[None]], *, merge_leaders: bool = False) -> None:
    """Run a test in a fresh world; one that hangs fails."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), world(kind, merge_leaders=merge_leaders) as there:
            await test(there)

    asyncio.run(main())
