"""Serves applications on sockets until told to stop."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from carrick.errors import SettingsError
from carrick.web import figures
from carrick.web.routes import UNFOLDS

STOP_SECONDS = 5.0
"""How long requests under way may take when the service stops."""


def in_one_line(record: logging.LogRecord) -> bool:
    """What is not even HTTP is answered with 400 and told in one line: anybody can send it, as often as they like."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.msg, record.args, record.exc_info = "web.unreadable", (), None
        record.said = " ".join(str(error.message).split())[:200]
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


log = logging.getLogger("carrick.web.server")
log.addFilter(in_one_line)

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_app(text: Callable[[], Awaitable[bytes]]) -> web.Application:
    """`/metrics` for Prometheus."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=await text() + figures.text(), headers={"Content-Type": METRICS_TYPE})

    app = web.Application()
    app.router.add_get("/metrics", show)
    return app


@asynccontextmanager
async def serving(
    app: web.Application, host: str, port: int, variable: str = "PORT", *, unfold: bool = True
) -> AsyncIterator[int]:
    """Serve the application inside; the port it got. Raises SettingsError, naming the variable, if it cannot listen.

    Without `unfold` bodies are handed on as they were sent, compressed or not; so they are to routes, which unfold.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=STOP_SECONDS,
        auto_decompress=unfold and UNFOLDS not in app,
        logger=log,
    )
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
