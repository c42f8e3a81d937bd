"""Serves built pages. Files come as they were built, compressed where the browser takes that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import NamedTuple

from aiohttp import web

from carrick.web.headers import CSP, PagePolicy
from carrick.web.problems import Problem

POLICY = PagePolicy(script="'self'", connect="'self'", worker="'self'", manifest="'self'")
TYPES: Mapping[str, str] = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
PACKED: Mapping[str, str] = {"br": ".br", "gzip": ".gz"}
"""How a file may lie there compressed, the smallest first."""
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


class File(NamedTuple):
    """A file as it was built, and its compressed twins by their encoding."""

    body: bytes
    packed: Mapping[str, bytes]
    content_type: str
    tag: str
    caching: str


@cache
def built(package: str, page: str) -> Mapping[str, File]:
    """The files of a page of the package by their path; none when the pages were not built."""
    root = files(package) / "static" / page
    found: dict[str, bytes] = {}
    folders = [("", root)] if root.is_dir() else []
    while folders:
        prefix, folder = folders.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            else:
                found[prefix + entry.name] = entry.read_bytes()
    return {path: _file(path, found) for path in found if PurePosixPath(path).suffix in TYPES}


def _file(path: str, found: Mapping[str, bytes]) -> File:
    packed = {encoding: found[path + end] for encoding, end in PACKED.items() if path + end in found}
    caching = FOR_EVER if path.startswith("assets/") else ASK_AGAIN
    tag = f'"{sha256(found[path]).hexdigest()[:32]}"'
    return File(found[path], packed, TYPES[PurePosixPath(path).suffix], tag, caching)


def answer(request: web.Request, package: str, page: str, path: str) -> web.Response:
    """That file of the page. Raises Problem where there is none."""
    pages = built(package, page)
    if not pages:
        raise Problem(503, "not_built", "the pages were not built; in a checkout: make web")
    file = pages.get(path)
    if file is None:
        raise Problem(404, "not_found", f"there is no {path[:100]!r} here")
    headers = {CSP: POLICY.header, "Cache-Control": file.caching, "ETag": file.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == file.tag:
        return web.Response(status=304, headers=headers)
    accepted = request.headers.get("Accept-Encoding", "")
    for encoding, body in file.packed.items():
        if encoding in accepted:
            return web.Response(
                body=body, content_type=file.content_type, headers={**headers, "Content-Encoding": encoding}
            )
    return web.Response(body=file.body, content_type=file.content_type, headers=headers)
