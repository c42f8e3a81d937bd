"""Where a batch is read: what is small in the event loop, what is large, or unfolds to much, in a thread."""

from __future__ import annotations

import asyncio
import gzip
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrick.ingest import auth, desk
from carrick.ingest.answers import Verdict
from carrick.ingest.body import MAX_BODY_BYTES, unfolded
from carrick.ingest.desk import SMALL_BYTES, Desk
from carrick.ingest.problems import Replayed, TooLarge, Unreadable
from carrick.ingest.sqlite.store import SqliteInbox
from carrick.ingest.store import Groups, Offer, Outcome
from carrick.relay.threads import Threads
from tests.batches import PATH, body, event, numbered
from tests.sqlite_file import whole_file

Take = Callable[..., tuple[Verdict, list[str]]]
"""The answer to a body with this encoding, and the threads in which it was looked at."""


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Take]:
    whole_file(tmp_path / "inbox.db")
    seen: list[str] = []

    def noted(*sent: Any) -> bytes:
        seen.append(threading.current_thread().name)
        return unfolded(*sent)

    monkeypatch.setattr(desk, "unfolded", noted)

    def take(text: bytes, encoding: str = "identity") -> tuple[Verdict, list[str]]:
        async def story() -> Verdict:
            taking = Desk(inbox, threads, max_payload_bytes=MAX_BODY_BYTES)
            return await taking.take(auth.Request(method="POST", path=PATH, headers={}, body=text), encoding, None)

        return asyncio.run(story()), seen

    with closing(SqliteInbox(tmp_path / "inbox.db")) as inbox, closing(Threads(1)) as threads:
        yield take


def large(**fields: Any) -> bytes:
    return body(*numbered(3), event("e-3", payload="x" * SMALL_BYTES), **fields)


def test_a_small_batch_is_read_in_the_event_loop(taken: Take) -> None:
    verdict, seen = taken(body(*numbered(4), event("e-0")))
    assert (verdict.accepted, verdict.duplicated, seen) == (4, 1, ["MainThread"])


def test_a_large_batch_is_read_in_a_thread(taken: Take) -> None:
    assert taken(large()) == (Verdict(accepted=4, duplicated=0, rejected=0, errors=[]), ["carrick-store"])


def test_a_small_body_that_unfolds_to_much_is_read_in_a_thread(taken: Take) -> None:
    verdict, seen = taken(gzip.compress(large()), "gzip")
    assert (verdict.accepted, seen) == (4, ["MainThread", "carrick-store"])


def test_a_compressed_body_of_some_size_is_not_tried_in_the_event_loop(taken: Take) -> None:
    noise = random.Random(1).randbytes(SMALL_BYTES // 4).hex()
    assert taken(gzip.compress(body(event("e", payload=noise))), "gzip")[1] == ["carrick-store"]


def test_a_large_batch_that_is_refused_is_told_so(taken: Take) -> None:
    with pytest.raises(Unreadable, match="not JSON"):
        taken(large()[:-1])


def test_a_bomb_is_refused_with_the_limit_of_all_bodies(taken: Take) -> None:
    with pytest.raises(TooLarge, match=f"{MAX_BODY_BYTES:,}"):
        taken(gzip.compress(b" " * (MAX_BODY_BYTES + 1)), "gzip")


def test_a_batch_without_events_is_answered_without_the_inbox(taken: Take) -> None:
    assert taken(body())[0] == Verdict(accepted=0, duplicated=0, rejected=0, errors=[])


@pytest.mark.parametrize("events", [[], [event("a", event_type=7)]], ids=["no event", "no good event"])
def test_a_signed_batch_with_nothing_to_store_is_taken_once(tmp_path: Path, events: list[Any]) -> None:
    whole_file(tmp_path / "inbox.db")
    text = body(*events)
    request = auth.Request(method="POST", path=PATH, headers={}, body=text)

    async def story() -> Verdict:
        return await Desk(inbox, threads, max_payload_bytes=MAX_BODY_BYTES).take(request, "identity", b"s" * 32)

    with closing(SqliteInbox(tmp_path / "inbox.db")) as inbox, closing(Threads(1)) as threads:
        assert asyncio.run(story()).rejected == len(events)
        with pytest.raises(Replayed):
            asyncio.run(story())


class NotedInbox(SqliteInbox):
    """Notes how many batches go in together."""

    def __init__(self, path: Path, groups: Groups) -> None:
        super().__init__(path)
        self.groups = groups
        self.together: list[int] = []

    def take_all(self, offers: Sequence[Offer]) -> list[Outcome]:
        self.together.append(len(offers))
        return super().take_all(offers)


class CountedThreads(Threads):
    """Counts how often something is left to a thread."""

    calls = 0

    async def call(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return await super().call(*args, **kwargs)


def _three_large_ones(path: Path, groups: Groups) -> tuple[list[int], int]:
    """How three large batches of four events, which come at once, go in, and how often a thread is asked. There is one,
    which reads all three before it can store what waits in the line."""
    whole_file(path)

    async def story() -> list[Verdict]:
        taking = Desk(inbox, threads, max_payload_bytes=MAX_BODY_BYTES)
        texts = [body(*(event(f"{n}-{m}", payload="x" * SMALL_BYTES) for m in range(4))) for n in range(3)]
        requests = [auth.Request(method="POST", path=PATH, headers={}, body=text) for text in texts]
        return await asyncio.gather(*(taking.take(request, "identity", None) for request in requests))

    with closing(NotedInbox(path, groups)) as inbox, closing(CountedThreads(1)) as threads:
        assert [verdict.accepted for verdict in asyncio.run(story())] == [4, 4, 4]
        return inbox.together, threads.calls


def test_large_batches_that_wait_go_in_together(tmp_path: Path) -> None:
    together, _ = _three_large_ones(tmp_path / "inbox.db", Groups(at_once=1, events=5))
    assert sum(together) == 3
    assert max(together) > 1


def test_a_large_batch_that_fills_a_group_by_itself_waits_for_no_other(tmp_path: Path) -> None:
    assert _three_large_ones(tmp_path / "inbox.db", Groups(at_once=1, events=4)) == ([1, 1, 1], 3)
