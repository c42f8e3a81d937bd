"""The way of one batch: who sends it, what is in it, into the inbox."""

from __future__ import annotations

from contextlib import suppress

from carrick.ingest.answers import Verdict
from carrick.ingest.auth import Guard, Request
from carrick.ingest.batch import read_batch
from carrick.ingest.body import MAX_BODY_BYTES, unfolded
from carrick.ingest.line import Line
from carrick.ingest.problems import TooLarge
from carrick.ingest.store import Offer, Taken
from carrick.relay.threads import Threads

SMALL_BYTES = 128 * 1024
"""A text up to this size is read in the event loop, in about a millisecond: the way to a thread costs as much."""


class Desk:
    """Takes batches into one inbox. Used from one event loop; large bodies are read in a thread."""

    def __init__(self, line: Line, guard: Guard, threads: Threads, *, max_payload_bytes: int) -> None:
        self._line = line
        self._guard = guard
        self._threads = threads
        self._max_payload_bytes = max_payload_bytes

    async def take(self, request: Request, encoding: str, now_ms: int) -> Verdict:
        """What became of each event. Raises auth.Refused, BatchRefused, CarrickError; then nothing is stored."""
        offer, size = await self._opened(request, encoding, now_ms)
        batch = offer.batch
        taken = await self._line.take(offer, size) if batch.arrivals else Taken(0, 0)
        return Verdict(
            accepted=taken.accepted,
            duplicated=taken.duplicated,
            rejected=len(batch.faults),
            errors=batch.faults,
        )

    async def _opened(self, request: Request, encoding: str, now_ms: int) -> tuple[Offer, int]:
        """The batch, and the size of its text. What came small may unfold to much: then that is left to a thread."""
        if len(request.body) <= SMALL_BYTES:
            with suppress(TooLarge):
                return self._open(request, encoding, now_ms, SMALL_BYTES)
        return await self._threads.call(self._open, request, encoding, now_ms, MAX_BODY_BYTES)

    def _open(self, request: Request, encoding: str, now_ms: int, max_bytes: int) -> tuple[Offer, int]:
        signature = self._guard.check(request, now_ms)
        text = unfolded(request.body, encoding, max_bytes)
        batch = read_batch(
            text, tenant_header=request.headers.get("x-tenant-id"), max_payload_bytes=self._max_payload_bytes
        )
        return Offer(batch, signature), len(text)
