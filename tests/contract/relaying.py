"""A relay at work in a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from carrick.entry import State
from carrick.outbox.channel import Channel
from carrick.outbox.store import Store
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.wake import Bells
from carrick.testing.samples import states
from tests.contract.scripted_sink import ScriptedSink

SETTINGS = RelaySettings(owner="relay-1", in_flight=2, poll_seconds=600)
PATIENCE_SECONDS = 60


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story; one that hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await story()

    asyncio.run(bounded())


@asynccontextmanager
async def running(
    store: Store, sink: ScriptedSink, channel: Channel, settings: RelaySettings = SETTINGS
) -> AsyncIterator[Relay]:
    """A relay at work inside, with bells; it is stopped afterwards."""
    bells = Bells(store)
    relay = Relay(store, sink, channel, settings, bell=bells.of(channel.name), at_once=bells.claim)
    listening = asyncio.create_task(bells.listen())
    work = asyncio.create_task(relay.run())
    try:
        yield relay
    finally:
        relay.stop()
        await work
        listening.cancel()
        await asyncio.wait([listening])


async def until(condition: Callable[[], bool]) -> None:
    """Return when the database says that it is so."""
    while not await asyncio.to_thread(condition):  # noqa: ASYNC110  a database rings no event
        await asyncio.sleep(0.005)


def all_in(store: Store, entry_ids: Sequence[UUID], state: State) -> Callable[[], bool]:
    return lambda: set(states(store, entry_ids)) == {state}


def counted(operation: Callable[..., Any], name: str, asked: list[str]) -> Callable[..., Any]:
    """The operation, which writes its name down whenever it is called."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        asked.append(name)
        return operation(*args, **kwargs)

    return counted
