"""Whose words an answer is in: the destination's own, or somebody else's on the way. Pure.

A proxy, a firewall or a captive portal can answer anything in the destination's place, with any status and any content
type. What they say is a page or plain text; destinations that we speak to say a JSON object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def own_words(body: bytes) -> Mapping[str, Any] | None:
    """The JSON object in which the destination says something, empty where it says nothing; None: a stranger's words.

    The body decides, not its declared type: OSM serves JSON as text/html.
    """
    if not body.strip():
        return {}
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return said if isinstance(said, dict) else None
