"""What a browser says about the page that has made a request. Programs say nothing, and are let through."""

from __future__ import annotations

from aiohttp import web

from carrick.web.problems import Problem

OWN = frozenset({"same-origin", "none"})


def check_site(request: web.Request) -> None:
    """Raise Problem when it is a page of another site. `Origin: null` says too little by itself."""
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if (site is None or site in OWN) and (
        origin is None or origin.partition("://")[2] == request.host or (origin == "null" and site in OWN)
    ):
        return
    raise Problem(403, "forged", "this was sent by a page of another site")
