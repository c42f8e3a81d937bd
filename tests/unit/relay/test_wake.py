"""Bells ring for puts, and go on listening when the database was away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from carrick.entry import Batch
from carrick.errors import NothingHeard, StoreUnavailable
from carrick.outbox.store import Store, Watch
from carrick.outbox.waking import Waking
from carrick.relay import wake
from carrick.relay.wake import Bells


class Script:
    """A watch that reports what a test says, and fails when it says so."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self.closed = 0
        self.claims: list[Any] = []

    async def next(self) -> str | None:
        report = await self.reports.get()
        if isinstance(report, Exception):
            raise report
        return report

    async def claim(self, channel: str, owner: str, **limits: Any) -> Batch | None:
        self.claims.append((channel, owner, limits))
        return None

    async def close(self) -> None:
        self.closed += 1


class Watched(Waking):
    """As much of a store as bells need."""

    def __init__(self, open_watch: Callable[[], Watch]) -> None:
        super().__init__()
        self.watch = open_watch


def test_a_bell_rings_for_its_channel_only() -> None:
    async def main() -> None:
        script = Script()
        bells = Bells(cast(Store, Watched(lambda: script)))
        mine, other = bells.of("mine"), bells.of("other")
        listening = asyncio.create_task(bells.listen())
        script.reports.put_nowait("mine")
        await mine.wait()
        assert not other.is_set()
        listening.cancel()
        await asyncio.wait([listening])
        assert script.closed == 1

    asyncio.run(main())


def test_a_report_about_any_channel_rings_all_bells() -> None:
    async def main() -> None:
        script = Script()
        bells = Bells(cast(Store, Watched(lambda: script)))
        all_bells = [bells.of("a"), bells.of("b")]
        listening = asyncio.create_task(bells.listen())
        script.reports.put_nowait(None)
        for bell in all_bells:
            await bell.wait()
        listening.cancel()
        await asyncio.wait([listening])

    asyncio.run(main())


def test_after_a_failure_it_listens_again_with_a_new_watch() -> None:
    async def main() -> None:
        opened: list[Script] = []

        def open_watch() -> Script:
            opened.append(Script())
            opened[-1].reports.put_nowait("a" if len(opened) > 1 else StoreUnavailable("gone"))
            return opened[-1]

        bells = Bells(cast(Store, Watched(open_watch)))
        bell = bells.of("a")
        listening = asyncio.create_task(bells.listen())
        await bell.wait()
        listening.cancel()
        await asyncio.wait([listening])
        assert [script.closed for script in opened] == [1, 1]

    wake.FIRST_PAUSE_SECONDS, before = 0.001, wake.FIRST_PAUSE_SECONDS
    try:
        asyncio.run(main())
    finally:
        wake.FIRST_PAUSE_SECONDS = before


def test_claims_go_to_the_watch_that_listens_and_to_none_before_and_after() -> None:
    async def main() -> None:
        script = Script()
        bells = Bells(cast(Store, Watched(lambda: script)))
        bell = bells.of("a")

        async def claim() -> None:
            assert await bells.claim("a", "me", max_rows=1, max_bytes=2, fresh_seconds=None) is None

        await claim()
        listening = asyncio.create_task(bells.listen())
        script.reports.put_nowait("a")
        await bell.wait()
        await claim()
        listening.cancel()
        await asyncio.wait([listening])
        await claim()
        assert script.claims == [("a", "me", {"max_rows": 1, "max_bytes": 2, "fresh_seconds": None})]

    asyncio.run(main())


def test_where_nothing_can_be_heard_the_bells_ring_again_and_again_and_the_reason_is_known(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wake, "DEAF_POLL_SECONDS", 0.0)

    async def main() -> None:
        script = Script()
        bells = Bells(cast(Store, Watched(lambda: script)))
        mine, other = bells.of("mine"), bells.of("other")
        listening = asyncio.create_task(bells.listen())
        for _ in range(3):
            script.reports.put_nowait(NothingHeard())
            await asyncio.gather(mine.wait(), other.wait())
            mine.clear()
            other.clear()
        assert "pooler" in bells.problem
        script.reports.put_nowait("mine")
        await mine.wait()
        assert not other.is_set()
        assert bells.problem == ""
        listening.cancel()
        await asyncio.wait([listening])
        assert script.closed == 4

    asyncio.run(main())
    assert caplog.messages == ["relay.hears_nothing"]


def test_what_this_process_puts_rings_at_once_though_nothing_can_be_heard() -> None:
    async def main() -> None:
        script = Script()
        store = Watched(lambda: script)
        bells = Bells(cast(Store, store))
        mine, other = bells.of("mine"), bells.of("other")
        store.wake("mine")
        listening = asyncio.create_task(bells.listen())
        await asyncio.sleep(0)
        assert not mine.is_set(), "nobody is asked before it listens"
        await asyncio.to_thread(store.wake, "mine")
        await mine.wait()
        assert not other.is_set()
        listening.cancel()
        await asyncio.wait([listening])
        store.wake("mine")

    asyncio.run(main())
