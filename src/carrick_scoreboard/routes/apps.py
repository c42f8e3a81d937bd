"""The built pages: the score page under /admin/, the live board under /board/."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from carrick.web import files
from carrick.web.routes import Call, Route

PACKAGE = "carrick_scoreboard"


def routes() -> list[Route]:
    """The routes."""

    async def score(call: Call[Any, Any]) -> web.Response:
        return files.answer(call.request, PACKAGE, "score", call.request.match_info.get("path") or "index.html")

    async def to_score(_: Call[Any, Any]) -> web.Response:
        return web.Response(status=308, headers={"Location": "/admin/"})

    async def board(call: Call[Any, Any]) -> web.Response:
        """Every link opens the same page; what it shows is asked for with the token."""
        return files.answer(call.request, PACKAGE, "board", "index.html")

    async def board_asset(call: Call[Any, Any]) -> web.Response:
        return files.answer(call.request, PACKAGE, "board", f"assets/{call.request.match_info['path']}")

    def page(path: str, summary: str, handle: Any) -> Route:
        return Route(method="GET", path=path, summary=summary, handle=handle, gives=str, problems=[404, 503])

    return [
        Route(method="GET", path="/admin", summary="To the score page", handle=to_score, gives=None, status=308),
        page("/admin/", "The score page", score),
        page("/admin/{path:.+}", "A file of the score page", score),
        page("/board/assets/{path:.+}", "A file of the board", board_asset),
        page("/board/{token}", "The live board of a section", board),
    ]
