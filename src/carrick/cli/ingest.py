"""`carrick ingest`: the receiving side of the forwarder."""

from __future__ import annotations

import asyncio
import logging

from carrick import wiring
from carrick.cli.running import run_until_stopped
from carrick.settings import read_settings
from carrick.variables import mask_url

log = logging.getLogger("carrick.ingest")


def ingest() -> int:
    """Take batches from forwarders, store each event once, and put it into the outbox channel INGEST_RELAY_CHANNEL.

    Settings come from the environment; docs/reference/configuration.md lists them. Ctrl-C stops it cleanly.
    """
    settings = read_settings(service="ingest")
    service = wiring.ingest(settings)

    def started(port: int, metrics_port: int) -> None:
        log.info(
            "ingest.started",
            extra={
                "address": f"http://{settings.host}:{port}",
                "metrics": f"http://{settings.host}:{metrics_port}/metrics",
                "auth": settings.cloud.auth_mode,
                "database": mask_url(settings.database_url),
                "relay_channel": settings.ingest.relay_channel or "none",
                "instance": settings.instance_id,
            },
        )

    async def serve(stopping: asyncio.Event) -> int:
        await service.run(stopping, started)
        return 0

    return run_until_stopped(serve)
