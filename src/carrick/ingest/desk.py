"""The way of one batch: what is in it, into the inbox."""

from __future__ import annotations

from carrick.ingest.answers import Verdict
from carrick.ingest.auth import Request
from carrick.ingest.batch import Checked, read_batch
from carrick.ingest.body import MAX_BODY_BYTES, unfolded
from carrick.ingest.line import Line
from carrick.ingest.problems import TooLarge
from carrick.ingest.store import Inbox, Offer, Taken, take_one
from carrick.relay.threads import Threads

SMALL_BYTES = 128 * 1024
"""A text up to this size is read in the event loop, in about a millisecond: the way to a thread costs as much."""
FOLDED = 4
"""How much smaller a compressed body is than its text, mostly: one that is larger than that is not tried."""
NOTHING = Taken(0, 0)


class Desk:
    """Takes batches into one inbox. Used from one event loop.

    They wait for each other there, and go in together. One that is large is read in a thread before that; and where it
    fills a group by itself, it keeps that thread for all of its way: it would gain nothing from others.
    """

    def __init__(self, inbox: Inbox, threads: Threads, *, max_payload_bytes: int) -> None:
        self._inbox = inbox
        self._line = Line(inbox.take_all, inbox.groups, threads)
        self._threads = threads
        self._max_payload_bytes = max_payload_bytes

    async def take(self, request: Request, encoding: str, signature: bytes | None) -> Verdict:
        """What became of each event. Raises BatchRefused or CarrickError; then nothing is stored."""
        found: Offer | Verdict | None = self._small(request, encoding, signature)
        if found is None:
            found = await self._threads.call(self._large, request, encoding, signature)
        if isinstance(found, Verdict):
            return found
        if found.batch.arrivals:
            return _verdict(found.batch, await self._line.take(found))
        if found.signature is not None:
            await self._threads.call(self._inbox.once, found.signature, _nothing)
        return _verdict(found.batch, NOTHING)

    def _small(self, request: Request, encoding: str, signature: bytes | None) -> Offer | None:
        """The batch, if it is small; also a small body may unfold to much."""
        if len(request.body) * (1 if encoding == "identity" else FOLDED) > SMALL_BYTES:
            return None
        try:
            return self._opened(request, encoding, signature, SMALL_BYTES)
        except TooLarge:
            return None

    def _large(self, request: Request, encoding: str, signature: bytes | None) -> Offer | Verdict:
        """The batch, or what became of it, where it fills a group by itself."""
        large = self._opened(request, encoding, signature, MAX_BODY_BYTES)
        if len(large.batch.arrivals) < self._inbox.groups.events:
            return large
        return _verdict(large.batch, take_one(self._inbox, large))

    def _opened(self, request: Request, encoding: str, signature: bytes | None, max_bytes: int) -> Offer:
        batch = read_batch(
            unfolded(request.body, encoding, max_bytes),
            tenant_header=request.headers.get("x-tenant-id"),
            max_payload_bytes=self._max_payload_bytes,
        )
        return Offer(batch, signature)


def _nothing(_: object) -> None:
    """The work of a batch without an event that could be stored: only its signature is remembered."""


def _verdict(batch: Checked, taken: Taken) -> Verdict:
    return Verdict(
        accepted=taken.accepted, duplicated=taken.duplicated, rejected=len(batch.faults), errors=batch.faults
    )
