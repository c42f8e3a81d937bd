"""`carrick scoreboard`: patrol scores of Online Scout Manager for displays."""

from __future__ import annotations

import asyncio
import logging

from carrick.cli.running import run_until_stopped
from carrick.settings import read_settings
from carrick.variables import mask_url
from carrick_scoreboard import wiring

log = logging.getLogger("carrick.scoreboard")


def scoreboard() -> int:
    """Show the patrol scores of Online Scout Manager on displays: sign-in of displays, their API, pages, upkeep.

    Settings come from the environment; docs/reference/configuration.md lists them. Ctrl-C stops it cleanly.
    """
    settings = read_settings(service="scoreboard")
    own = wiring.read_own_settings()
    service = wiring.scoreboard(settings, own)

    def started(port: int, metrics_port: int) -> None:
        log.info(
            "scoreboard.started",
            extra={
                "address": f"http://{settings.host}:{port}",
                "exposed": own.exposed_domain,
                "metrics": f"http://{settings.host}:{metrics_port}/metrics",
                "osm": own.osm.domain,
                "database": mask_url(settings.database_url),
                "redis": mask_url(settings.redis_url) or "none",
                "instance": settings.instance_id,
            },
        )

    async def serve(stopping: asyncio.Event) -> int:
        await service.run(stopping, started)
        return 0

    return run_until_stopped(serve)
