"""Everything that a running scoreboard consists of, put together once, inside its event loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

import msgspec

from carrick.outbox.outbox import Outbox
from carrick.relay.threads import Threads
from carrick.state.shared import SharedState
from carrick_scoreboard.admission import Admission
from carrick_scoreboard.credentials import LONGEST_WAIT_SECONDS, Credentials
from carrick_scoreboard.delivery import ScoreSink
from carrick_scoreboard.holding import Holding
from carrick_scoreboard.leaders import Leaders
from carrick_scoreboard.metrics import ScoreboardMetrics, ScoreMeter
from carrick_scoreboard.osm.client import OsmClient
from carrick_scoreboard.patrols.decision import LONDON
from carrick_scoreboard.patrols.patrols import Patrols
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.refreshes import Refreshes
from carrick_scoreboard.routes.boards import BoardPages
from carrick_scoreboard.routes.device_socket import Sockets
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.sign_in import SignIn
from carrick_scoreboard.standing import SharedStanding
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.boards import Boards
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.credentials import StoredCredentials
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.scores import Scores
from carrick_scoreboard.store.sections import SectionSettings
from carrick_scoreboard.store.sessions import Sessions
from carrick_scoreboard.store.tables import Tables
from carrick_scoreboard.submitting import Desk
from carrick_scoreboard.terms import Terms
from carrick_scoreboard.wall import Wall
from carrick_scoreboard.web_security import Cookies, Limits


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that routes are made of."""

    settings: ScoreboardSettings
    threads: Threads
    outbox: Outbox
    state: SharedState
    keys: KeyRing
    metrics: ScoreboardMetrics
    score_meter: ScoreMeter
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
    shelf: Shelf
    sections: SectionSettings
    stored: StoredCredentials
    sessions: Sessions
    leaders: Leaders
    boards: Boards
    audit: Audit
    board_pages: BoardPages
    scores: Scores
    holding: Holding
    desk: Desk
    score_sink: ScoreSink
    now: Callable[[], datetime]
    """The time in the zone of the sections."""

    async def close(self, grace_seconds: float = LONGEST_WAIT_SECONDS) -> None:
        """End what is under way, and the connections to OSM and to shared state. Sockets end with the server.

        Refreshes of tokens get the grace time: what OSM has given cannot be had again.
        """
        await self.patrols.close()
        await self.credentials.close(grace_seconds)
        await self.client.close()
        await self.state.close()


def put_together(
    settings: ScoreboardSettings,
    tables: Tables,
    outbox: Outbox,
    state: SharedState,
    threads: Threads,
    keys: KeyRing,
    instance_id: str,
    now: Callable[[], datetime] = lambda: datetime.now(LONDON),
) -> Parts:
    """The parts on these tables and this state. Close them when done; the tables and threads are the caller's."""
    blocks, devices, stored = Blocks(tables), Devices(tables), StoredCredentials(tables)
    scores, sections = Scores(tables), SectionSettings(tables)
    metrics = ScoreboardMetrics(blocks)
    score_meter = ScoreMeter(metrics.registry, outbox.store, stored)
    standing = SharedStanding(state, blocks, threads, metrics, thresholds=settings.thresholds)
    client = OsmClient(settings.osm, standing, metrics, thresholds=settings.thresholds)
    holding = Holding(outbox.store, stored, threads)
    credentials = Credentials(
        stored, keys, client, threads, instance_id, revoked=holding.revoked, signed_in=holding.signed_in
    )

    async def pending(section_ids: Collection[int]) -> Mapping[int, Mapping[str, int]]:
        return await threads.call(scores.pending, section_ids)

    async def shown(section_ids: Collection[int]) -> Mapping[int, object]:
        waiting, colors = await pending(section_ids), await threads.call(sections.colors_of, section_ids)
        seen = await shelf.shown([*section_ids])
        return {one: (seen[one], waiting.get(one), colors.get(one)) for one in section_ids}

    refreshes = Refreshes(state, shown)
    shelf = Shelf(state, kept_seconds=settings.cache_fallback_seconds, now=now, told=refreshes.tell)
    wall = Wall(shelf)

    patrols = Patrols(
        shelf,
        standing,
        credentials,
        client,
        devices,
        sections,
        threads,
        metrics,
        pending=pending,
        thresholds=settings.thresholds,
    )
    admission = Admission(devices, threads, trusted=settings.trusted_proxies, refused=metrics.refused)
    sessions, cookies, boards = Sessions(tables), Cookies(is_https=settings.is_https), Boards(tables)
    return Parts(
        settings=settings,
        threads=threads,
        outbox=outbox,
        state=state,
        keys=keys,
        metrics=metrics,
        score_meter=score_meter,
        clients=Clients(tables),
        devices=devices,
        standing=standing,
        client=client,
        credentials=credentials,
        patrols=patrols,
        admission=admission,
        sockets=Sockets(admission, refreshes, metrics, origin=settings.exposed_domain),
        sign_in=SignIn(settings.osm, settings.exposed_domain, client, credentials, state, keys),
        limits=Limits(state),
        shelf=shelf,
        sections=sections,
        stored=stored,
        sessions=sessions,
        leaders=Leaders(sessions, stored, threads, keys, cookies, settings.exposed_domain),
        boards=boards,
        audit=Audit(tables),
        board_pages=BoardPages(boards, patrols, stored, refreshes, threads, origin=settings.exposed_domain),
        scores=scores,
        holding=holding,
        desk=Desk(
            scores,
            outbox,
            threads,
            wall,
            debounce_seconds=settings.debounce_seconds,
            created=score_meter.created,
        ),
        score_sink=ScoreSink(
            scores,
            threads,
            client,
            credentials,
            Terms(shelf, client, now).reading,
            wall,
            holding.hold,
            merge_leaders=settings.merge_leaders,
        ),
        now=now,
    )
