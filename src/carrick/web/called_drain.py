"""A drain that is called: `POST /api/v1/drain` makes one bounded run. For cron services that only call an address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from carrick.outbox.store import Store
from carrick.relay.crew import Leg, run_crew_once
from carrick.relay.meter import Meter
from carrick.relay.relay import RelaySettings
from carrick.relay.report import RunReport, report_of
from carrick.web.probes import described, liveness, readiness
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick.web.tokens import AdminToken

RETRY_SECONDS = 10


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """It can be called."""

    status: str = "ready"


class CalledDrain:
    """One run at a time; who calls meanwhile is told so."""

    def __init__(
        self,
        store: Store,
        legs: Callable[[], Sequence[Leg]],
        settings: RelaySettings,
        token: AdminToken,
        *,
        seconds: float,
        meter: Meter,
    ) -> None:
        self._store = store
        self._legs = legs
        self._settings = settings
        self._token = token
        self._seconds = seconds
        self._meter = meter
        self._running = asyncio.Lock()
        self._enough = asyncio.Event()
        self._is_stopping = False
        self._reached: set[str] = set()
        """The channels that the last run came to; the others go first in the next one."""

    def routes(self) -> list[Route]:
        """What it answers."""
        drain = Route(
            method="POST",
            path="/api/v1/drain",
            summary="One bounded run: deliver what is due, remove what is past its retention; one run at a time",
            handle=self._drain,
            gives=RunReport,
            problems=[401, 409, 429, 503],
            guards=[self._token.admit],
        )
        return described(
            "Carrick drain", "Delivers when it is called.", [liveness(), readiness(self._ready, Ready()), drain]
        )

    async def stop(self) -> None:
        """Take no more calls, and end the run that is under way as a relay does: within its grace time."""
        self._is_stopping = True
        self._enough.set()
        async with self._running:
            pass

    async def _ready(self) -> None:
        await asyncio.to_thread(self._store.check_schema)

    async def _drain(self, _: Call[Any, Any]) -> RunReport:
        if self._is_stopping:
            raise Problem(503, "stopping", "this drain is being stopped", retry_after=RETRY_SECONDS)
        if self._running.locked():
            raise Problem(409, "under_way", "a run is under way; one at a time", retry_after=RETRY_SECONDS)
        async with self._running:
            return await self._run()

    async def _run(self) -> RunReport:
        """What is due now and becomes due meanwhile; after the time that a run may take nothing more is claimed."""
        self._enough.clear()
        bound = asyncio.get_running_loop().call_later(self._seconds, self._enough.set)
        try:
            legs = sorted(self._legs(), key=lambda leg: leg.channel.name in self._reached)
            totals = await run_crew_once(self._store, legs, self._settings, self._enough, self._meter)
        finally:
            bound.cancel()
        self._reached = set(totals)
        return await asyncio.to_thread(report_of, self._store, totals)
