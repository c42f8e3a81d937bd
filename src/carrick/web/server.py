"""Serves applications on sockets until told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from carrick.errors import SettingsError
from carrick.settings import WebSettings
from carrick.variables import Network
from carrick.web import figures
from carrick.web.connections import Connections
from carrick.web.routes import UNFOLDS

BACKLOG = 128
"""Connections that wait to be let in."""
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
    app: web.Application,
    host: str,
    port: int,
    variable: str = "PORT",
    *,
    unfold: bool = True,
    limits: WebSettings = WebSettings(),  # noqa: B008  immutable
    trusted: Sequence[Network] = (),
) -> AsyncIterator[int]:
    """Serve the application inside; the port it got. Raises SettingsError, naming the variable, if it cannot listen.

    Without `unfold` bodies are handed on as they were sent, compressed or not; so they are to routes, which unfold.
    `limits` and `trusted` are those of `Connections`.
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
    assert runner.server is not None
    connections = Connections(runner.server, limits, trusted)
    try:
        try:
            listening = await asyncio.get_running_loop().create_server(connections, host, port, backlog=BACKLOG)
        except OSError as error:
            said = error.strerror or error
            raise SettingsError(f"cannot listen on {host}, {variable}={port}: {said}; choose another") from None
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            listening.close()
    finally:
        connections.stop()
        await runner.cleanup()
