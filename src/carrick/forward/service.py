"""The forwarder as a whole: HTTP API, relay, metrics and upkeep in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from carrick.console.api import Console
from carrick.console.history import History
from carrick.entry import State
from carrick.forward import answers
from carrick.forward.api import Api, Engine, gate_view
from carrick.forward.events import CHANNEL
from carrick.ops.metrics import Metrics
from carrick.outbox.channel import Channel
from carrick.outbox.store import Store
from carrick.relay.janitor import tidy_up
from carrick.relay.meter import Tally
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.threads import Threads
from carrick.relay.wake import Bells
from carrick.settings import Settings
from carrick.sinks.sink import Sink
from carrick.variables import mask_url
from carrick.web.headers import secure
from carrick.web.routes import application
from carrick.web.server import metrics_app, serving
from carrick.web.tokens import AdminToken, is_this_machine

log = logging.getLogger("carrick.forward")

MAX_BODY_BYTES = 16 * 1024 * 1024
LAST_ERRORS = 10

Handshaking = Callable[[], Awaitable[answers.Handshake]]
Started = Callable[[int, int], None]


class Forwarder:
    """Runs once. `handshake` asks the cloud whether it is there; it sends no events. `is_demo`: see `Door`."""

    def __init__(
        self,
        store: Store,
        sink: Sink,
        channel: Channel,
        settings: Settings,
        handshake: Handshaking,
        *,
        is_demo: bool = False,
    ) -> None:
        self._store = store
        self._sink = sink
        self._channel = channel
        self._settings = settings
        self._handshake = handshake
        self._is_demo = is_demo
        self._threads = Threads(4)

    async def run(self, stopping: asyncio.Event, started: Started) -> None:
        """Serve and deliver until `stopping` is set; `started` is told the two ports."""
        settings = self._settings
        bells = Bells(self._store)
        metrics = Metrics(self._store)
        history = History(metrics)
        relay = Relay(
            self._store,
            self._sink,
            self._channel,
            RelaySettings(
                owner=settings.instance_id,
                in_flight=settings.sync_batches_in_flight,
                poll_seconds=settings.sync_interval_seconds,
                grace_seconds=settings.sync_grace_seconds,
            ),
            bell=bells.of(CHANNEL),
            at_once=bells.claim,
            meter=history,
        )
        sends = settings.sync_forwarder_mode == "send"
        engine = Engine(
            mode=settings.sync_forwarder_mode,
            cycle=relay.cycle if sends else _no_cycle,
            catching_up=lambda: relay.catching_up,
            diagnose=self._diagnose,
            problem=lambda: bells.problem,
        )
        token = AdminToken(settings.admin_token, settings.trusted_proxies)
        if settings.internal_admin_enabled and not token.is_set and not is_this_machine(settings.host):
            said = "ADMIN_TOKEN is not set: the admin endpoints answer 401 to all but this machine"
            log.warning("forward.admin_closed", extra={"host": settings.host, "said": said})
        api = Api(self._store, self._threads, engine, token, admin=settings.internal_admin_enabled)
        console = Console(
            self._store, self._threads, settings, token, service="forwarder", history=history, is_demo=self._is_demo
        )
        limits, trusted = settings.web, settings.trusted_proxies
        app = application([*api.routes(), *console.routes()], max_body_bytes=MAX_BODY_BYTES, trusted=trusted)
        console.attach(app)
        secure(app, is_https=False)
        figures = metrics_app(lambda: self._threads.call(metrics.text))
        try:
            async with (
                serving(app, settings.host, settings.port, limits=limits, trusted=trusted) as port,
                serving(figures, settings.host, settings.metrics_port, "METRICS_PORT", limits=limits) as at,
            ):
                started(port, at)
                await self._work(relay if sends else None, bells, stopping)
        finally:
            await self._sink.close()
            self._threads.close()

    async def _work(self, relay: Relay | None, bells: Bells, stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as tasks:
            helpers = [
                tasks.create_task(tidy_up(self._store, self._threads, CHANNEL, self._settings.instance_id)),
                tasks.create_task(bells.listen()),
            ]
            delivering = None
            if relay is not None:
                delivering = tasks.create_task(relay.run())
            await stopping.wait()
            log.info("forward.stopping")
            if relay is not None and delivering is not None:
                relay.stop()
                await delivering
            for helper in helpers:
                helper.cancel()

    async def _diagnose(self) -> answers.Diagnostics:
        handshake = await self._handshake()
        return await self._threads.call(self._diagnosed, handshake)

    def _diagnosed(self, handshake: answers.Handshake) -> answers.Diagnostics:
        difference = (self._store.now() - datetime.now(UTC)).total_seconds()
        waiting = self._store.entries(CHANNEL, state=State.PENDING, max_rows=1000).lines
        dead = self._store.entries(CHANNEL, state=State.DEAD, max_rows=1000).lines
        failed = [line for line in (*waiting, *dead) if line.last_error_code is not None]
        failed.sort(key=lambda line: line.last_attempt_at or line.created_at, reverse=True)
        return answers.Diagnostics(
            instance_id=self._settings.instance_id,
            edge_id=self._settings.edge_id,
            mode=self._settings.sync_forwarder_mode,
            cloud_url=mask_url(self._settings.cloud.url),
            auth_mode=self._settings.cloud.auth_mode,
            database=mask_url(self._settings.database_url),
            database_clock_difference_seconds=round(difference, 3),
            handshake=handshake,
            gates=[gate_view(gate) for gate in self._store.gates(CHANNEL)],
            last_errors=[
                answers.LastError(
                    id=line.id,
                    at=line.last_attempt_at or line.failed_at,
                    code=line.last_error_code,
                    message=line.last_error_message,
                )
                for line in failed[:LAST_ERRORS]
            ],
        )


async def _no_cycle() -> Tally:
    return Tally()
