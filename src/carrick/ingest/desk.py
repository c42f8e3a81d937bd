"""The way of one batch: who sends it, what is in it, into the inbox. Blocks; called in a thread."""

from __future__ import annotations

from carrick.ingest.answers import Verdict
from carrick.ingest.auth import Guard, Request
from carrick.ingest.batch import read_batch
from carrick.ingest.body import unfolded
from carrick.ingest.store import Inbox, Taken


class Desk:
    """Takes batches into one inbox."""

    def __init__(self, inbox: Inbox, guard: Guard, *, max_payload_bytes: int) -> None:
        self._inbox = inbox
        self._guard = guard
        self._max_payload_bytes = max_payload_bytes

    def take(self, request: Request, encoding: str, now_ms: int) -> Verdict:
        """What became of each event. Raises auth.Refused, BatchRefused, StoreError; then nothing is stored."""
        signature = self._guard.check(request, now_ms)
        batch = read_batch(
            unfolded(request.body, encoding),
            tenant_header=request.headers.get("x-tenant-id"),
            max_payload_bytes=self._max_payload_bytes,
        )
        taken = self._inbox.take(batch, signature) if batch.arrivals else Taken(0, 0)
        return Verdict(
            accepted=taken.accepted,
            duplicated=taken.duplicated,
            rejected=len(batch.faults),
            errors=batch.faults,
        )
