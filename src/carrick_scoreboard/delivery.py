"""The sink of channel `osm-scores`: points on their way to OSM, which can neither compare-and-set nor tell a retry.

`rounds.py` has what happens with the points of one claim.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from carrick.outbox.channel import Channel, Mode
from carrick.relay.threads import Threads
from carrick.sinks.sink import Delivery, Report, Sink
from carrick_scoreboard.osm.client import OsmClient
from carrick_scoreboard.osm_access import OsmAccess, Shut, Signed, TermOf
from carrick_scoreboard.rounds import SETTLE_SECONDS, Board, Round
from carrick_scoreboard.store.scores import CHANNEL, Scores

SCORES = Channel(
    name=CHANNEL,
    mode=Mode.COALESCE,
    one_tenant=True,
    max_attempts=10,
    backoff_base_seconds=60.0,
    backoff_cap_seconds=8 * 3_600.0,
    retention_days=1.0,
    dead_retention_days=30.0,
)
"""Points wait long rather than get lost: what retries for hours may be an evening's work."""


class ScoreSink(Sink):
    """Hands claims to OSM, a section at a time."""

    def __init__(
        self,
        scores: Scores,
        threads: Threads,
        client: OsmClient,
        signed: Signed,
        term_of: TermOf,
        board: Board,
        shut: Shut,
        *,
        merge_leaders: bool = False,
        settle_seconds: float = SETTLE_SECONDS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._osm = OsmAccess(client, signed, term_of, shut, now)
        self._scores = scores
        self._threads = threads
        self._board = board
        self._merge_leaders = merge_leaders
        self._settle_seconds = settle_seconds

    async def deliver(self, delivery: Delivery) -> Report:
        """Bring the points of one section to OSM."""
        round_ = Round(
            delivery,
            self._osm,
            self._scores,
            self._threads,
            self._board,
            merge_leaders=self._merge_leaders,
            settle_seconds=self._settle_seconds,
        )
        return await round_.run()

    async def reachable(self) -> bool:
        """Whether OSM can be connected to."""
        return await self._osm.client.reachable()

    async def close(self) -> None:
        """Holds nothing of its own."""
