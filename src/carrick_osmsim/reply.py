"""An answer before it is sent, and JSON as OSM writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Status, body and headers. `effect` says for the log what the call did; `applied` whether it changed points."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    effect: str = ""
    applied: bool = False


def as_json(value: Any, status: int = 200, *, effect: str = "", applied: bool = False) -> Reply:
    """JSON the way PHP encodes it: compact, ASCII only, slashes escaped."""
    text = json.dumps(value, separators=(",", ":")).replace("/", "\\/")
    return Reply(status=status, body=text.encode(), effect=effect, applied=applied)


def as_html(text: str, status: int = 200, *, effect: str = "") -> Reply:
    """A page."""
    return Reply(status=status, body=text.encode(), content_type="text/html", effect=effect)


def sent_to(address: str, *, effect: str) -> Reply:
    """A redirect of a browser."""
    return Reply(status=302, content_type="text/html", headers={"Location": address}, effect=effect)
