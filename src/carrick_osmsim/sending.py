"""How an answer goes out: as it should, cut in half, or not at all."""

from __future__ import annotations

from aiohttp import web

from carrick_osmsim.reply import Reply


async def send(request: web.Request, reply: Reply) -> web.StreamResponse:
    """Send it; when this returns it has been written."""
    response = web.Response(body=reply.body, status=reply.status, headers=dict(reply.headers))
    response.headers["Content-Type"] = _content_type(reply)
    await response.prepare(request)
    await response.write_eof()
    return response


async def send_half(request: web.Request, reply: Reply) -> web.StreamResponse:
    """Promise the whole body, send half of it, close the connection."""
    response = web.StreamResponse(status=reply.status, headers=dict(reply.headers))
    response.headers["Content-Type"] = _content_type(reply)
    response.content_length = max(2, len(reply.body))
    await response.prepare(request)
    await response.write(reply.body[: len(reply.body) // 2] or b"[")
    drop(request)
    return response


def drop(request: web.Request) -> web.StreamResponse:
    """Close the connection without another word. What it returns goes nowhere."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def _content_type(reply: Reply) -> str:
    return f"{reply.content_type}; charset=utf-8" if reply.content_type == "text/html" else reply.content_type
