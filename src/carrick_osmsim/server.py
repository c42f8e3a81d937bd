"""The simulator on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from carrick_osmsim import html
from carrick_osmsim.control import Control, tell_problems
from carrick_osmsim.door import Door
from carrick_osmsim.simulator import Simulator

MAX_BODY_BYTES = 1024 * 1024
STOP_SECONDS = 2.0


def application(simulator: Simulator) -> web.Application:
    """The control routes, the style sheet, and OSM for everything else."""
    door = Door(simulator)

    async def close(_: web.Application) -> None:
        door.close()

    async def to_panel(_: web.Request) -> web.Response:
        raise web.HTTPFound("/control/")

    async def style(_: web.Request) -> web.Response:
        return web.Response(body=html.stylesheet(), content_type="text/css")

    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[tell_problems])
    app.add_routes(Control(simulator).routes())
    app.add_routes([web.get("/", to_panel), web.get(html.STYLE, style), web.route("*", "/{path:.*}", door.answer)])
    app.on_shutdown.append(close)
    return app


@asynccontextmanager
async def serving(simulator: Simulator, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Serve it inside; the port it got. Raises OSError if it cannot listen there."""
    runner = web.AppRunner(application(simulator), access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
