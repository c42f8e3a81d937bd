"""The ingest as a whole: HTTP API, metrics and upkeep in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from carrick.console.api import Console
from carrick.contacts.contacts import Contacts
from carrick.ingest.answers import Limits
from carrick.ingest.api import Api
from carrick.ingest.auth import Guard
from carrick.ingest.body import MAX_BODY_BYTES
from carrick.ingest.desk import Desk
from carrick.ingest.metrics import IngestMetrics
from carrick.ingest.store import Inbox
from carrick.outbox.store import Store
from carrick.relay.janitor import MAX_ROWS, keep_tidy
from carrick.relay.threads import Threads
from carrick.settings import Settings
from carrick.web.headers import secure
from carrick.web.routes import application
from carrick.web.server import metrics_app, serving
from carrick.web.tokens import AdminToken, is_this_machine

log = logging.getLogger("carrick.ingest")

THREADS = 8
"""Batches that are worked on at once; the others wait for their turn."""

Started = Callable[[int, int], None]


class Ingest:
    """Runs once. `max_payload_bytes` is what the channel takes that events are relayed to."""

    def __init__(
        self, inbox: Inbox, store: Store, contacts: Contacts, settings: Settings, *, max_payload_bytes: int
    ) -> None:
        self._inbox = inbox
        self._store = store
        self._contacts = contacts
        self._settings = settings
        self._max_payload_bytes = max_payload_bytes
        self._threads = Threads(THREADS)

    async def run(self, stopping: asyncio.Event, started: Started) -> None:
        """Serve until `stopping` is set; `started` is told the two ports. Requests under way are answered."""
        settings = self._settings
        metrics = IngestMetrics(self._store)
        guard = Guard.of(settings.cloud)
        if guard.mode == "none" and not is_this_machine(settings.host):
            log.warning(
                "ingest.open", extra={"host": settings.host, "said": "anybody may send: CLOUD_AUTH_MODE is none"}
            )
        console = Console(
            self._store,
            self._threads,
            settings,
            AdminToken(settings.admin_token, settings.trusted_proxies),
            service="ingest",
        )
        routes = [*self._api(guard, metrics).routes(), *console.routes()]
        limits, trusted = settings.web, settings.trusted_proxies
        app = application(routes, max_body_bytes=MAX_BODY_BYTES, trusted=trusted)
        console.attach(app)
        secure(app, is_https=False)
        figures = metrics_app(lambda: self._threads.call(metrics.text))
        try:
            async with (
                serving(app, settings.host, settings.port, limits=limits, trusted=trusted) as port,
                serving(figures, settings.host, settings.metrics_port, "METRICS_PORT", limits=limits) as at,
            ):
                started(port, at)
                await self._work(stopping)
        finally:
            self._threads.close()

    def _api(self, guard: Guard, metrics: IngestMetrics) -> Api:
        return Api(
            self._inbox,
            Desk(self._inbox, self._threads, max_payload_bytes=self._max_payload_bytes),
            guard,
            self._threads,
            metrics,
            checks=self._check,
            limits=Limits(max_payload_bytes=self._max_payload_bytes),
            max_in_flight=self._settings.ingest.max_in_flight,
            body_seconds=self._settings.ingest.body_seconds,
            contacts=self._contacts,
        )

    def _check(self) -> None:
        self._store.check_schema()
        self._inbox.check_schema()
        self._contacts.store.check_schema()

    async def _work(self, stopping: asyncio.Event) -> None:
        """Upkeep, on one replica at a time, until told to stop."""
        prune = partial(self._inbox.prune, self._settings.ingest.retention_days, max_rows=MAX_ROWS)
        async with asyncio.TaskGroup() as tasks:
            tidying = tasks.create_task(
                keep_tidy(self._store, self._threads, "inbox", self._settings.instance_id, prune)
            )
            await stopping.wait()
            log.info("ingest.stopping")
            tidying.cancel()
