"""Answers that are not OSM's own, as faults of the simulator."""

from __future__ import annotations

from typing import Any

PAGE = "<!DOCTYPE html><html><head><title>Attention required</title></head><body>Ray 8a1</body></html>"
PORTAL = '{"title":"Sign in to the network","status":"unauthenticated"}'


def answer(status: int, text: str, **more: Any) -> dict[str, Any]:
    """An answer in OSM's place."""
    content_type = "text/html" if text.startswith("<") else "application/json"
    return {"kind": "custom", "status": status, "text": text, "content_type": content_type, **more}


STRANGERS: list[dict[str, Any]] = [
    *[answer(status, PAGE) for status in (400, 401, 403, 404, 405, 408, 410, 413, 500, 502, 503, 504, 511, 520)],
    *[answer(status, "") for status in (403, 404, 408, 500, 503)],
    *[answer(status, "", headers={"Location": "https://portal.example/"}) for status in (302, 307)],
    answer(403, PORTAL),
    answer(404, "not found", content_type="text/plain"),
    answer(200, PAGE),
    answer(200, PORTAL),
    answer(200, "{}"),
    {"kind": "empty_body"},
    {"kind": "truncated", "applied": False},
    {"kind": "invalid_json", "applied": False},
    {"kind": "drop_before_apply"},
]
"""OSM has done nothing."""

ON_THE_WAY_BACK: list[dict[str, Any]] = [{**stranger, "applied": True} for stranger in STRANGERS]
"""OSM has done what it was asked to, and somebody else answers."""
