"""How much PostgreSQL reads for a statement, in pages: unlike time, the same on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import ClientCursor

READINGS = 3
"""Whenever statistics are gathered or another database changes, one reading has pages of the catalog, too."""


def pages_read(connection: psycopg.Connection[Any], statement: str, values: Mapping[str, Any] | None = None) -> int:
    """The least of several readings; nothing of the statement stays."""
    return min(_once(connection, statement, values) for _ in range(READINGS))


def _once(connection: psycopg.Connection[Any], statement: str, values: Mapping[str, Any] | None) -> int:
    with connection.transaction(force_rollback=True):
        row = (
            ClientCursor(connection).execute(f"explain (analyze, buffers, format json) {statement}", values).fetchone()
        )
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
