"""What an entry brings beside its payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrick.entry import Entry
from carrick.errors import InvalidInput


def own_headers(entry: Entry) -> Mapping[str, Any]:
    """The headers that the entry was put with. Raises InvalidInput where SQL has put something else than an object."""
    headers: Any = entry.headers
    if headers is None or isinstance(headers, dict):
        return headers or {}
    raise InvalidInput("headers", f"{headers!r:.80} is no object", "a JSON object")
