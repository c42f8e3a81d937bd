"""Serves applications on sockets until told to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from carrick.errors import SettingsError

STOP_SECONDS = 5.0
"""How long requests under way may take when the service stops."""


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int, variable: str = "PORT") -> AsyncIterator[int]:
    """Serve the application inside; the port it got. Raises SettingsError, naming the variable, if it cannot listen."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            said = error.strerror or error
            raise SettingsError(f"cannot listen on {host}, {variable}={port}: {said}; choose another") from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
