"""The scoreboard as a whole: pages, device API, metrics and upkeep in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web

from carrick.console.api import Console
from carrick.console.history import History
from carrick.ops.metrics import Metrics
from carrick.outbox.outbox import Outbox
from carrick.relay.crew import Leg, run_crew
from carrick.relay.meter import Meter, Meters
from carrick.relay.relay import RelaySettings
from carrick.relay.threads import Threads
from carrick.relay.wake import Bells
from carrick.settings import Settings
from carrick.state import upkeep as state_upkeep
from carrick.state.shared import SharedState
from carrick.web.headers import secure
from carrick.web.probes import described
from carrick.web.routes import Route, application
from carrick.web.server import metrics_app, serving
from carrick.web.tokens import AdminToken
from carrick_scoreboard import upkeep
from carrick_scoreboard.console import ScoreboardPlug
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.parts import Parts, put_together
from carrick_scoreboard.routes import admin_login, admin_logout, apps, device_flow, device_socket, front, pages, patrols
from carrick_scoreboard.routes.admin_scores import ScoreApi
from carrick_scoreboard.routes.admin_sections import SectionApi
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.store.tables import Tables

log = logging.getLogger("carrick.scoreboard")

THREADS = 8
"""Calls of the database that are under way at once; the others wait for their turn."""
MAX_BODY_BYTES = 256 * 1024
UNUSED_DAYS = 7
"""Credentials that nobody needs are forgotten after so long."""
"""Submissions are recognised for so long: a phone may be offline for a camp."""
TITLE = "Carrick scoreboard"
DESCRIPTION = "Patrol scores of Online Scout Manager for displays, and the sign-in of displays (RFC 8628)."

Started = Callable[[int, int], None]
OpenState = Callable[[Threads], SharedState]
"""Opens shared state, whose calls of the database run in the threads."""


def routes(parts: Parts) -> list[Route]:
    """Every route but the service's own: this is where parts plug in."""
    settings, devices, clients, threads = parts.settings, parts.devices, parts.clients, parts.threads
    with_marks = [
        *pages.routes(settings, devices, clients, threads, parts.state, parts.keys, parts.sign_in, parts.now),
        *admin_login.routes(settings, parts.leaders, parts.sign_in, parts.limits, parts.now),
        *admin_logout.routes(settings, parts.leaders, parts.keys),
        *ScoreApi(parts.leaders, parts.desk, parts.scores, threads).routes(),
        *SectionApi(
            parts.leaders,
            parts.patrols,
            parts.shelf,
            parts.sections,
            parts.boards,
            devices,
            threads,
            settings.exposed_domain,
        ).routes(),
    ]
    return [
        *patrols.routes(parts.patrols, parts.admission),
        *device_socket.routes(parts.sockets),
        *device_flow.routes(settings, devices, clients, threads, parts.limits),
        *(msgspec.structs.replace(route, has_marks=True) for route in with_marks),
        *parts.board_pages.routes(),
        *apps.routes(),
    ]


def duties(parts: Parts) -> Mapping[str, upkeep.Duty]:
    """What one replica does every six hours, by name."""
    call, keep = parts.threads.call, parts.settings

    async def devices() -> int:
        expired = len(await call(parts.devices.tidy))
        return expired + await call(parts.devices.forget, days=keep.device_retention_days)

    async def sessions() -> int:
        return await call(parts.sessions.tidy)

    async def credentials() -> int:
        cleaned = len(await call(parts.stored.clean, UNUSED_DAYS))
        parts.score_meter.cleaned(cleaned)
        return cleaned

    async def scores() -> int:
        return await call(parts.scores.tidy, days=keep.score_retention_days)

    async def boards() -> int:
        return await call(parts.boards.tidy, days=keep.board_retention_days)

    async def audit() -> int:
        return await call(parts.audit.tidy, days=keep.audit_retention_days)

    every: dict[str, upkeep.Duty] = {"devices": devices, "sessions": sessions, "scores": scores, "boards": boards}
    return {**every, "audit": audit, "credentials": credentials, "gates": parts.holding.reconcile}


class Scoreboard:
    """Runs once. Tables and store are closed when it ends. `is_demo`: see `Door`."""

    def __init__(
        self,
        tables: Tables,
        outbox: Outbox,
        open_state: OpenState,
        keys: KeyRing,
        settings: Settings,
        own: ScoreboardSettings,
        *,
        is_demo: bool = False,
    ) -> None:
        self._tables = tables
        self._outbox = outbox
        self._store = outbox.store
        self._open_state = open_state
        self._keys = keys
        self._settings = settings
        self._own = own
        self._is_demo = is_demo
        self._threads = Threads(THREADS)
        self._metrics = Metrics(self._store)
        self._history = History(self._metrics)
        self._bells = Bells(self._store)

    async def run(self, stopping: asyncio.Event, started: Started) -> None:
        """Serve until `stopping` is set; `started` is told the two ports. Requests under way are answered."""
        told_to_stop = asyncio.create_task(_moment_of(stopping))
        try:
            state = self._open_state(self._threads)
            owner = self._settings.instance_id
            parts = put_together(self._own, self._tables, self._outbox, state, self._threads, self._keys, owner)
            try:
                await self._serve(parts, stopping, started)
            finally:
                await parts.close(self._settings.sync_grace_seconds - _seconds_since(told_to_stop))
        finally:
            told_to_stop.cancel()
            self._threads.close()
            self._tables.close()
            self._outbox.close()

    async def _serve(self, parts: Parts, stopping: asyncio.Event, started: Started) -> None:
        settings = self._settings
        limits, trusted = settings.web, settings.trusted_proxies
        self._metrics.add_state(lambda: parts.state.health)
        await parts.state.look()
        async with (
            serving(self._app(parts), settings.host, settings.port, limits=limits, trusted=trusted) as port,
            serving(self._figures(parts), settings.host, settings.metrics_port, "METRICS_PORT", limits=limits) as at,
        ):
            started(port, at)
            await self._work(parts, stopping, Meters(self._history, parts.score_meter))

    def _app(self, parts: Parts) -> web.Application:
        every = [*front.routes(lambda: self._look(parts)), *routes(parts)]
        console = Console(
            self._store,
            self._threads,
            self._settings,
            AdminToken(self._settings.admin_token, self._settings.trusted_proxies),
            service="scoreboard",
            history=self._history,
            plug=ScoreboardPlug(self._tables, parts),
            is_demo=self._is_demo,
        )
        app = application(
            [*described(TITLE, DESCRIPTION, every), *console.routes()],
            max_body_bytes=MAX_BODY_BYTES,
            trusted=self._settings.trusted_proxies,
        )
        console.attach(app)
        secure(app, is_https=self._own.is_https)

        async def hang_up(_: web.Application) -> None:
            await parts.sockets.close()
            await parts.board_pages.close()

        app.on_shutdown.append(hang_up)
        return app

    def _figures(self, parts: Parts) -> web.Application:
        metrics = self._metrics
        return metrics_app(lambda: self._threads.call(lambda: metrics.text() + parts.metrics.text()))

    async def _look(self, parts: Parts) -> front.Ready:
        """How the service stands. Raises StoreError when the database does not answer."""
        await self._threads.call(self._tables.check_schema)
        await self._threads.call(self._store.check_schema)
        blocked = await parts.standing.service_block_lately() is not None
        health = parts.state.health
        problems = [f"Redis: {health.problem}"] if health.degraded else []
        problems += [self._bells.problem] if self._bells.problem else []
        return front.Ready(status="degraded" if problems else "ok", problem="; ".join(problems), osm_blocked=blocked)

    async def _work(self, parts: Parts, stopping: asyncio.Event, meter: Meter) -> None:
        """Delivery and upkeep, until told to stop."""
        owner = self._settings.instance_id
        relaying = RelaySettings(
            owner=owner,
            in_flight=self._own.workers,
            poll_seconds=self._own.poll_seconds,
            grace_seconds=self._settings.sync_grace_seconds,
        )
        await self._threads.call(self._store.declare, SCORES)
        async with asyncio.TaskGroup() as tasks:
            helpers = [
                tasks.create_task(state_upkeep.keep(parts.state, self._store, self._threads, owner)),
                tasks.create_task(upkeep.keep(self._store, self._threads, owner, duties(parts))),
            ]
            await run_crew(self._store, [Leg(SCORES, parts.score_sink)], relaying, stopping, meter, self._bells)
            log.info("scoreboard.stopping")
            for helper in helpers:
                helper.cancel()


async def _moment_of(event: asyncio.Event) -> float:
    """When it is set, by the event loop's clock."""
    await event.wait()
    return asyncio.get_running_loop().time()


def _seconds_since(moment: asyncio.Task[float]) -> float:
    """How long ago it was; 0 where it has not come."""
    return asyncio.get_running_loop().time() - moment.result() if moment.done() else 0.0
