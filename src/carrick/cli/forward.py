"""`carrick forward`: the edge forwarder."""

from __future__ import annotations

import asyncio
import logging

from carrick import wiring
from carrick.cli.running import run_until_stopped
from carrick.settings import read_settings
from carrick.variables import mask_url

log = logging.getLogger("carrick.forward")


def forward() -> int:
    """Take events over HTTP, keep them on disk, and hand them to CLOUD_INGESTION_URL, for days without it if need be.

    Settings come from the environment; docs/reference/configuration.md lists them. Ctrl-C stops it cleanly.
    """
    settings = read_settings()
    forwarder = wiring.forwarder(settings)

    def started(port: int, metrics_port: int) -> None:
        log.info(
            "forward.started",
            extra={
                "address": f"http://{settings.host}:{port}",
                "metrics": f"http://{settings.host}:{metrics_port}/metrics",
                "cloud": mask_url(settings.cloud.url),
                "database": mask_url(settings.database_url),
                "mode": settings.sync_forwarder_mode,
                "instance": settings.instance_id,
            },
        )

    async def serve(stopping: asyncio.Event) -> int:
        await forwarder.run(stopping, started)
        return 0

    return run_until_stopped(serve)
