"""A PostgreSQL store that claims as a connection that listens does: first the only entry that waits, then by choice."""

from __future__ import annotations

from typing import Any

from carrick.entry import Batch
from carrick.outbox.postgres.claiming import batch_of, new_claim
from carrick.outbox.postgres.store import PostgresStore


class RestingStore(PostgresStore):
    """Every claim is one of a relay that was just woken."""

    def claim(self, channel: str, owner: str, **asked: Any) -> Batch:
        if asked.get("tenant") is None:
            claim = new_claim(channel, owner, **asked)
            if rows := self._rows("claim_only", **claim._asdict()):
                return batch_of(claim, rows)
        return super().claim(channel, owner, **asked)
