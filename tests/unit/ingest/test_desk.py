"""Where a batch is read: what is small in the event loop, what is large, or unfolds to much, in a thread."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from carrick.ingest import auth
from carrick.ingest.answers import Verdict
from carrick.ingest.body import MAX_BODY_BYTES
from carrick.ingest.desk import SMALL_BYTES, Desk
from carrick.ingest.line import Line
from carrick.ingest.problems import TooLarge
from carrick.ingest.store import Offer, Outcome, Taken
from carrick.relay.threads import Threads
from tests.batches import PATH, body, event, numbered


class NotedGuard(auth.Guard, frozen=True, kw_only=True):
    """Lets everybody in, and notes in which thread each was checked."""

    seen: list[str]

    def check(self, request: auth.Request, now_ms: int) -> None:
        self.seen.append(threading.current_thread().name)


def taken(text: bytes, encoding: str = "identity") -> tuple[Verdict, list[str]]:
    """The answer, and the threads in which the batch was looked at."""
    guard = NotedGuard(seen=[])

    def take_all(offers: Sequence[Offer]) -> Sequence[Outcome]:
        return [Taken(len(offer.batch.arrivals), offer.batch.repeated) for offer in offers]

    async def story(threads: Threads) -> Verdict:
        desk = Desk(Line(take_all, threads), guard, threads, max_payload_bytes=MAX_BODY_BYTES)
        return await desk.take(auth.Request(method="POST", path=PATH, headers={}, body=text), encoding, 0)

    with closing(Threads(1)) as threads:
        return asyncio.run(story(threads)), guard.seen


def large(**fields: Any) -> bytes:
    return body(*numbered(3), event("e-3", payload="x" * SMALL_BYTES), **fields)


def test_a_small_batch_is_read_in_the_event_loop() -> None:
    verdict, seen = taken(body(*numbered(4), event("e-0")))
    assert (verdict.accepted, verdict.duplicated, seen) == (4, 1, ["MainThread"])


def test_a_large_batch_is_read_in_a_thread() -> None:
    assert taken(large()) == (Verdict(accepted=4, duplicated=0, rejected=0, errors=[]), ["carrick-store"])


def test_a_small_body_that_unfolds_to_much_is_read_in_a_thread() -> None:
    verdict, seen = taken(gzip.compress(large()), "gzip")
    assert (verdict.accepted, seen) == (4, ["MainThread", "carrick-store"])


def test_a_bomb_is_refused_with_the_limit_of_all_bodies() -> None:
    with pytest.raises(TooLarge, match=f"{MAX_BODY_BYTES:,}"):
        taken(gzip.compress(b" " * (MAX_BODY_BYTES + 1)), "gzip")


def test_a_batch_without_events_is_answered_without_the_inbox() -> None:
    assert taken(body())[0] == Verdict(accepted=0, duplicated=0, rejected=0, errors=[])
