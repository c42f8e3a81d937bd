"""Everything that a running scoreboard consists of, put together once, inside its event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from carrick.relay.threads import Threads
from carrick.state.fallback import SharedState
from carrick_scoreboard.admission import Admission
from carrick_scoreboard.credentials import Credentials
from carrick_scoreboard.metrics import ScoreboardMetrics
from carrick_scoreboard.osm.client import OsmClient
from carrick_scoreboard.patrols.decision import LONDON
from carrick_scoreboard.patrols.patrols import Patrols
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.routes.device_socket import Sockets
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.sign_in import SignIn
from carrick_scoreboard.standing import SharedStanding
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.sections import SectionSettings
from carrick_scoreboard.store.tables import Tables
from carrick_scoreboard.web_security import Limits


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that routes are made of."""

    settings: ScoreboardSettings
    threads: Threads
    state: SharedState
    keys: KeyRing
    metrics: ScoreboardMetrics
    clients: Clients
    devices: Devices
    standing: SharedStanding
    client: OsmClient
    credentials: Credentials
    patrols: Patrols
    admission: Admission
    sockets: Sockets
    sign_in: SignIn
    limits: Limits
    now: Callable[[], datetime]
    """The time in the zone of the sections."""

    async def close(self) -> None:
        """End what is under way, and the connections to OSM and to shared state. Sockets end with the server."""
        await self.patrols.close()
        await self.client.close()
        await self.state.close()


def put_together(
    settings: ScoreboardSettings,
    tables: Tables,
    state: SharedState,
    threads: Threads,
    keys: KeyRing,
    instance_id: str,
    now: Callable[[], datetime] = lambda: datetime.now(LONDON),
) -> Parts:
    """The parts on these tables and this state. Close them when done; the tables and threads are the caller's."""
    blocks, devices = Blocks(tables), Devices(tables)
    metrics = ScoreboardMetrics(blocks)
    standing = SharedStanding(state, blocks, threads, metrics, thresholds=settings.thresholds)
    client = OsmClient(settings.osm, standing, metrics)
    credentials = Credentials(StoredCredentials(tables), keys, client, threads, instance_id)
    patrols = Patrols(
        Shelf(state, kept_seconds=settings.cache_fallback_seconds, now=now),
        standing,
        credentials,
        client,
        devices,
        SectionSettings(tables),
        threads,
        metrics,
        pending=_nothing_pending,
        thresholds=settings.thresholds,
    )
    admission = Admission(devices, threads)
    return Parts(
        settings=settings,
        threads=threads,
        state=state,
        keys=keys,
        metrics=metrics,
        clients=Clients(tables),
        devices=devices,
        standing=standing,
        client=client,
        credentials=credentials,
        patrols=patrols,
        admission=admission,
        sockets=Sockets(state, admission, metrics, origin=settings.exposed_domain),
        sign_in=SignIn(settings.osm, settings.exposed_domain, client, credentials, state, keys),
        limits=Limits(state),
        now=now,
    )


async def _nothing_pending(_: int) -> Mapping[str, int]:
    """Points cannot be entered here yet."""
    return {}
