"""Adapters for the connections that callers have."""

from __future__ import annotations

from typing import Any

from carrick.errors import UnsupportedConnection


def adapter_for(connection: Any) -> Any:
    """The adapter for a foreign connection."""
    raise UnsupportedConnection("connection", f"{type(connection)!r}", "a supported connection")
