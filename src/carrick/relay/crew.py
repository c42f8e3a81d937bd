"""Several channels in one process, each with its own relay and sink; bells, threads and upkeep are shared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from carrick.outbox.channel import Channel
from carrick.outbox.store import Store
from carrick.relay.janitor import tidy_channel_once, tidy_up
from carrick.relay.meter import Meter, Tally
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.threads import Threads
from carrick.relay.wake import Bells
from carrick.sinks.sink import Sink


class Leg(NamedTuple):
    """One channel and where it goes."""

    channel: Channel
    sink: Sink


async def run_crew(
    store: Store,
    legs: Sequence[Leg],
    settings: RelaySettings,
    stopping: asyncio.Event,
    meter: Meter | None = None,
    bells: Bells | None = None,
) -> dict[str, Tally]:
    """Deliver all channels until asked to stop; what became of the entries, by channel."""
    bells = bells or Bells(store)
    threads = Threads(2)
    relays = {
        leg.channel.name: Relay(
            store, leg.sink, leg.channel, settings, bell=bells.of(leg.channel.name), at_once=bells.claim, meter=meter
        )
        for leg in legs
    }
    try:
        async with asyncio.TaskGroup() as tasks:
            upkeep = [tasks.create_task(tidy_up(store, threads, name, settings.owner)) for name in relays]
            upkeep.append(tasks.create_task(bells.listen()))
            delivering = [tasks.create_task(relay.run()) for relay in relays.values()]
            await stopping.wait()
            for relay in relays.values():
                relay.stop()
            await asyncio.gather(*delivering)
            for task in upkeep:
                task.cancel()
    finally:
        for leg in legs:
            await leg.sink.close()
        threads.close()
    return {name: relay.totals for name, relay in relays.items()}


async def run_crew_once(
    store: Store, legs: Sequence[Leg], settings: RelaySettings, stopping: asyncio.Event, meter: Meter | None = None
) -> dict[str, Tally]:
    """Deliver what is due now, channel by channel, remove what is past its retention, and end; what became of the
    entries."""
    totals: dict[str, Tally] = {}
    try:
        with closing(Threads(1)) as threads:
            for leg in legs:
                if stopping.is_set():
                    break
                relay = Relay(store, leg.sink, leg.channel, settings, meter=meter)
                stop = asyncio.create_task(_stop_when_asked(relay, stopping))
                try:
                    totals[leg.channel.name] = await relay.once()
                    await tidy_channel_once(store, threads, leg.channel.name, settings.owner)
                finally:
                    stop.cancel()
    finally:
        for leg in legs:
            await leg.sink.close()
    return totals


async def _stop_when_asked(relay: Relay, stopping: asyncio.Event) -> None:
    await stopping.wait()
    relay.stop()
