"""All parts of a scoreboard as the service puts them together, without its HTTP server, and a simulated OSM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from datetime import datetime
from uuid import uuid4

from carrick import wiring
from carrick.outbox.outbox import Outbox
from carrick.relay.meter import Tally
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.threads import Threads
from carrick.settings import read_settings
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.osm.client import Application, Tokens
from carrick_scoreboard.parts import Parts, put_together
from carrick_scoreboard.sealing import KeyRing, digest
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.store.scores import NewUpdate, Submission, Update
from tests.contract.scores.world import Kind
from tests.osm import EVENING, ROBIN, SCOUTS, Osm
from tests.service import NOWHERE

KEYS = KeyRing({"test": b"k" * 32})


class Whole:
    """One replica. `now` is its time at OSM; its database has a clock of its own."""

    def __init__(self, osm: Osm, kind: Kind) -> None:
        self.osm = osm
        self.now: datetime = EVENING
        self._clock = kind.clock
        self._stack = ExitStack()
        self._threads = Threads(4)
        self._stack.callback(self._threads.close)
        tables = self._stack.enter_context(closing(kind.tables()))
        self.outbox = self._stack.enter_context(Outbox.connect(kind.url))
        self.outbox.store.declare(SCORES)
        settings = ScoreboardSettings(osm=Application(osm.url, "carrick-demo", "not-a-secret"), keys=KEYS)
        state = wiring.shared_state(read_settings({"DATABASE_URL": kind.url}, NOWHERE), self._threads)
        self.parts: Parts = put_together(
            settings, tables, self.outbox, state, self._threads, KEYS, "replica", now=lambda: self.now
        )

    async def close(self) -> None:
        await self.parts.close()
        await asyncio.to_thread(self._stack.close)

    async def sign_in(self, user_id: int = ROBIN, seconds: int = 3600) -> None:
        """The leader has signed in; the access token is good for so long."""
        pair = await self.osm.control("tokens", user_id=user_id)
        tokens = Tokens(access_token=pair["access_token"], refresh_token=pair["refresh_token"], expires_in=seconds)
        await self.parts.credentials.sign_in(tokens, await self.parts.client.profile(tokens.access_token))

    async def submit(self, points: Mapping[int, int], user_id: int = ROBIN, section_id: int = SCOUTS) -> Submission:
        """A leader gives points to patrols."""
        updates = [NewUpdate(patrol_id=str(patrol), points=given) for patrol, given in points.items()]
        return await self._threads.call(
            self.parts.scores.submit,
            self.outbox,
            user_id,
            str(uuid4()),
            digest(str(points)),
            section_id,
            updates,
            delay=None,
        )

    async def states(self, submission: Submission) -> list[str | None]:
        """What became of its updates."""
        return [update.state for update in await self.updates(submission)]

    async def updates(self, submission: Submission) -> list[Update]:
        return await self._threads.call(self.parts.scores.updates, submission.id)

    async def deliver(self) -> Tally:
        """What is due goes out."""
        settings = RelaySettings(owner="replica", in_flight=1, poll_seconds=600)
        return await Relay(self.outbox.store, self.parts.score_sink, SCORES, settings).once()

    async def later(self, seconds: float) -> None:
        await asyncio.to_thread(self._clock.shift, seconds)


@asynccontextmanager
async def whole(osm: Osm, kind: Kind) -> AsyncIterator[Whole]:
    """A replica that is closed in the end."""
    there = Whole(osm, kind)
    try:
        yield there
    finally:
        await there.close()
