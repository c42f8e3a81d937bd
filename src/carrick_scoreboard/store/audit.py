"""What people did that others may ask about later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from carrick_scoreboard.store.tables import Ask, Tables


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what, to what, and when."""

    id: int
    done_at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]


def write_audit(ask: Ask, actor: str, action: str, subject: str, detail: Mapping[str, Any]) -> None:
    """Write it down in the transaction of the act itself."""
    ask("audit_add", actor=actor, action=action, subject=subject, detail=msgspec.json.encode(detail).decode())


class Audit:
    """The audit, to read and to forget."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def latest(self, subject: str | None = None, limit: int = 100) -> list[Act]:
        """The latest acts, about one subject or all, the newest first."""
        with self._tables.reading() as ask:
            rows = ask("audit_list", subject=subject, limit=limit)
        return [msgspec.convert({**row, "detail": msgspec.json.decode(row["detail"])}, Act) for row in rows]

    def tidy(self, *, days: int) -> int:
        """Forget acts after so many days; how many."""
        with self._tables.writing() as ask:
            return len(ask("audit_prune", days=days))
